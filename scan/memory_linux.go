package scan

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// maxEnviron is where a longer environment is cut. The kernel allows megabytes.
const maxEnviron = 256 << 10

// readEnvirons fills in Env of rows.
func readEnvirons(ctx context.Context, root int, s *Snapshot, rows []*Process, o ExamineOptions) {
	read := func(h procfs.Process) (map[string]string, error) {
		content, err := h.ReadFile("environ", maxEnviron, nil)
		return parseEnviron(content), err
	}
	readMemory(ctx, root, s, rows, o, "env", read, func(p *Process, env map[string]string) { p.Env = env })
}

// parseEnviron keeps the chosen variables of the content of /proc/PID/environ; see [envNames]. It is the
// environment at the start, but the process can overwrite it with anything; see proc_pid_environ(5).
func parseEnviron(b []byte) map[string]string {
	if len(b) >= maxEnviron { // the last entry is cut
		b = b[:bytes.LastIndexByte(b, 0)+1]
	}
	return chooseEnv(b)
}

// readPSS fills in PSSBytes of rows.
func readPSS(ctx context.Context, s *Snapshot, rows []*Process, o ExamineOptions) {
	root, err := openRoot(o.Root)
	if err != nil {
		s.problem("cannot read the PSS of any process: %v", err)
		return
	}
	defer unix.Close(root)
	read := func(h procfs.Process) (*int64, error) {
		content, err := h.ReadFile("smaps_rollup", smallFile, nil)
		if n, ok := procfs.ParsePSS(content); err == nil && ok {
			return &n, nil
		}
		return nil, err
	}
	readMemory(ctx, root, s, rows, o, "pss_bytes", read, func(p *Process, pss *int64) { p.PSSBytes = pss })
}

// readMemory sets one field of each of rows from a file whose reading takes the memory lock of the process
// and may wait for a page from swap. Processes that have exited stay as they were.
func readMemory[T any](ctx context.Context, root int, s *Snapshot, rows []*Process, o ExamineOptions, field string,
	read func(procfs.Process) (T, error), set func(*Process, T)) {
	ids := make([]ID, len(rows)) // a late read must not use the rows
	for i, p := range rows {
		ids[i] = p.ID()
	}
	type result struct {
		opened bool
		value  T
		err    error
	}
	stuck, skipped := sweep(ctx, o.deadline(), len(rows), func() func(int) result {
		buf := make([]byte, smallFile)
		return func(i int) result {
			h, err := procfs.Open(root, ids[i].PID, ids[i].Start, buf)
			if err != nil {
				return result{}
			}
			defer h.Close()
			value, err := read(h)
			return result{true, value, err}
		}
	}, func(i int, r result) {
		if r.opened {
			set(rows[i], r.value)
			rows[i].setUnreadable(field, errors.Is(r.err, unix.EACCES) || errors.Is(r.err, unix.EPERM))
		}
	})
	giveUp(s, rows, slices.Concat(stuck, skipped), o, field)
}
