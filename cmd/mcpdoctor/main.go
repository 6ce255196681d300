// Command mcpdoctor finds leaked MCP server processes and says what made them leak.
//
// Results alone go to stdout. Errors go to stderr, in the form
//
//	mcpdoctor: error: what went wrong, in lower case, without a full stop
//	mcpdoctor: hint: what to do about it
//
// and the exit code says what happened:
//
//	0  nothing was found at or above --fail-on; everything planned has exited
//	1  something was found; something planned is still running
//	2  wrong usage, unusable input, or no view of the processes
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"mcpdoctor/scan/lockfile"
	"mcpdoctor/scan/terminate"
)

func main() {
	interrupts := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		interrupts = append(interrupts, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), interrupts...)
	w := system()
	done := make(chan int, 1)
	go func() { done <- run(ctx, os.Args[1:], w) }()
	select {
	case code := <-done:
		stop()
		os.Exit(code)
	case <-ctx.Done():
		stop() // a second interrupt stops it at once
	}
	// It may wait for a file that does not answer (a pipe, a terminal), which cannot be interrupted. A verb that
	// has something to finish is given the time.
	select {
	case code := <-done:
		if w.finish.Load() {
			os.Exit(code)
		}
	case <-time.After(200 * time.Millisecond):
		if w.finish.Load() {
			os.Exit(<-done)
		}
	}
	w.say(&problem{what: "interrupted", hint: "nothing was terminated or changed"})
	os.Exit(exitTrouble)
}

// system is the world as the operating system has it.
func system() *world {
	return &world{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, now: time.Now, machine: localMachine{os.Getenv}, program: ownPath,
		openProcess: terminate.Open,
		lock: func() (func(), error) {
			l, err := lockfile.Acquire()
			if err != nil {
				return nil, err
			}
			return l.Release, nil
		},
		self:   os.Getpid(),
		person: func() bool { return atTerminal(os.Stdin, os.Stdout, os.Stderr) },
		root:   func() bool { return os.Geteuid() == 0 },
	}
}
