package scan

import "context"

// parsePSS finds the proportional memory in the content of /proc/PID/smaps_rollup and returns it in
// bytes: each shared page counts for its share, so that sums over processes are right.
func parsePSS(rollup []byte) (int64, bool) {
	return kilobytes(rollup, "Pss:")
}

// readPSS is the pass over the proportional memory: the kernel walks the page tables for it, with the
// lock of the memory held.
func (e *examination) readPSS(ctx context.Context, s *Snapshot, rows []*Process, o ExamineOptions) {
	type memory struct {
		found bool
		pss   *int64
		err   error
	}
	late := sweep(ctx, len(rows), func() func(int) memory {
		buf := make([]byte, smallFile)
		return func(i int) memory {
			h, err := openHandle(e.root, e.ids[i], buf)
			if err != nil {
				return memory{}
			}
			defer h.close()
			content, err := h.read("smaps_rollup", smallFile, nil)
			if n, ok := parsePSS(content); err == nil && ok {
				return memory{true, &n, nil}
			}
			return memory{true, nil, err}
		}
	}, func(i int, m memory) {
		if m.found {
			rows[i].PSSBytes = m.pss
			rows[i].setUnreadable("pss_bytes", refused(m.err))
		}
	})
	giveUp(s, rows, late, o, "pss_bytes")
}
