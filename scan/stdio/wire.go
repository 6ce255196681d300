package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpdoctor/scan/facts"
)

// wires are our ends of the three pipes of a server. Whatever it writes is read until the end, so
// that it never waits for us: what is a message goes to the session, the rest is thrown away.
type wires struct {
	stdin          *os.File
	stdout, stderr *os.File
	messages       *io.PipeReader
	heard          chan struct{} // closed when stderr has been read to its end

	mu       sync.Mutex
	noise    facts.Noise
	loud     int             // how many bytes of noise there are
	tail     []byte          // of stderr
	eof      bool            // stdout was closed by the server
	echo     bool            // it wrote a request that only clients make: ours, most likely
	asked    map[string]bool // the IDs of our requests, as they were written; true when answered
	stranger string          // an ID that it answered to though it is none of these
}

const (
	// longestLine is how much of one line is kept in memory. Messages can be long (tools with large
	// schemas, images); the SDK itself takes 16 MB.
	longestLine = 16 << 20

	// stderrTail is how much of stderr is kept, for who wants to know why a server does not start.
	stderrTail = 4 << 10

	// firstNoise is how much is kept of what is no message.
	firstNoise = 200

	// mostNoise is how much a server may write that is no message before it is given up. A banner, or
	// the log of a start, is a few KB.
	mostNoise = 4 << 20

	// stray is how long an answer may still come when there was one to a request that was never made.
	stray = 2 * time.Second
)

// theirs are the ends that the server is given.
type theirs struct{ stdin, stdout, stderr *os.File }

func (t theirs) close() {
	for _, f := range []*os.File{t.stdin, t.stdout, t.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// newWires makes the pipes. Ours are closed on exec, so that no server inherits those of another.
func newWires() (*wires, theirs, error) {
	w := wires{asked: map[string]bool{}, heard: make(chan struct{})}
	var t theirs
	var errs [3]error
	t.stdin, w.stdin, errs[0] = os.Pipe()
	w.stdout, t.stdout, errs[1] = os.Pipe()
	w.stderr, t.stderr, errs[2] = os.Pipe()
	if err := errors.Join(errs[:]...); err != nil {
		t.close()
		w.close()
		return nil, theirs{}, err
	}
	return &w, t, nil
}

// listen begins to read.
func (w *wires) listen() {
	r, messages := io.Pipe()
	w.messages = r
	go w.readStdout(messages)
	go w.readStderr()
}

func (w *wires) readStdout(messages *io.PipeWriter) {
	lines := bufio.NewReaderSize(w.stdout, 64<<10)
	for {
		line, n, err := readLine(lines, w.room())
		switch trimmed := bytes.TrimSpace(line); {
		case len(trimmed) == 0:
		case isMessage(trimmed):
			w.noteEcho(trimmed)
			w.noteAnswer(trimmed, messages)
			_, _ = messages.Write(append(trimmed, '\n')) // nobody reads any more after the handshake
		default:
			w.mu.Lock()
			if w.noise.Lines == 0 {
				w.noise.First = string(trimmed[:min(len(trimmed), firstNoise)])
			}
			w.noise.Lines++
			w.loud += n
			w.mu.Unlock()
		}
		if err == nil && w.room() > 0 {
			continue
		}
		w.mu.Lock()
		w.eof = err != nil && err != errEndless
		w.mu.Unlock()
		messages.Close()
		_, _ = io.Copy(io.Discard, w.stdout) // so that it never waits for us
		return
	}
}

// room is how much noise there may still be.
func (w *wires) room() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, mostNoise-w.loud)
}

// errEndless ends a line that goes on for longer than any message.
var errEndless = errors.New("a line does not end")

// readLine reads a line, and says how long it is. What does not begin as a message does may have as
// many bytes as noise may, what does as many as a message.
func readLine(r *bufio.Reader, noise int) (line []byte, n int, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		n += len(part)
		most := noise
		if start := bytes.TrimLeft(line, " \t\r"); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
			most = longestLine
		}
		switch {
		case err != bufio.ErrBufferFull:
			return line, n, err
		case n > most:
			return line, n, errEndless
		}
	}
}

// isMessage tells that a line is a message of JSON-RPC, or a batch of them.
func isMessage(line []byte) bool {
	if line[0] == '[' {
		return json.Valid(line)
	}
	var m struct {
		Version string `json:"jsonrpc"`
	}
	return line[0] == '{' && json.Unmarshal(line, &m) == nil && m.Version == "2.0"
}

// noteEcho sees who writes back what it is given, as cat does.
func (w *wires) noteEcho(line []byte) {
	var m struct{ Method string }
	if json.Unmarshal(line, &m) == nil && (m.Method == "initialize" || m.Method == "server/discover") {
		w.mu.Lock()
		w.echo = true
		w.mu.Unlock()
	}
}

// ask notes the IDs of what is sent.
func (w *wires) ask(line []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal(line, &m) == nil && len(m.ID) > 0 && m.Method != "" {
		w.mu.Lock()
		w.asked[string(m.ID)] = false
		w.mu.Unlock()
	}
}

// noteAnswer sees who answers, but not to a request of ours: with the ID as a string, or with one of its
// own. When no other answer comes soon, there is none to wait for.
func (w *wires) noteAnswer(line []byte, messages *io.PipeWriter) {
	var m struct {
		ID            json.RawMessage
		Method        string
		Result, Error json.RawMessage
	}
	if json.Unmarshal(line, &m) != nil || m.Method != "" || m.Result == nil && m.Error == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id := string(m.ID)
	if _, ok := w.asked[id]; ok {
		w.asked[id] = true
		return
	}
	if w.stranger != "" {
		return
	}
	w.stranger = "none"
	if len(m.ID) > 0 {
		w.stranger = id[:min(len(id), firstNoise)]
	}
	time.AfterFunc(stray, func() {
		if w.waiting() {
			messages.Close()
		}
	})
}

// waiting tells that a request of ours has not been answered.
func (w *wires) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, answered := range w.asked {
		if !answered {
			return true
		}
	}
	return false
}

func (w *wires) readStderr() {
	defer close(w.heard)
	buf := make([]byte, 4<<10)
	for {
		n, err := w.stderr.Read(buf)
		w.mu.Lock()
		w.tail = append(w.tail, buf[:n]...)
		if over := len(w.tail) - stderrTail; over > 0 {
			w.tail = append(w.tail[:0], w.tail[over:]...)
		}
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// said returns what the server wrote that was no message, and the line of its stderr that tells most.
func (w *wires) said() (noise facts.Noise, stderr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.noise, telling(string(w.tail))
}

var errEcho = errors.New("it writes back what it is given")

// wrong says why what came out of stdout is not what a server writes; nil when it may be yet.
func (w *wires) wrong() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.echo:
		return errEcho
	case w.stranger != "":
		return fmt.Errorf("it answered a request that was never made, with the ID %s", w.stranger)
	case w.noise.Lines > 0:
		return errors.New("it wrote something else than messages to stdout")
	case w.eof:
		return errors.New("it closed its stdout")
	}
	return nil
}

// troubles are the words by which a line tells what is wrong.
var troubles = []string{"error:", "exception:", "panic:", "cannot ", "failed to ", "no such ", "not found"}

// telling returns the last line that names an error, else the last line. Node writes its version
// below an error, and docker how to get help.
func telling(text string) string {
	last, named := "", ""
	for l := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "Node.js v") {
			continue
		}
		last = l
		lower := strings.ToLower(l)
		if slices.ContainsFunc(troubles, func(word string) bool { return strings.Contains(lower, word) }) {
			named = l
		}
	}
	if named != "" {
		return named
	}
	return last
}

// close closes our ends. What is still written to them ends with EPIPE.
func (w *wires) close() {
	for _, f := range []*os.File{w.stdin, w.stdout, w.stderr} {
		if f != nil {
			f.Close()
		}
	}
	if w.messages != nil {
		w.messages.Close()
	}
}

// input is stdin for the session, which must not close it: when that is done is what is tried.
type input struct{ *wires }

func (i input) Write(message []byte) (int, error) {
	i.ask(message)
	return i.stdin.Write(message)
}

func (input) Close() error { return nil }
