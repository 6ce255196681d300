package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpdoctor/rules"
)

// What a scenario sees: the process table as the tests read it on their own, and what the real
// command says about it.

// process is a row of the process table as these tests read it, on their own.
type procRow struct {
	pid, ppid int
	state     byte
	start     uint64 // in ticks since boot
}

func readProcess(pid int) (procRow, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procRow{}, false
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	p := procRow{pid: pid, state: f[0][0]}
	p.ppid, _ = strconv.Atoi(f[1])
	p.start, _ = strconv.ParseUint(f[19], 10, 64)
	return p, true
}

// command is the command line of a process; empty when it is gone.
func command(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
}

func processes() map[int]procRow {
	entries, _ := os.ReadDir("/proc")
	all := map[int]procRow{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := readProcess(pid); ok {
				all[pid] = p
			}
		}
	}
	return all
}

// below returns the descendants of a process, ascending, without the dead.
func below(root int) []int {
	found := map[int]uint64{root: 0}
	descend(processes(), found)
	delete(found, root)
	return slices.Sorted(maps.Keys(found))
}

// descend adds the living descendants of what was found.
func descend(all map[int]procRow, found map[int]uint64) {
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			_, parent := found[p.ppid]
			if _, ok := found[pid]; parent && !ok && p.state != 'Z' {
				found[pid], grown = p.start, true
			}
		}
	}
}

// marked returns the living processes with that mark in their environment, and their starts.
func marked(all map[int]procRow, mark string) map[int]uint64 {
	found := map[int]uint64{}
	for pid, p := range all {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && p.state != 'Z' && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark)) {
			found[pid] = p.start
		}
	}
	return found
}

// mine returns the living processes of this lab.
func (l *lab) mine() map[int]uint64 {
	all := processes()
	found := marked(all, l.mark+"\x00")
	for pid, start := range l.born {
		if p, ok := all[pid]; ok && p.start == start && p.state != 'Z' {
			found[pid] = start
		}
	}
	descend(all, found)
	return found
}

func alive(pid int, start uint64) bool {
	p, ok := readProcess(pid)
	return ok && p.start == start && p.state != 'Z'
}

// age is how long a process has lived; 0 when it is gone.
func age(pid int) time.Duration {
	p, ok := readProcess(pid)
	uptime, err := os.ReadFile("/proc/uptime")
	if !ok || err != nil {
		return 0
	}
	const tick = time.Second / 100 // on every Linux that Go runs on
	now, _ := strconv.ParseFloat(strings.Fields(string(uptime))[0], 64)
	return time.Duration(now*float64(time.Second)) - time.Duration(p.start)*tick
}

// waitUntilOld waits until all these processes have lived that long.
func (l *lab) waitUntilOld(pids []int, least time.Duration) {
	l.t.Helper()
	l.eventually("they are old enough", least+time.Minute, func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { return age(pid) < least })
	})
}

// doctor runs the real command and returns what it printed, and its exit code.
func (l *lab) doctor(args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	return l.doctorAs(nil, args...)
}

// doctorAs runs it as another user.
func (l *lab) doctorAs(user *syscall.Credential, args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, l.self("mcpdoctor"), args...)
	// It is no process of the lab, and so without the lab's mark.
	c.Dir, c.Env = "/", append(l.environment()[1:], playAs+"=mcpdoctor")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	if e := c.Run(); c.ProcessState == nil || ctx.Err() != nil {
		l.t.Fatalf("mcpdoctor %s: %v\n%s", strings.Join(args, " "), e, err.String())
	}
	return out.String(), err.String(), c.ProcessState.ExitCode()
}

// scan runs mcpdoctor scan --json and returns what it says about this lab's processes, and its
// exit code, which is about all of the machine.
func (l *lab) scan(args ...string) (*rules.Report, int) {
	l.t.Helper()
	return l.scanAs(nil, args...)
}

func (l *lab) scanAs(user *syscall.Credential, args ...string) (*rules.Report, int) {
	l.t.Helper()
	mine := l.mine()
	out, stderr, code := l.doctorAs(user, append([]string{"scan", "--json"}, args...)...)
	var r rules.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code > exitFindings {
		l.t.Fatalf("mcpdoctor scan --json: exit code %d, %v\n%s%s", code, err, stderr, out)
	}
	maps.Copy(mine, l.mine()) // some may be new since, and some gone
	has := func(pid int) bool { _, ok := mine[pid]; return ok }
	r.Findings = slices.DeleteFunc(r.Findings, func(f rules.Finding) bool {
		// The clients of all scenarios that run at this moment may together have many sessions of one
		// server, which says nothing of any.
		others := f.Rule == "duplicate-sessions" && slices.ContainsFunc(f.PIDs, func(pid int) bool { return !has(pid) })
		return others || !slices.ContainsFunc(f.PIDs, has) && !has(f.ParentPID)
	})
	r.Servers = slices.DeleteFunc(r.Servers, func(s rules.Server) bool { return !slices.ContainsFunc(s.PIDs, has) })
	r.Clients = slices.DeleteFunc(r.Clients, func(o rules.Owning) bool { return !has(o.PID) })
	r.Gateways = slices.DeleteFunc(r.Gateways, func(o rules.Owning) bool { return !has(o.PID) })
	l.last = &r
	return &r, code
}

// quiet fails the test for each finding about the lab's processes.
func (l *lab) quiet(when string, r *rules.Report) {
	l.t.Helper()
	for _, f := range r.Findings {
		l.t.Errorf("%s there is a finding about healthy processes: %s", when, inShort(f))
	}
}

// only returns the one finding of a rule; others of that rule, or none, fail the test.
func (l *lab) only(r *rules.Report, rule string) rules.Finding {
	l.t.Helper()
	var found []rules.Finding
	for _, f := range r.Findings {
		if f.Rule == rule {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		l.t.Fatalf("there are %d findings of %s about this lab's processes, not one", len(found), rule)
	}
	return found[0]
}

func inShort(f rules.Finding) string {
	return fmt.Sprintf("%s, %s, %s: %s\n\tpids %v, parent %d, safe %v, on request %v\n\t%s",
		f.Rule, f.Severity, f.Confidence, f.Title, f.PIDs, f.ParentPID, f.Reap.Safe, f.Reap.OnRequest, strings.Join(f.Evidence, "\n\t"))
}

// same fails the test unless two lists of PIDs are the same.
func same(t *testing.T, what string, got, want []int) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s are\n\t%v, not\n\t%v", what, got, want)
	}
}

// holds fails the test for each word that is not in a text.
func holds(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not have %q:\n%s", what, w, text)
		}
	}
}

// tell logs what a failure is to be understood from.
func (l *lab) tell() {
	const rows = 40 // more would hide the rest
	var b strings.Builder
	fmt.Fprintf(&b, "the processes of the lab (the test itself is pid %d):\n", os.Getpid())
	for i, pid := range slices.Sorted(maps.Keys(l.mine())) {
		if p, ok := readProcess(pid); ok && i < rows {
			stdin, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid))
			fmt.Fprintf(&b, "%7d %7d %c %4ds %s | %s\n", p.pid, p.ppid, p.state, int(age(pid).Seconds()), stdin, command(pid))
		}
	}
	if l.last != nil {
		b.WriteString("the last scan of them:\n")
		for _, f := range l.last.Findings {
			fmt.Fprintln(&b, inShort(f))
		}
		for i, s := range l.last.Servers {
			if i < rows {
				fmt.Fprintf(&b, "server %s %v, owner %s %d, %s: %s (%s)\n", s.Server, s.PIDs, s.Owner.Kind, s.Owner.PID, s.Verdict, s.Because, s.RecognisedBy)
			}
		}
		for _, o := range slices.Concat(l.last.Clients, l.last.Gateways) {
			fmt.Fprintf(&b, "owner %s %s pid %d, %d servers, %v\n", o.Name, o.Version, o.PID, o.Servers, o.Listen)
		}
	}
	if log, err := os.ReadFile(filepath.Join(l.home, "log")); err == nil {
		fmt.Fprintf(&b, "the last of what they said:\n%s", log[max(0, len(log)-1000):])
	}
	l.t.Log(b.String())
}
