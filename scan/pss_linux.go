package scan

import (
	"context"

	"golang.org/x/sys/unix"
)

// parsePSS finds the proportional memory in the content of /proc/PID/smaps_rollup and returns it in
// bytes: each shared page counts for its share, so that sums over processes are right.
func parsePSS(rollup []byte) (int64, bool) {
	return kilobytes(rollup, "Pss:")
}

// weigh reads the proportional memory of rows.
func weigh(ctx context.Context, s *Snapshot, rows []*Process, o ExamineOptions) {
	root, err := openRoot(o)
	if err != nil {
		s.problem("cannot weigh any process: %v", err)
		return
	}
	defer unix.Close(root)
	ids := make([]ID, len(rows)) // a late look must not touch the rows
	for i, p := range rows {
		ids[i] = p.ID()
	}
	type memory struct {
		found bool
		pss   *int64
		err   error
	}
	late := sweep(ctx, len(rows), func() func(int) memory {
		buf := make([]byte, smallFile)
		return func(i int) memory {
			h, err := openHandle(root, ids[i], buf)
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
