package procfs

import (
	"testing"
	"time"
)

func TestParseMeminfo(t *testing.T) {
	got := ParseMeminfo([]byte("MemTotal:       24684096 kB\nMemFree:  1 kB\nMemAvailable:    8000000 kB\nHugePages_Total:   0\nSwapTotal: 2 kB\nSwapFree:\nDirectMap2M: x kB\n"))
	want := Memory{Total: 24684096 << 10, Available: 8000000 << 10, SwapTotal: 2 << 10}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := ParseMeminfo(nil); got != (Memory{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestParseBootTime(t *testing.T) {
	if got, want := ParseBootTime([]byte("cpu  1 2\nintr 5 6 7\nctxt 8\nbtime 1788260000\nprocesses 9\n")), time.Unix(1788260000, 0); !got.Equal(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, text := range []string{"", "btime x\n", "xbtime 5\n"} {
		if got := ParseBootTime([]byte(text)); !got.IsZero() {
			t.Errorf("parseBootTime(%q) = %v", text, got)
		}
	}
}

func TestParseHidepid(t *testing.T) {
	const root = "23 1 254:0 / / rw shared:1 - ext4 /dev/root rw,hidepid=2\n"
	tests := map[string]string{
		"": "",
		root + "24 23 0:21 / /proc rw,nosuid shared:12 - proc proc rw\n":                                                       "",
		root + "24 23 0:21 / /proc rw,nosuid shared:12 - proc proc rw,gid=5,hidepid=invisible\n":                               "invisible",
		root + "24 23 0:21 / /proc rw - proc proc rw,hidepid=2\n25 24 0:9 / /proc/sys ro - proc proc rw\n":                     "2",
		root + "24 23 0:21 / /proc rw - proc proc rw,hidepid=0\n":                                                              "",
		root + "24 23 0:21 / /mnt rw - proc proc rw,hidepid=2\n":                                                               "",
		root + "24 23 0:21 / /proc rw - proc proc rw,hidepid=2\n26 24 0:22 / /proc rw - proc proc rw\nnot a mount\n- proc x\n": "",
	}
	for text, want := range tests {
		if got := ParseHidepid([]byte(text), "/proc"); got != want {
			t.Errorf("got %q, want %q in %q", got, want, text)
		}
	}
}
