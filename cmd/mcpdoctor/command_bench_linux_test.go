package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkCommand measures the whole command on a table of 3,000 real processes, in turn with ps
// and with a bare loop that opens, reads and closes two files of each process. On a machine that
// others use, only the ratios of runs beside each other mean something.
//
// The aims: at most 0.6 of ps's wall time, 1.5 of the loop's processor time, and 24 MB.
func BenchmarkCommand(b *testing.B) {
	const herd, rounds = 3000, 11
	if _, err := exec.LookPath("ps"); err != nil {
		b.Skip("NOT MEASURED: there is no ps to measure against")
	}
	mcpdoctor := filepath.Join(b.TempDir(), "mcpdoctor")
	build := exec.Command("go", "build", "-trimpath", "-o", mcpdoctor, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	startHerd(b, herd)

	loop := exec.Command(os.Args[0])
	loop.Env = append(os.Environ(), playAs+"=loop")
	commands := map[string]*exec.Cmd{
		"scan": exec.Command(mcpdoctor, "scan", "--json"),
		"ps":   exec.Command("ps", "-eo", "pid,ppid,etimes,rss,args"),
		"loop": loop,
	}
	measured := map[string][]cost{}
	for range rounds {
		for _, name := range []string{"scan", "ps", "loop"} {
			measured[name] = append(measured[name], measure(b, commands[name]))
		}
	}
	for b.Loop() {
	}
	wall, cpu := make([]float64, rounds), make([]float64, rounds)
	var peak int64
	for i := range rounds {
		wall[i] = measured["scan"][i].wall.Seconds() / measured["ps"][i].wall.Seconds()
		cpu[i] = measured["scan"][i].cpu.Seconds() / measured["loop"][i].cpu.Seconds()
		peak = max(peak, measured["scan"][i].peak)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(wall), "wall/ps")
	b.ReportMetric(median(cpu), "cpu/loop")
	b.ReportMetric(float64(peak)/(1<<20), "peak-MB")
	for _, name := range []string{"scan", "ps", "loop"} {
		var w, c []float64
		for _, m := range measured[name] {
			w, c = append(w, m.wall.Seconds()*1000), append(c, m.cpu.Seconds()*1000)
		}
		b.Logf("%-4s wall %.0f ms, cpu %.0f ms (medians of %d)", name, median(w), median(c), rounds)
	}
}

// startHerd starts so many processes that wait, and ends them with the benchmark.
func startHerd(b *testing.B, n int) {
	b.Helper()
	// A few shells that start many are quicker than one program that starts all, and their
	// children have command lines of a usual length.
	const shells = 30
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 1000.$i & i=$((i+1)); done; echo ready; wait", n/shells-1)
	for range shells {
		c := exec.Command("sh", "-c", script)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a group of its own, to be ended as one
		out, err := c.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := syscall.Kill(-c.Process.Pid, syscall.SIGKILL); err != nil {
				b.Error(err)
			}
			c.Wait() //nolint:errcheck // it was ended
		})
		if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
			b.Fatal(err)
		}
	}
}

type cost struct {
	wall, cpu time.Duration
	peak      int64 // bytes
}

func measure(b *testing.B, template *exec.Cmd) cost {
	b.Helper()
	c := exec.Command(template.Path, template.Args[1:]...)
	c.Env = template.Env
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	begin := time.Now()
	if err := c.Run(); err != nil && c.ProcessState.ExitCode() > 1 {
		b.Fatalf("%s: %v", strings.Join(c.Args, " "), err)
	}
	wall := time.Since(begin)
	if strings.Contains(errs.String(), "looking again") {
		b.Fatal("there are leaks on this machine that are looked at twice: end them first, or what is measured is the time between")
	}
	usage := c.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{wall, c.ProcessState.UserTime() + c.ProcessState.SystemTime(), usage.Maxrss << 10}
}

func median(of []float64) float64 {
	of = slices.Clone(of)
	slices.Sort(of)
	return of[len(of)/2]
}

// bareLoop is what the command is measured against: the least that must be done to see every
// process.
func bareLoop() {
	names, err := os.ReadDir("/proc")
	if err != nil {
		panic(err)
	}
	buf := make([]byte, 64<<10)
	for _, d := range names {
		if name := d.Name(); name[0] >= '0' && name[0] <= '9' {
			for _, file := range []string{"/stat", "/cmdline"} {
				fd, err := syscall.Open("/proc/"+name+file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
				if err != nil {
					continue
				}
				syscall.Read(fd, buf) //nolint:errcheck // what it reads is thrown away
				syscall.Close(fd)     //nolint:errcheck
			}
		}
	}
}

func init() { parts["loop"] = bareLoop }
