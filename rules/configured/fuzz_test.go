package configured_test

import (
	"slices"
	"strings"
	"testing"

	"mcpdoctor/rules"
	"mcpdoctor/rules/configured"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan/config"
)

// FuzzConfigure compares any entry with any process. What is recognised has the name of the entry, and is in the
// report on the configuration.
func FuzzConfigure(f *testing.F) {
	f.Add("npx|-y|notes-tool@1.2|a", "npm exec notes-tool@1.2 a", "/srv", "/srv", uint8(0))
	f.Add("python|server.py", "python3|server.py", "", "/srv/notes", uint8(1))
	f.Add("${HOME}/bin/x|%A%|$B|{env:C}|$(d)|~/e", "x|1|2|3|4|5", "~/f", "", uint8(2))
	f.Add(`cmd|/c|npx -y "x y"`, `cmd.exe|/c|npx -y "x y"`, `C:\x`, `c:/x`, uint8(2))
	f.Add("uv|--directory=/a|run|-m|b", "/a/.venv/bin/python|-m|b", "", "/a", uint8(0))
	f.Add(" helper (plugin)", " helper (plugin)", "", "", uint8(0))
	f.Fuzz(func(t *testing.T, entry, proc, cwd, folder string, system uint8) {
		os := []string{"linux", "darwin", "windows"}[system%3]
		words := strings.Split(entry, "|")
		seen := process.Recognise(configuredTable(os, configuredProc{1, 0, "init", ""}, configuredProc{10, 1, "claude", ""}, configuredProc{20, 10, proc, folder}))
		found := config.Found{Home: "/home/me", Servers: []config.Server{{Client: "Cursor", Name: "mine", File: "/f.json", Transport: config.Stdio, Command: words[0], Args: words[1:], CWD: cwd}}}
		configured := configured.Attribute(seen, found, nil)
		c := configured.Report()
		for _, srv := range rules.Judge(seen, rules.Options{}).Servers {
			if srv.Server == "mine" && !slices.Equal(c.Servers[0].PIDs, []int{srv.RootPID}) {
				t.Errorf("%q has the name of the entry, but the report says %v", proc, c.Servers[0].PIDs)
			}
		}
	})
}
