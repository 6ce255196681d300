package scan

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
		want       procStat
		comm       string
	}{
		{
			name: "plain", text: "1466 (node) S" + statTail, comm: "node",
			want: procStat{state: 'S', ppid: 1410, pgrp: 1466, session: 1410, ttyNr: 34819, flags: user, cpu: 52 + 243, start: 3145, rss: 3302},
		},
		{
			name: "a name like the end of a name", text: "7 (a) S 1 (b) Z) ) T" + statTail, comm: "a) S 1 (b) Z) ",
			want: procStat{state: 'T', ppid: 1410, pgrp: 1466, session: 1410, ttyNr: 34819, flags: user, cpu: 52 + 243, start: 3145, rss: 3302},
		},
		{
			name: "a newline and no name's bytes", text: "7 (\n\xff\x1b[31m) R" + statTail, comm: "\n\xff\x1b[31m",
			want: procStat{state: 'R', ppid: 1410, pgrp: 1466, session: 1410, ttyNr: 34819, flags: user, cpu: 52 + 243, start: 3145, rss: 3302},
		},
		{
			name: "kernel thread", text: "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 31 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n", comm: "kthreadd",
			want: procStat{state: 'S', flags: 2129984, cpu: 1, start: 31},
		},
		{
			name: "nothing after the resident pages", text: "5 () Z 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0", comm: "",
			want: procStat{state: 'Z', ppid: 1, pgrp: 5, session: 5, start: 99},
		},
		{
			name: "an address space beyond 18 digits", text: "5 (x) S 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 18446744073709551615 4", comm: "x",
			want: procStat{state: 'S', ppid: 1, pgrp: 5, session: 5, start: 99, rss: 4},
		},
	}
	for _, test := range tests {
		got, err := parseStat([]byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if string(got.comm) != test.comm {
			t.Errorf("%s: name %q, want %q", test.name, got.comm, test.comm)
		}
		got.comm = nil
		if g, w := got, test.want; g.state != w.state || g.ppid != w.ppid || g.pgrp != w.pgrp || g.session != w.session ||
			g.ttyNr != w.ttyNr || g.flags != w.flags || g.cpu != w.cpu || g.start != w.start || g.rss != w.rss {
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
		if got, err := parseStat([]byte(text)); err == nil {
			t.Errorf("parseStat(%q) = %+v", text, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("1466 (node) S" + statTail))
	f.Add([]byte("7 (a) S 1 (b) Z) ) T" + statTail))
	f.Add([]byte("7 (\n)"))
	f.Fuzz(func(t *testing.T, text []byte) {
		st, err := parseStat(text)
		if err != nil {
			return
		}
		if !bytes.Contains(text, append(append([]byte("("), st.comm...), ')')) {
			t.Errorf("the name %q is not in %q", st.comm, text)
		}
	})
}
