package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
)

// stubbornServers answer each line of their stdin, and stay when there are no more: a timer, a thread,
// a goroutine keeps them. Their arguments are how long they take to start, how long each answer takes,
// both in milliseconds, and how many bytes long it is. Those in Python and Go answer one after another.
// %s is where the code of the rule goes.
var stubbornServers = map[string]struct {
	file, text string
	command    func(file string) []string
}{
	"node": {"server.mjs", `
%s
import readline from 'node:readline';
const [start, answer, size] = process.argv.slice(2).map(Number);
setInterval(() => {}, 30_000);
await new Promise((done) => setTimeout(done, start));
readline.createInterface({ input: process.stdin }).on('line', (l) =>
  setTimeout(() => process.stdout.write('answer to ' + l + '.'.repeat(size) + '\n'), answer));
`, func(file string) []string { return []string{"node", file} }},
	"python": {"server.py", `
%s
import sys, threading, time

start, answer, size = map(int, sys.argv[1:])

def work():
    while True:
        time.sleep(30)

threading.Thread(target=work).start()
time.sleep(start / 1000)
for line in sys.stdin or []:
    time.sleep(answer / 1000)
    print("answer to " + line.strip() + "." * size, flush=True)
`, func(file string) []string { return []string{"python3", file} }},
	"go": {"main.go", `package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

%s

var _ sync.Mutex

func main() {
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(os.Args[i+1])
	}
	time.Sleep(time.Duration(n[0]) * time.Millisecond)
	in, out := bufio.NewScanner(STDIN), STDOUT
	for in.Scan() {
		time.Sleep(time.Duration(n[1]) * time.Millisecond)
		fmt.Fprintln(out, "answer to "+in.Text()+strings.Repeat(".", n[2]))
	}
	for {
		time.Sleep(time.Hour)
	}
}
`, nil},
}

// stubborn returns the command of a stubborn server with the code of the rule, and of one without.
func stubborn(t *testing.T, runtime string) (with, without []string) {
	t.Helper()
	if testing.Short() {
		t.Skip("LAB SKIPPED: -short leaves out what starts real servers")
	}
	program := map[string]string{"python": "python3"}[runtime]
	if program == "" {
		program = runtime
	}
	if _, err := exec.LookPath(program); err != nil {
		unavailable(t, program+" is not installed")
	}
	code := ""
	for _, s := range rules.Lookup("orphan").Code {
		if s.Runtime == runtime {
			code = s.Code
		}
	}
	if code == "" {
		t.Fatalf("the rule has no code for %s", runtime)
	}
	server := stubbornServers[runtime]
	return build(t, server.file, fill(server.text, code, true), server.command), build(t, server.file, fill(server.text, "", false), server.command)
}

// The code that the rule about orphans gives out, word for word, ends a server that does not end by
// itself: when its client closes a pipe, closes or half closes a socket; and not before it has answered.
func TestLabWatchersEndStubbornServers(t *testing.T) {
	for runtime := range stubbornServers {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			with, without := stubborn(t, runtime)
			for _, wire := range []string{"pipe", "socket", "half"} {
				t.Run(wire, func(t *testing.T) {
					t.Parallel()
					if !endsAt(t, append(slices.Clip(with), "0", "0", "0"), wire, 20*time.Second) {
						t.Error("with the code of the rule it stays")
					}
				})
			}
			t.Run("without", func(t *testing.T) {
				t.Parallel()
				if endsAt(t, append(slices.Clip(without), "0", "0", "0"), "pipe", 8*time.Second) {
					t.Error("without the code it ends too, so that this proves nothing")
				}
			})
		})
	}
}

// Nothing that was sent before stdin was closed is lost: of printf requests | server, where the server
// takes long to start, and for each answer; and where the answer is large, and taken late.
func TestLabWatchersLoseNothing(t *testing.T) {
	for runtime := range stubbornServers {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			with, _ := stubborn(t, runtime)
			for _, c := range []struct {
				name, start, answer, size string
				late                      time.Duration // before anything is read
			}{
				{"slow", "7000", "900", "0", 0},
				{"large", "0", "0", "5000000", 8 * time.Second},
			} {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					cmd := exec.Command(with[0], append(slices.Clip(with[1:]), c.start, c.answer, c.size)...)
					cmd.Stdin, cmd.Stderr = theEndOf(t, "one\ntwo\nthree\n"), os.Stderr
					out, err := cmd.StdoutPipe()
					if err != nil {
						t.Fatal(err)
					}
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					limit := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
					defer limit.Stop()
					time.Sleep(c.late)
					text, _ := io.ReadAll(out)
					_ = cmd.Wait()
					if !cmd.ProcessState.Success() {
						t.Errorf("it ended with %s", cmd.ProcessState)
					}
					var got []string
					for line := range strings.Lines(string(text)) {
						got = append(got, fmt.Sprintf("%s %d", strings.TrimRight(line, ".\n"), strings.Count(line, ".")))
					}
					if want := []string{"answer to one " + c.size, "answer to two " + c.size, "answer to three " + c.size}; !slices.Equal(got, want) {
						t.Errorf("it answered %q", got)
					}
				})
			}
		})
	}
}

// theEndOf is a pipe into which a text was written, and that was closed.
func theEndOf(t *testing.T, text string) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return r
}

// Without any stdin there is nothing to watch, and the server starts: Python has none to read then, and
// answers nothing.
func TestLabWatcherWithoutStdin(t *testing.T) {
	t.Parallel()
	with, _ := stubborn(t, "python")
	cmd := exec.Command("sh", append([]string{"-c", `exec "$@" <&-`, "sh"}, append(slices.Clip(with), "0", "0", "0")...)...)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(3*time.Second, func() { _ = cmd.Process.Kill() }) // it is stubborn
	_ = cmd.Wait()
	if said.Len() > 0 {
		t.Errorf("it says %s", said.String())
	}
}

// fill puts the code in its place, and uses it where that is not done by itself.
func fill(text, code string, with bool) string {
	in, out := "os.Stdin", "os.Stdout"
	if with {
		in, out = "w", "w"
		text = strings.Replace(text, "\tin, out :=", "\tw := &wire{}\n\tin, out :=", 1)
	}
	return strings.NewReplacer("STDIN", in, "STDOUT", out).Replace(fmt.Sprintf(text, code))
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
