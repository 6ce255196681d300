package procfs

import (
	"bytes"
	"strings"
	"testing"
)

// statTail is what follows the state in a real line: node, 70 MB, on pts/3.
const statTail = " 1410 1466 1410 34819 1466 4194304 31287 305802 0 150 52 243 890 663 20 0 11 0 3145 43544576 3302 18446744073709551615 1 1 0 0 0 0 0 4096 1256 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

func TestParseStat(t *testing.T) {
	const user = 4194304
	tests := []struct {
		name, text string
		want       Stat
		comm       string
	}{
		{
			name: "plain", text: "1466 (node) S" + statTail, comm: "node",
			want: Stat{State: 'S', PPID: 1410, PGID: 1466, Session: 1410, TTY: 34819, flags: user, CPU: 52 + 243, Start: 3145, RSS: 3302},
		},
		{
			name: "a name like the end of a name", text: "7 (a) S 1 (b) Z) ) T" + statTail, comm: "a) S 1 (b) Z) ",
			want: Stat{State: 'T', PPID: 1410, PGID: 1466, Session: 1410, TTY: 34819, flags: user, CPU: 52 + 243, Start: 3145, RSS: 3302},
		},
		{
			name: "a newline and no name's bytes", text: "7 (\n\xff\x1b[31m) R" + statTail, comm: "\n\xff\x1b[31m",
			want: Stat{State: 'R', PPID: 1410, PGID: 1466, Session: 1410, TTY: 34819, flags: user, CPU: 52 + 243, Start: 3145, RSS: 3302},
		},
		{
			name: "kernel thread", text: "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 31 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n", comm: "kthreadd",
			want: Stat{State: 'S', flags: 2129984, CPU: 1, Start: 31},
		},
		{
			name: "nothing after the resident pages", text: "5 () Z 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0", comm: "",
			want: Stat{State: 'Z', PPID: 1, PGID: 5, Session: 5, Start: 99},
		},
		{
			name: "an address space beyond 18 digits", text: "5 (x) S 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 18446744073709551615 4", comm: "x",
			want: Stat{State: 'S', PPID: 1, PGID: 5, Session: 5, Start: 99, RSS: 4},
		},
	}
	for _, test := range tests {
		got, err := ParseStat([]byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if string(got.Comm) != test.comm {
			t.Errorf("%s: name %q, want %q", test.name, got.Comm, test.comm)
		}
		got.Comm = nil
		if g, w := got, test.want; g.State != w.State || g.PPID != w.PPID || g.PGID != w.PGID || g.Session != w.Session ||
			g.TTY != w.TTY || g.flags != w.flags || g.CPU != w.CPU || g.Start != w.Start || g.RSS != w.RSS {
			t.Errorf("%s: got  %+v\nwant %+v", test.name, g, w)
		}
	}
}

func TestParseStatRefuses(t *testing.T) {
	for _, text := range []string{
		"", "7", "7 (", "7 )(", "7 (a)", "7 (a) ", "7 (a) S", "7 (a) SS 1",
		"7 (a) S 1 2 3", // cut off
		"7 (a) S x" + statTail[5:],
		"7 (a) S " + strings.Repeat("9", 30) + statTail[5:],
	} {
		if got, err := ParseStat([]byte(text)); err == nil {
			t.Errorf("ParseStat(%q) = %+v", text, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("1466 (node) S" + statTail))
	f.Add([]byte("7 (a) S 1 (b) Z) ) T" + statTail))
	f.Add([]byte("7 (\n)"))
	f.Fuzz(func(t *testing.T, text []byte) {
		st, err := ParseStat(text)
		if err != nil {
			return
		}
		if !bytes.Contains(text, append(append([]byte("("), st.Comm...), ')')) {
			t.Errorf("the name %q is not in %q", st.Comm, text)
		}
	})
}
