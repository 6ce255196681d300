package stdio

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
)

func selfPID() int { return os.Getpid() }

// run is one start of the server.
type run struct {
	c       *checker
	cmd     *exec.Cmd
	wires   *wires
	session *mcp.ClientSession
	exited  chan struct{} // closed when cmd has ended and was waited for
	client  bool          // cmd is the client in front of the server
}

// classic is the newest version of the protocol whose handshake is initialize, which is what clients
// of today begin with. Who refuses it is asked for the revision that has none.
const classic = "2025-11-25"

// start starts the server, behind a client of its own when that is to be killed, and does the
// handshake. After an error nothing of it is left.
func (c *checker) start(ctx context.Context, client bool) (*run, error) {
	r, err := c.launch(client)
	if err != nil {
		return nil, err
	}
	if err = c.attend(ctx, func() error { return r.handshake(ctx) }); err == nil {
		return r, nil
	}
	r.end(ctx)
	var f *facts.Failure
	if ctx.Err() == nil && !c.newest && errors.As(err, &f) && f.Kind == facts.RefusedHandshake {
		c.newest = true
		again, err := c.start(ctx, client)
		if err == nil {
			return again, nil
		}
		c.newest = false // the first refusal says more
	}
	return nil, err
}

// launch starts the command with pipes of its own.
func (c *checker) launch(client bool) (*run, error) {
	words := c.o.Command
	if client {
		words = slices.Concat(c.o.Client, words)
	}
	w, t, err := newWires()
	if err != nil {
		return nil, err
	}
	defer t.close()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(slices.Clone(c.o.Env), c.kin.mark)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.stdin, t.stdout, t.stderr
	apart(cmd)
	if err := cmd.Start(); err != nil {
		w.close()
		return nil, notStarted(words[0], err)
	}
	r := &run{c: c, cmd: cmd, wires: w, exited: make(chan struct{}), client: client}
	c.kin.own[cmd.Process.Pid] = true
	c.kin.hidden[cmd.Process.Pid] = client
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		close(r.exited)
	}()
	w.listen()
	return r, nil
}

// handshake does what clients do first: it introduces itself and lists the tools.
func (r *run) handshake(ctx context.Context) error {
	begun := r.c.o.Now()
	ctx, cancel := context.WithTimeout(ctx, r.c.o.Startup)
	defer cancel()
	version := classic
	if r.c.newest {
		version = "" // the SDK's newest
	}
	client := mcp.NewClient(&mcp.Implementation{Name: r.c.o.Name, Version: r.c.o.Version}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	transport := &mcp.IOTransport{Reader: r.wires.messages, Writer: input{r.wires}}
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return r.failure(ctx, err)
	}
	r.session = session
	if !r.client { // whose own start would be part of it
		r.c.out.Startups = append(r.c.out.Startups, r.c.o.Now().Sub(begun))
	}
	if r.first() {
		r.c.out.Server = introduction(session.InitializeResult())
	}
	return r.listTools(ctx)
}

func introduction(said *mcp.InitializeResult) facts.Server {
	s := facts.Server{Protocol: said.ProtocolVersion}
	if said.ServerInfo != nil {
		s.Name, s.Version = said.ServerInfo.Name, said.ServerInfo.Version
	}
	return s
}

// first tells that this is the start that the facts about the server come from.
func (r *run) first() bool { return len(r.c.out.Startups) == 1 && !r.client }

// mostTools ends a list that does not end by itself.
const mostTools = 10_000

// listTools counts the tools. A server that fails at it is one nevertheless.
func (r *run) listTools(ctx context.Context) error {
	if can := r.session.InitializeResult().Capabilities; can == nil || can.Tools == nil {
		return nil
	}
	n := 0
	for _, err := range r.session.Tools(ctx, nil) {
		if err != nil {
			select {
			case <-r.exited:
				return r.failure(ctx, err)
			default:
			}
			if ctx.Err() != nil {
				return r.failure(ctx, err)
			}
			if r.first() {
				r.c.out.Problems = append(r.c.out.Problems, "its tools could not be listed: "+err.Error())
			}
			return nil
		}
		if n++; n == mostTools {
			break
		}
	}
	if r.first() {
		r.c.out.Server.Tools = n
	}
	return nil
}

// failure says why there was no handshake.
func (r *run) failure(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	f := &facts.Failure{Kind: facts.NoServer, Cause: err, Waited: r.c.o.Startup}
	// When it closes its stdout it is mostly about to end; then that is the reason.
	const ending = 500 * time.Millisecond
	late := time.NewTimer(ending)
	defer late.Stop()
	select {
	case <-r.exited:
		select {
		case <-r.wires.heard: // what it said last
		case <-late.C:
		}
	case <-late.C:
	}
	noise, stderr := r.wires.said()
	f.Stderr, f.Stdout = stderr, noise.First
	wrong := r.wires.wrong()
	var answered *jsonrpc.Error
	select {
	case <-r.exited:
		f.Kind, f.Cause, f.Status = facts.ExitedEarly, nil, r.cmd.ProcessState.String()
		return f
	default:
	}
	switch {
	case errors.As(err, &answered) && !errors.Is(wrong, errEcho):
		f.Kind, f.Cause = facts.RefusedHandshake, answered
	case wrong != nil:
		f.Cause = wrong
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.Kind, f.Cause = facts.NeverAnswered, nil
	}
	return f
}

// top returns the process that was started first, or that the client started; nil when it has ended.
func (r *run) top(tree []*scan.Process) *scan.Process {
	for _, p := range tree {
		if pid := r.cmd.Process.Pid; !r.client && p.PID == pid || r.client && p.PPID == pid {
			return p
		}
	}
	return nil
}

// end ends all that this start has brought.
func (r *run) end(ctx context.Context) {
	r.wires.close()
	if r.client {
		_ = r.cmd.Process.Kill() // it may be dead already
	}
	r.c.out.Left = r.c.kin.clear(ctx)
	if r.session != nil {
		_ = r.session.Close() // its wires are closed
	}
	t := time.NewTimer(hurried)
	defer t.Stop()
	select {
	case <-r.exited:
		delete(r.c.kin.own, r.cmd.Process.Pid)
		delete(r.c.kin.hidden, r.cmd.Process.Pid)
	case <-t.C: // it may not be ended, and is among those who are left
	}
}
