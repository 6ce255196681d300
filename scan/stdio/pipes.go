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

// pipes are our ends of a server's three pipes. All that the server writes is read, so that it never blocks:
// messages go to the session, the rest is counted and dropped.
type pipes struct {
	files
	messages   *io.PipeReader
	stderrRead chan struct{} // closed at the end of stderr

	mu           sync.Mutex
	noise        facts.Noise
	noiseBytes   int
	stderrTail   []byte
	eof          bool            // the server closed its stdout
	echo         bool            // it wrote a request that only clients make: ours, most likely
	requests     map[string]bool // by ID as it was sent; true when answered
	unasked      bool            // it answered a request that was never made,
	unaskedReply string          // with this ID
}

const (
	// maxMessage is how long a message may be, as in the SDK: tools have large schemas, and images.
	maxMessage = 16 << 20

	// maxNoise is how much a server may write that is no message. A banner or the log of a start is a few KB.
	maxNoise = 4 << 20

	maxFirstNoise = 200
	maxStderrTail = 4 << 10

	// answerDelay is how long the right answer may still come after one to a request that was never made.
	answerDelay = 2 * time.Second
)

// files are the ends of one side.
type files struct{ stdin, stdout, stderr *os.File }

func (f files) close() {
	for _, file := range []*os.File{f.stdin, f.stdout, f.stderr} {
		if file != nil {
			file.Close()
		}
	}
}

// newPipes returns our ends, which are closed on exec, and the server's.
func newPipes() (ours *pipes, theirs files, err error) {
	ours = &pipes{requests: map[string]bool{}, stderrRead: make(chan struct{})}
	var errs [3]error
	theirs.stdin, ours.stdin, errs[0] = os.Pipe()
	ours.stdout, theirs.stdout, errs[1] = os.Pipe()
	ours.stderr, theirs.stderr, errs[2] = os.Pipe()
	if err := errors.Join(errs[:]...); err != nil {
		theirs.close()
		ours.close()
		return nil, files{}, err
	}
	return ours, theirs, nil
}

// read starts reading.
func (p *pipes) read() {
	r, messages := io.Pipe()
	p.messages = r
	go p.readStdout(messages)
	go p.readStderr()
}

// close closes our ends: the server's writes fail with EPIPE then.
func (p *pipes) close() {
	p.files.close()
	if p.messages != nil {
		p.messages.Close()
	}
}

func (p *pipes) readStdout(messages *io.PipeWriter) {
	lines := bufio.NewReaderSize(p.stdout, 64<<10)
	for {
		line, n, err := readLine(lines, p.noiseLeft())
		trimmed := bytes.TrimSpace(line)
		m, ok := parseMessage(trimmed)
		switch {
		case len(trimmed) == 0:
		case ok:
			p.note(m, messages)
			_, _ = messages.Write(append(trimmed, '\n')) // an error after the handshake, when the session is closed
		default:
			p.noteNoise(trimmed, n)
		}
		if err == nil && p.noiseLeft() > 0 {
			continue
		}
		p.mu.Lock()
		p.eof = err != nil && err != errTooLong
		p.mu.Unlock()
		messages.Close()
		_, _ = io.Copy(io.Discard, p.stdout)
		return
	}
}

var errTooLong = errors.New("a line is too long")

// readLine reads a line and returns its length in the stream as well. A line that does not begin like a
// message may be as long as noise allows.
func readLine(r *bufio.Reader, noise int) (line []byte, n int, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		n += len(part)
		limit := noise
		if start := bytes.TrimLeft(line, " \t\r"); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
			limit = maxMessage
		}
		switch {
		case err != bufio.ErrBufferFull:
			return line, n, err
		case n > limit:
			return line, n, errTooLong
		}
	}
}

// rpcMessage has what is needed of a JSON-RPC message.
type rpcMessage struct {
	Version       string `json:"jsonrpc"`
	ID            json.RawMessage
	Method        string
	Result, Error json.RawMessage
}

// parseMessage parses a line, and reports whether it is a JSON-RPC message or a batch of them. A batch is
// returned as an empty message.
func parseMessage(line []byte) (m rpcMessage, ok bool) {
	switch {
	case bytes.HasPrefix(line, []byte("[")):
		return m, json.Valid(line)
	case bytes.HasPrefix(line, []byte("{")):
		ok = json.Unmarshal(line, &m) == nil && m.Version == "2.0"
	}
	return m, ok
}

func (p *pipes) noteNoise(line []byte, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.noise.Lines == 0 {
		p.noise.First = string(line[:min(len(line), maxFirstNoise)])
	}
	p.noise.Lines++
	p.noiseBytes += n
}

func (p *pipes) noiseLeft() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, maxNoise-p.noiseBytes)
}

// note records what a message says about the server: that it echoes what it reads, as cat does, or that it
// answers a request that was never made, with a changed ID. If no other answer comes soon after that, the
// messages end.
func (p *pipes) note(m rpcMessage, messages *io.PipeWriter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.Method == "initialize" || m.Method == "server/discover" {
		p.echo = true
	}
	if m.Method != "" || m.Result == nil && m.Error == nil {
		return
	}
	id := string(m.ID)
	if _, ok := p.requests[id]; ok {
		p.requests[id] = true
		return
	}
	if p.unasked {
		return
	}
	p.unasked, p.unaskedReply = true, "none"
	if id != "" {
		p.unaskedReply = id[:min(len(id), maxFirstNoise)]
	}
	time.AfterFunc(answerDelay, func() {
		if p.isWaiting() {
			messages.Close()
		}
	})
}

// isWaiting reports whether a request has not been answered.
func (p *pipes) isWaiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, answered := range p.requests {
		if !answered {
			return true
		}
	}
	return false
}

func (p *pipes) readStderr() {
	defer close(p.stderrRead)
	buf := make([]byte, 4<<10)
	for {
		n, err := p.stderr.Read(buf)
		p.mu.Lock()
		p.stderrTail = append(p.stderrTail, buf[:n]...)
		p.stderrTail = p.stderrTail[max(0, len(p.stderrTail)-maxStderrTail):]
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// written returns what the server wrote to stdout that was no message, and the most useful line of stderr.
func (p *pipes) written() (noise facts.Noise, stderr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.noise, usefulLine(string(p.stderrTail))
}

var errEcho = errors.New("it writes back what it is given")

// wrong says why stdout is not that of a server; nil if it may be.
func (p *pipes) wrong() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.echo:
		return errEcho
	case p.unasked:
		return fmt.Errorf("it answered a request that was never made, with the ID %s", p.unaskedReply)
	case p.noise.Lines > 0:
		return errors.New("it wrote something else than messages to stdout")
	case p.eof:
		return errors.New("it closed its stdout")
	}
	return nil
}

// errorWords mark a line that names an error.
var errorWords = []string{"error:", "exception:", "panic:", "cannot ", "failed to ", "no such ", "not found"}

// usefulLine returns the last line that names an error, else the last line: docker writes how to get help below
// an error, and Node its version.
func usefulLine(text string) string {
	last, named := "", ""
	for l := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "Node.js v") {
			continue
		}
		last = l
		lower := strings.ToLower(l)
		if slices.ContainsFunc(errorWords, func(word string) bool { return strings.Contains(lower, word) }) {
			named = l
		}
	}
	if named != "" {
		return named
	}
	return last
}

// requests is the session's writer. The session must not close stdin: when that happens is what a check tries.
type requests struct{ *pipes }

func (r requests) Write(message []byte) (int, error) {
	if m, ok := parseMessage(message); ok && len(m.ID) > 0 && m.Method != "" {
		r.mu.Lock()
		r.pipes.requests[string(m.ID)] = false
		r.mu.Unlock()
	}
	return r.stdin.Write(message)
}

func (requests) Close() error { return nil }
