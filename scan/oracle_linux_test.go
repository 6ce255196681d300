package scan

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"mcpdoctor/scan/procfs"
)

// TestTakeAgreesWithGopsutil compares two independent readers of the same table. Only what stayed
// the same between a look before and a look after gopsutil's is compared.
func TestTakeAgreesWithGopsutil(t *testing.T) {
	ctx := t.Context()
	startChild(t, "stay", nil)
	before, err := Take(ctx, Options{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := process.ProcessesWithContext(ctx)
	if err != nil {
		t.Fatal(err)
	}
	type view struct {
		ppid    int32
		name    string
		args    []string
		uids    []uint32
		created int64
	}
	views := make(map[int]view, len(theirs))
	for _, g := range theirs {
		var v view
		var errs [5]error
		v.ppid, errs[0] = g.PpidWithContext(ctx)
		v.name, errs[1] = g.NameWithContext(ctx)
		v.args, errs[2] = g.CmdlineSliceWithContext(ctx)
		v.uids, errs[3] = g.UidsWithContext(ctx)
		v.created, errs[4] = g.CreateTimeWithContext(ctx)
		if errs == [5]error{} {
			views[int(g.Pid)] = v
		}
	}
	after, err := Take(ctx, Options{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}

	compared := 0
	for i := range before.Processes {
		p := &before.Processes[i]
		q := after.find(p.PID)
		if q == nil || q.ID() != p.ID() || q.PPID != p.PPID || q.Name != p.Name || q.State != p.State && q.State == "Z" || !slices.Equal(q.Args, p.Args) {
			continue
		}
		v, ok := views[p.PID]
		if !ok {
			t.Errorf("gopsutil does not see %s", asJSON(t, p))
			continue
		}
		compared++
		if int(v.ppid) != p.PPID {
			t.Errorf("pid %d: ppid %d, gopsutil %d", p.PID, p.PPID, v.ppid)
		}
		// gopsutil lengthens a name that the kernel has cut off at 15 bytes.
		if v.name != p.Name && (len(p.Name) < 15 || !strings.HasPrefix(v.name, p.Name)) {
			t.Errorf("pid %d: name %q, gopsutil %q", p.PID, p.Name, v.name)
		}
		if args := asWritten(v.args); !slices.Equal(args, p.Args) {
			t.Errorf("pid %d: args %q, gopsutil %q", p.PID, p.Args, args)
		}
		if len(v.uids) < 2 || int(v.uids[1]) != *p.UID { // real, effective, saved, file system
			t.Errorf("pid %d: uid %d, gopsutil %d", p.PID, *p.UID, v.uids)
		}
		if d := p.Started.Sub(time.UnixMilli(v.created)); d.Abs() > 2*time.Second {
			t.Errorf("pid %d: started %v, gopsutil %v", p.PID, p.Started, time.UnixMilli(v.created))
		}
	}
	for pid := range views {
		if before.find(pid) == nil && after.find(pid) != nil && after.find(pid).Started.Before(before.Taken.Add(-time.Second)) {
			t.Errorf("only gopsutil and the second look see %s", asJSON(t, after.find(pid)))
		}
	}
	if me := views[os.Getpid()]; compared < 3 || me.name == "" {
		t.Errorf("only %d processes could be compared", compared)
	}
}

// asWritten leaves out what procfs.SplitCmdline does: empty arguments at the end, the padding of a title.
func asWritten(args []string) []string {
	return procfs.SplitCmdline(strings.Join(args, "\x00"), nil)
}
