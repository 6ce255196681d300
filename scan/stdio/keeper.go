package stdio

import (
	"bufio"
	"context"
	"crypto/rand"
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
	"mcpdoctor/scan/facts"
)

// The keeper is the process that a check runs in. It has no other children, and on Linux adopts what
// loses its parent below it, so that all its children are the server's, whoever had started mcpdoctor
// and whatever that had started before. When mcpdoctor dies its stdin is at its end, and it ends all
// that it has started.

// keeping is what a keeper is told besides the command, which are words of its own: they need not be
// UTF-8.
type keeping struct {
	Mark                   string
	Startup, Rest, Timeout time.Duration
	Client                 []string
	Name, Version          string
}

// word is one line of what a keeper says: one of these.
type word struct {
	Step    facts.Way    `json:",omitempty"`
	Known   *scan.ID     `json:",omitempty"` // one of the processes of the server
	Found   *facts.Stdio `json:",omitempty"`
	Failure *keptFailure `json:",omitempty"`
	Error   string       `json:",omitempty"`
}

// keptFailure is a [facts.Failure] whose cause has become its words.
type keptFailure struct {
	facts.Failure
	Cause string
}

// Check starts a stdio server as a client does, brings it to its end in each of the three ways,
// after a fresh start each, and returns what was seen. It takes as long as the server needs, at most
// three times a start and the time-out.
//
// Whatever happens, all that was started is ended before it returns, also when ctx ends (within about
// two seconds then). Should this process itself be killed, the keeper does that; should the keeper be
// killed, this process does.
//
// The error is a [*facts.Failure] when the command cannot be started or is no MCP server, that of ctx when
// it has ended, or says that the processes cannot be seen.
func Check(ctx context.Context, o Options) (*facts.Stdio, error) {
	told := keeping{Mark: markName + "=" + rand.Text(), Startup: o.Startup, Rest: o.Rest, Timeout: o.Timeout, Client: o.Client, Name: o.Name, Version: o.Version}
	text, err := json.Marshal(told)
	if err != nil {
		return nil, err
	}
	k, err := newKin(ctx, selfPID(), told.Mark, o.Now)
	if err != nil {
		return nil, err
	}
	restore, err := adopt() // whom a killed keeper leaves
	if err != nil {
		return nil, err
	}
	defer restore()

	words := slices.Concat(o.Keeper, []string{string(text)}, o.Command)
	keeper := exec.Command(words[0], words[1:]...)
	keeper.Env = o.Env
	apart(keeper)
	in, err := keeper.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := keeper.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := keeper.Start(); err != nil {
		return nil, fmt.Errorf("cannot start what runs the check: %w", err)
	}
	defer context.AfterFunc(ctx, func() { in.Close() })()

	last := hear(out, o.Step, k)
	in.Close()
	_ = keeper.Wait() // what it has said tells how it went
	switch {
	case last.Found != nil:
		return last.Found, nil
	case ctx.Err() != nil && last.said():
		return nil, ctx.Err()
	case last.Failure != nil:
		f := last.Failure.Failure
		if last.Failure.Cause != "" {
			f.Cause = errors.New(last.Failure.Cause)
		}
		return nil, &f
	case last.Error != "":
		return nil, errors.New(last.Error)
	}
	k.clear(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("what runs the check has ended before it (%s)", keeper.ProcessState)
}

// said tells that a keeper has come to its end.
func (w word) said() bool { return w.Found != nil || w.Failure != nil || w.Error != "" }

// hear listens to a keeper until it has come to its end, or is dead, and returns its last word. Who is
// known to it is then known to k.
func hear(out io.Reader, step func(facts.Way), k *kin) (last word) {
	words := json.NewDecoder(bufio.NewReader(out))
	for !last.said() {
		last = word{}
		if words.Decode(&last) != nil {
			return word{}
		}
		if last.Known != nil {
			k.remember(*last.Known)
		}
		if last.Step != "" && step != nil {
			step(last.Step)
		}
	}
	return last
}

// PlayKeeper is the keeper: it checks, and writes to out what it finds. args are what it was started
// with, env is what the server is started with. When in is at its end, the check is called off.
func PlayKeeper(ctx context.Context, args, env []string, in io.Reader, out io.Writer, now func() time.Time) error {
	var told keeping
	if len(args) < 2 {
		return errors.New("there is nothing to check")
	}
	if err := json.Unmarshal([]byte(args[0]), &told); err != nil {
		return err
	}
	// Who listens may be dead. That must not end the keeper, and is not ignored either, which would be
	// handed down to the server.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	lines := json.NewEncoder(out)
	say := func(w word) { _ = lines.Encode(w) }
	found, err := checkHere(ctx, Options{
		Command: args[1:], Env: env, Startup: told.Startup, Rest: told.Rest, Timeout: told.Timeout, Client: told.Client,
		Name: told.Name, Version: told.Version, Now: now, Step: func(w facts.Way) { say(word{Step: w}) },
	}, told.Mark, func(id scan.ID) { say(word{Known: &id}) })
	var f *facts.Failure
	switch {
	case errors.As(err, &f):
		kept := &keptFailure{Failure: *f}
		if f.Cause != nil {
			kept.Cause = f.Cause.Error()
		}
		kept.Failure.Cause = nil
		say(word{Failure: kept})
	case err != nil:
		say(word{Error: err.Error()})
	default:
		say(word{Found: found})
	}
	return nil
}
