package procfs

import (
	"slices"
	"strings"
	"testing"
)

func TestSplitCmdline(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"none", "", nil},
		{"plain", "node\x00server.mjs\x00", []string{"node", "server.mjs"}},
		{"without a last NUL", "node\x00server.mjs", []string{"node", "server.mjs"}},
		{"an empty argument", "sh\x00-c\x00\x00x\x00", []string{"sh", "-c", "", "x"}},
		{"spaces in arguments", "a b\x00c \x00", []string{"a b", "c "}},
		{"a title and what was there before", "npm exec foo\x00\x00\x00\x00\x00", []string{"npm exec foo"}},
		{"a title and spaces", "nginx: master process   \x00", []string{"nginx: master process"}},
		{"wiped", "\x00\x00\x00\x00", nil},
		{"blanked", "    \x00", nil},
		{"an empty first argument", "\x00x\x00", []string{"", "x"}},
	}
	for _, test := range tests {
		if got := SplitCmdline(test.text, nil); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}

	both := SplitCmdline("c\x00d\x00", SplitCmdline("a\x00b\x00", nil))
	if !slices.Equal(both, []string{"a", "b", "c", "d"}) {
		t.Errorf("appended: %q", both)
	}
}

func FuzzParseCmdline(f *testing.F) {
	f.Add("node\x00server.mjs\x00")
	f.Add("npm exec foo\x00\x00\x00")
	f.Add("    \x00")
	f.Fuzz(func(t *testing.T, text string) {
		before := []string{"before"}
		got := SplitCmdline(text, before)
		if got[0] != "before" {
			t.Fatalf("overwritten: %q", got)
		}
		args := got[1:]
		if want := strings.TrimRight(text, "\x00"); len(args) > 1 && strings.Join(args, "\x00") != want {
			t.Errorf("%q is not %q", args, want)
		}
		if len(args) == 1 && args[0] == "" {
			t.Errorf("%q gives one empty argument", text)
		}
	})
}
