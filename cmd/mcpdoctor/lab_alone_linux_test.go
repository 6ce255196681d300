package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A reap ends what leaked on the whole machine, and on the machine of who runs these tests others may
// have leaked. So what reaps for real is run in a PID namespace of its own (pid_namespaces(7)): there
// are no other processes to be seen or reached.

// aloneVar tells a test that it runs in such a namespace, and where the lab is: "folder:number".
const aloneVar = "MCPDOCTOR_LAB_ALONE"

// alone runs the test that calls it once more, in a PID namespace of its own, and returns a lab there;
// outside it returns nil when that has ended.
func alone(t *testing.T) *lab {
	t.Helper()
	if at := os.Getenv(aloneVar); at != "" {
		dir, number, _ := strings.Cut(at, ":")
		labDir.Do(func() {
			labDir.path = dir
			fmt.Sscan(number, &labDir.runs)
		})
		return newLab(t)
	}
	l := newLab(t) // which installs the packages, or says why there is no lab
	_, number, _ := strings.Cut(l.mark, labDir.path[strings.LastIndexByte(labDir.path, '/')+1:]+".")
	at := labDir.path + ":" + number + "000" // no number of the outside is as large
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=10m")
	c.Env = append(os.Environ(), aloneVar+"="+at, playAs+"=init")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		unavailable(t, "there is no PID namespace for a reap that must reach nobody else: "+err.Error())
	}
	if err := c.Wait(); err != nil {
		t.Errorf("in a namespace of its own: %v\n%s", err, out.String())
	} else if testing.Verbose() {
		t.Log("in a namespace of its own:\n" + out.String())
	}
	return nil
}

// playInit is the first process of the namespace: it waits for whatever ends there, and ends with the
// test. What is left then the kernel ends.
func playInit() {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "init:", err)
			os.Exit(1)
		}
	}
	check(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	check(syscall.Mount("proc", "/proc", "proc", 0, ""))
	self, err := os.Executable()
	check(err)
	c := exec.Command(self, os.Args[1:]...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, playAs+"=") })
	check(c.Start())
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		check(err)
		if pid == c.Process.Pid {
			os.Exit(status.ExitStatus())
		}
	}
}

func init() { parts["init"] = playInit }
