package configfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpdoctor/scan/config"
	"mcpdoctor/scan/configfile"
)

func FuzzJSON(f *testing.F) { fuzz(f, ".json", ".jsonc") }
func FuzzTOML(f *testing.F) { fuzz(f, ".toml") }
func FuzzYAML(f *testing.F) { fuzz(f, ".yaml", ".yml") }

// fuzz starts with the example files of a format. A text is read, or a reason is given, which never quotes it.
func fuzz(f *testing.F, endings ...string) {
	err := filepath.WalkDir(testdata, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, ending := range endings {
			if filepath.Ext(path) == ending {
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				f.Add(text)
			}
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(dir, "file"+endings[0])
		if err := os.WriteFile(file, text, 0o666); err != nil {
			t.Fatal(err)
		}
		found := configfile.Read(t.Context(), configfile.Options{System: "windows", Named: []config.Named{{Path: file, Client: "c"}}})
		p := found.Places[0]
		switch p.State {
		case config.Present:
			if p.Servers != len(found.Servers) || p.Reason != "" {
				t.Errorf("%d servers, but the place says %+v", len(found.Servers), p)
			}
		case config.Broken:
			if !strings.HasPrefix(p.Reason, "invalid ") || len(found.Servers) > 0 {
				t.Errorf("%+v with %d servers", p, len(found.Servers))
			}
		case config.Refused:
			if p.Reason == "" || len(found.Servers) > 0 {
				t.Errorf("%+v with %d servers", p, len(found.Servers))
			}
		default:
			t.Errorf("%+v", p)
		}
		for _, s := range found.Servers {
			if s.Name == "" || (s.Command == "") == (s.URL == "") || (s.Transport == config.Stdio) != (s.Command != "") {
				t.Errorf("%+v", s)
			}
		}
	})
}
