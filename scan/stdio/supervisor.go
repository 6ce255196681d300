package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/descendants"
	"mcpdoctor/scan/facts"
)

// The supervisor is the process that runs a check. It has no children but those of the check, whatever started
// mcpdoctor and whatever mcpdoctor had started before. When mcpdoctor dies, the supervisor reads the end of
// its stdin and terminates all that it has started. When the supervisor dies, mcpdoctor does so.

// message is one line from the supervisor. The last one has Found, Failure or Error.
type message struct {
	Step    facts.Way      `json:",omitempty"`
	Process *scan.ID       `json:",omitempty"` // of the server, newly found
	Found   *facts.Stdio   `json:",omitempty"`
	Failure *facts.Failure `json:",omitempty"` // without its Cause
	Error   string         `json:",omitempty"` // or the Cause of Failure
}

func (m message) isLast() bool { return m.Found != nil || m.Failure != nil || m.Error != "" }

// Check starts a stdio server as a client does, shuts it down in each of the three ways, after a fresh start
// each, and returns what was seen. It takes as long as the server needs, at most three times a start and the
// time-out.
//
// All that was started is terminated before Check returns, within about two seconds when ctx ends. If this
// process is killed, the supervisor does that.
//
// The error is a [*facts.Failure] when the command cannot be started or is no MCP server, that of ctx when it
// has ended, or else says why the processes cannot be seen.
func Check(ctx context.Context, o Options) (*facts.Stdio, error) {
	tree, err := descendants.New(ctx, o.Now) // of the supervisor, should it be killed
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	request, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	words := slices.Concat(o.Supervisor, []string{string(request)}, o.Command) // words need not be UTF-8, as JSON is
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = o.Env
	descendants.Detach(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the supervisor of the check: %w", err)
	}
	defer context.AfterFunc(ctx, func() { in.Close() })()
	last := readMessages(out, o.Step, tree)
	in.Close()
	_ = cmd.Wait() // its last message has the result
	switch {
	case last.Found != nil:
		return last.Found, nil
	case !last.isLast():
		tree.Terminate(ctx, o.Grace)
		err = fmt.Errorf("the supervisor of the check exited before it was done (%s)", cmd.ProcessState)
	case last.Error != "":
		err = errors.New(last.Error)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if last.Failure != nil {
		last.Failure.Cause = err
		return nil, last.Failure
	}
	return nil, err
}

// readMessages returns the last message of the supervisor, an empty one if it died before.
func readMessages(out io.Reader, step func(facts.Way), tree *descendants.Tree) message {
	lines := json.NewDecoder(out)
	for {
		var m message
		if lines.Decode(&m) != nil {
			return message{}
		}
		switch {
		case m.isLast():
			return m
		case m.Process != nil:
			tree.Remember(*m.Process)
		case step != nil:
			step(m.Step)
		}
	}
}

// RunSupervisor runs a check whose request and command are args, starts the server with env, and writes
// messages to out. The end of in stops the check.
func RunSupervisor(ctx context.Context, args, env []string, in io.Reader, out io.Writer, now func() time.Time) error {
	if len(args) < 2 {
		return errors.New("no command to check")
	}
	var o Options
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	send := func(m message) { _ = lines.Encode(m) } // mcpdoctor may be dead
	o.Command, o.Env, o.Now = args[1:], env, now
	o.Step = func(way facts.Way) { send(message{Step: way}) }

	// Writing to a dead mcpdoctor must not kill the supervisor. SIGPIPE is not ignored either: the server would
	// inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	tree, err := descendants.New(ctx, now)
	if err != nil {
		send(message{Error: err.Error()})
		return nil
	}
	defer tree.Close()
	tree.Found = func(id scan.ID) { send(message{Process: &id}) }
	last := message{}
	last.Found, err = newChecker(o, tree).run(ctx)
	if errors.As(err, &last.Failure) {
		err = last.Failure.Cause
		last.Failure.Cause = nil
	}
	if err != nil {
		last.Error = err.Error()
	}
	send(last)
	return nil
}
