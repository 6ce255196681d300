// Command mcpdoctor finds leaked MCP server processes and says what made them leak.
//
// Results alone go to stdout. Errors go to stderr, in the form
//
//	mcpdoctor: error: what went wrong, in lower case, without a full stop
//	mcpdoctor: hint: what to do about it
//
// and the exit code says what happened:
//
//	0  nothing was found at or above --fail-on
//	1  something was found
//	2  wrong usage, unusable input, or no view of the processes
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	w := system()
	done := make(chan int, 1)
	go func() { done <- run(ctx, os.Args[1:], w) }()
	select {
	case code := <-done:
		stop()
		os.Exit(code)
	case <-ctx.Done():
	}
	// It may wait for a file that does not answer (a pipe, a terminal), which nothing can end.
	select {
	case <-done:
	case <-time.After(200 * time.Millisecond):
	}
	w.say(&problem{what: "interrupted", hint: "nothing was ended or changed"})
	os.Exit(exitTrouble)
}

// system is the world as the operating system has it.
func system() *world {
	return &world{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, now: time.Now, look: lookLive, program: ownPath}
}
