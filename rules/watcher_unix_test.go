//go:build unix

package rules_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
)

// stubbornServers answer each line of their stdin, and stay when there are no more: a timer, a thread,
// a goroutine keeps them. %s is where the code of the rule goes.
var stubbornServers = map[string]struct {
	file, text string
	command    func(file string) []string
}{
	"node": {"server.mjs", `
%s
import readline from 'node:readline';
setInterval(() => {}, 30_000);
readline.createInterface({ input: process.stdin }).on('line', (l) => process.stdout.write('answer to ' + l + '\n'));
`, func(file string) []string { return []string{"node", file} }},
	"python": {"server.py", `
%s
import sys, threading, time

def work():
    while True:
        time.sleep(30)

threading.Thread(target=work).start()
for line in sys.stdin:
    print("answer to", line.strip(), flush=True)
`, func(file string) []string { return []string{"python3", file} }},
	"go": {"main.go", `package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"os"
	"time"
)

%s

var _, _ = io.Copy, log.Fatal

func main() {
	ENDWITHSTDIN
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Println("answer to", in.Text())
	}
	for {
		time.Sleep(time.Hour)
	}
}
`, nil},
}

// The code that the rule about orphans gives out, word for word, ends a server that does not end by
// itself: when its client closes a pipe, closes or half closes a socket; and not before it has answered.
func TestWatchersEndStubbornServers(t *testing.T) {
	code := map[string]string{"": ""}
	for _, s := range rules.Lookup("orphan").Code {
		code[s.Runtime] = s.Code
	}
	for runtime, server := range stubbornServers {
		if code[runtime] == "" {
			t.Errorf("the rule has no code for %s", runtime)
		}
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			program := map[string]string{"python": "python3"}[runtime]
			if program == "" {
				program = runtime
			}
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("NOTHING TRIED: %s is not installed, so that its code was not run", program)
			}
			with := build(t, server.file, fill(server.text, code[runtime], true), server.command)
			without := build(t, server.file, fill(server.text, "", false), server.command)
			for _, wire := range []string{"pipe", "socket", "half"} {
				if !endsAt(t, with, wire, 20*time.Second) {
					t.Errorf("%s, %s: with the code of the rule it stays", runtime, wire)
				}
			}
			if endsAt(t, without, "pipe", 3*time.Second) {
				t.Errorf("%s: without the code it ends too, so that this proves nothing", runtime)
			}
		})
	}
}

// fill puts the code in its place, and calls it where that is not done by itself.
func fill(text, code string, with bool) string {
	call := ""
	if with {
		call = "endWithStdin()"
	}
	return strings.ReplaceAll(fmt.Sprintf(text, code), "ENDWITHSTDIN", call)
}

// build writes a server and returns the command that starts it.
func build(t *testing.T, name, text string, command func(string) []string) []string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if command != nil {
		return command(file)
	}
	out := filepath.Join(dir, "server")
	c := exec.Command("go", "build", "-o", out, file)
	c.Env = append(os.Environ(), "GO111MODULE=off", "GOFLAGS=")
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("it does not compile: %v\n%s\n%s", err, said, text)
	}
	return []string{out}
}

// endsAt starts a server, asks it once, lets go of its stdin without waiting for the answer, and tells
// whether it answered and ended.
func endsAt(t *testing.T, command []string, wire string, limit time.Duration) bool {
	t.Helper()
	theirs, ours, letGo := newWire(t, wire)
	c := exec.Command(command[0], command[1:]...)
	c.Stdin, c.Stderr = theirs, os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	answered := make(chan string, 1)
	ended := make(chan struct{})
	go func() {
		in := bufio.NewReader(out)
		line, _ := in.ReadString('\n')
		answered <- line
		_, _ = in.ReadByte() // until it ends
		_ = c.Wait()
		close(ended)
	}()
	if _, err := ours.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	letGo()
	if line := <-answered; line != "answer to one\n" {
		t.Errorf("%v over a %s: the answer is %q", command, wire, line)
	}
	limitTimer := time.NewTimer(limit)
	defer limitTimer.Stop()
	select {
	case <-ended:
		return true
	case <-limitTimer.C:
		_ = c.Process.Kill()
		<-ended
		return false
	}
}

// newWire makes what clients give their servers for stdin: Python, Go and Rust a pipe, Node a socket.
func newWire(t *testing.T, kind string) (theirs, ours *os.File, letGo func()) {
	t.Helper()
	if kind == "pipe" {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		return r, w, func() { w.Close() }
	}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer client.Close()
	if theirs, err = server.(*net.UnixConn).File(); err != nil {
		t.Fatal(err)
	}
	if ours, err = client.(*net.UnixConn).File(); err != nil {
		t.Fatal(err)
	}
	if kind == "socket" {
		return theirs, ours, func() { ours.Close() }
	}
	t.Cleanup(func() { ours.Close() })
	return theirs, ours, func() {
		c, err := net.FileConn(ours)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.(*net.UnixConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
}
