package stdio

import "testing"

func TestUsefulLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "\n\n": "", "one\ntwo\n": "two",
		"node:internal\n  throw err;\n\nError: Cannot find module '/x'\n    at load\n{ code: 1 }\n\nNode.js v20.20.2\n": "Error: Cannot find module '/x'",
		"Traceback (most recent call last):\r\n  File x\r\nModuleNotFoundError: No module named 'x'\r\n":                "ModuleNotFoundError: No module named 'x'",
		"docker: Cannot connect to the daemon\n\nRun 'docker run --help' for more information\n":                        "docker: Cannot connect to the daemon",
		"starting\nno API key given": "no API key given",
	} {
		if got := usefulLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestParseMessage(t *testing.T) {
	for line, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"result":{}}`: true, `[{"jsonrpc":"2.0","id":1,"result":{}}]`: true, `{"jsonrpc":"2.0"`: false,
		`{"level":"info"}`: false, `hello`: false, `[1`: false, `[12:00:01] INFO starting`: false, `{"jsonrpc":"1.0"}`: false,
	} {
		if _, ok := parseMessage([]byte(line)); ok != want {
			t.Errorf("%s: %t", line, !want)
		}
	}
}
