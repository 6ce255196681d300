package procfs

import "testing"

func TestTTYName(t *testing.T) {
	tests := map[int]string{
		0:                     "-",
		136<<8 | 3:            "pts/3",
		136<<8 | 1<<20 | 0x02: "pts/258", // the minor's upper bits stand above the major
		137<<8 | 5:            "pts/1048581",
		4<<8 | 1:              "tty1",
		4<<8 | 64:             "ttyS0",
		5<<8 | 1:              "console",
		204<<8 | 64:           "204:64",
	}
	for device, want := range tests {
		if got := TTYName(device); got != want {
			t.Errorf("TTYName(%#x) = %q, want %q", device, got, want)
		}
	}
}
