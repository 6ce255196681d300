package scan

import (
	"context"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// readPSS reads the proportional memory of rows.
func readPSS(ctx context.Context, s *Snapshot, rows []*Process, o ExamineOptions) {
	root, err := openRoot(o)
	if err != nil {
		s.problem("cannot read the PSS of any process: %v", err)
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
	stuck, skipped := sweep(ctx, o.deadline(), len(rows), func() func(int) memory {
		buf := make([]byte, smallFile)
		return func(i int) memory {
			h, err := procfs.Open(root, ids[i].PID, ids[i].Start, buf)
			if err != nil {
				return memory{}
			}
			defer h.Close()
			content, err := h.ReadFile("smaps_rollup", smallFile, nil)
			if n, ok := procfs.ParsePSS(content); err == nil && ok {
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
	giveUp(s, rows, append(stuck, skipped...), o, "pss_bytes")
}
