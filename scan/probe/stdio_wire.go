package probe

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
)

// wires are our ends of the three pipes of a server. Whatever it writes is read until the end, so
// that it never waits for us: what is a message goes to the session, the rest is thrown away.
type wires struct {
	stdin          *os.File
	stdout, stderr *os.File
	messages       *io.PipeReader

	mu    sync.Mutex
	noise Noise
	tail  []byte // of stderr
	eof   bool   // stdout was closed by the server
	echo  bool   // it wrote a request that only clients make: ours, most likely
}

const (
	// longestLine is how much of one line is kept in memory. Messages can be long (tools with large
	// schemas, images); the SDK itself takes 16 MB.
	longestLine = 16 << 20

	// stderrTail is how much of stderr is kept, for who wants to know why a server does not start.
	stderrTail = 4 << 10

	// firstNoise is how much is kept of what is no message.
	firstNoise = 200
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
	var w wires
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
		line, err := readLine(lines)
		switch trimmed := bytes.TrimSpace(line); {
		case len(trimmed) == 0:
		case isMessage(trimmed):
			w.noteEcho(trimmed)
			_, _ = messages.Write(append(trimmed, '\n')) // nobody reads any more after the handshake
		default:
			w.mu.Lock()
			if w.noise.Lines == 0 {
				w.noise.First = string(trimmed[:min(len(trimmed), firstNoise)])
			}
			w.noise.Lines++
			w.mu.Unlock()
		}
		if err != nil {
			w.mu.Lock()
			w.eof = true
			w.mu.Unlock()
			messages.Close()
			return
		}
	}
}

// readLine reads a line, of which it keeps the beginning only when it is too long.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line) < longestLine {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return line, err
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

func (w *wires) readStderr() {
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
func (w *wires) said() (noise Noise, stderr string) {
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
type input struct{ *os.File }

func (input) Close() error { return nil }
