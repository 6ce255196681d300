package scan

import (
	"bytes"
	"context"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

const (
	// environSize holds the environment of almost every process in one read.
	environSize = 16 << 10

	// maxEnviron is where a longer environment is cut. The kernel allows megabytes.
	maxEnviron = 256 << 10
)

// parseEnviron keeps the chosen variables of the content of /proc/PID/environ; see [envNames]. It
// is the environment that the process started with. A process can write over it, so that anything
// may stand there.
func parseEnviron(b []byte) map[string]string {
	if len(b) >= maxEnviron { // the last entry is cut
		b = b[:bytes.LastIndexByte(b, 0)+1]
	}
	return chooseEnv(bytes.SplitSeq(b, []byte{0}))
}

// readEnvirons is the pass over the environments of the tops. They stand in the memory of the processes: reading
// takes its lock and may have to wait for a page from swap. The handles of the looks are closed.
func (e *examination) readEnvirons(ctx context.Context, s *Snapshot, rows []*Process, looks []look, o ExamineOptions) {
	type environ struct {
		found bool
		env   map[string]string
		err   error
	}
	var asked []int // the rows whose environment matters
	for i, top := range e.tops {
		if top {
			asked = append(asked, i)
		}
	}
	dirs := make([]atomic.Int32, len(looks)) // whoever takes one closes it, and leaves -1
	for i := range looks {
		dirs[i].Store(int32(looks[i].dir))
	}
	stuck, skipped := sweep(ctx, o.deadline(), len(asked), func() func(int) environ {
		buf := make([]byte, environSize)
		return func(n int) environ {
			i := asked[n]
			h := procfs.Process{Reader: procfs.Reader{Dir: int(dirs[i].Swap(-1)), Buf: buf}}
			if h.Dir < 0 {
				var err error
				if h, err = procfs.Open(e.root, e.ids[i].PID, e.ids[i].Start, buf); err != nil {
					return environ{}
				}
			}
			defer h.Close()
			content, err := h.ReadFile("environ", maxEnviron, nil)
			return environ{true, parseEnviron(content), err}
		}
	}, func(n int, v environ) {
		if i := asked[n]; v.found {
			rows[i].Env = v.env
			rows[i].setUnreadable("env", refused(v.err))
		}
	})
	late := append(stuck, skipped...)
	for n, i := range late {
		late[n] = asked[i]
		i = asked[i]
		if dir := dirs[i].Swap(-1); dir >= 0 {
			unix.Close(int(dir))
		}
	}
	giveUp(s, rows, late, o, "env")
}
