package stdio

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
)

// server is one start of the server.
type server struct {
	c          *checker
	cmd        *exec.Cmd // the server's command, or the client that starts it
	withClient bool      // cmd is the client
	pipes      *pipes
	session    *mcp.ClientSession
	exited     <-chan struct{} // closed when cmd has exited
}

// newestWithHandshake is the newest protocol version that begins with initialize, as clients of today do. A
// server that refuses it is asked for the newest version of the SDK, which has no handshake.
const newestWithHandshake = "2025-11-25"

// start starts the server, below a client of its own if that is to be killed, and does the handshake. After an
// error, nothing of it is left.
func (c *checker) start(ctx context.Context, withClient bool) (*server, error) {
	s, err := c.launch(withClient)
	if err != nil {
		return nil, err
	}
	if err = c.watchDuring(ctx, func() error { return s.handshake(ctx) }); err == nil {
		return s, nil
	}
	s.stop(ctx)
	var f *facts.Failure
	if ctx.Err() == nil && !c.stateless && errors.As(err, &f) && f.Kind == facts.RefusedHandshake {
		c.stateless = true
		again, err := c.start(ctx, withClient)
		if err == nil {
			return again, nil
		}
		c.stateless = false
	}
	return nil, err // the first refusal says more than the second
}

func (c *checker) launch(withClient bool) (*server, error) {
	command := c.o.Command
	if withClient {
		command = slices.Concat(c.o.Client, command)
	}
	p, theirs, err := newPipes()
	if err != nil {
		return nil, err
	}
	defer theirs.close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = c.o.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs.stdin, theirs.stdout, theirs.stderr
	exited, err := c.tree.Start(cmd)
	if err != nil {
		p.close()
		return nil, startFailure(command[0], err)
	}
	p.read()
	return &server{c: c, cmd: cmd, withClient: withClient, pipes: p, exited: exited}, nil
}

// RunClient is the client that a check kills: it starts the server with its own stdin, stdout and stderr, and
// waits. Killing it takes the server's parent away.
func RunClient(command []string, stdin io.Reader, stdout, stderr io.Writer) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr // files: handed down as they are
	return cmd.Run()
}

// handshake does what clients do first: it initializes the session and lists the tools.
func (s *server) handshake(ctx context.Context) error {
	began := s.c.o.Now()
	ctx, cancel := context.WithTimeout(ctx, s.c.o.Startup)
	defer cancel()
	version := newestWithHandshake
	if s.c.stateless {
		version = "" // the SDK's newest
	}
	us := &mcp.Implementation{Name: s.c.o.Name, Version: s.c.o.Version}
	client := mcp.NewClient(us, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	transport := &mcp.IOTransport{Reader: s.pipes.messages, Writer: requests{s.pipes}}
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return s.failure(ctx, err)
	}
	s.session = session
	if !s.withClient { // whose own start would be included
		s.c.out.Startups = append(s.c.out.Startups, s.c.o.Now().Sub(began))
	}
	if s.isFirst() {
		result := session.InitializeResult()
		s.c.out.Server.Protocol = result.ProtocolVersion
		if info := result.ServerInfo; info != nil {
			s.c.out.Server.Name, s.c.out.Server.Version = info.Name, info.Version
		}
	}
	return s.listTools(ctx)
}

// isFirst reports whether the facts about the server come from this start.
func (s *server) isFirst() bool { return len(s.c.out.Startups) == 1 && !s.withClient }

// maxTools cuts a list that never ends.
const maxTools = 10_000

// listTools counts the tools. A server that cannot list them is a server nevertheless.
func (s *server) listTools(ctx context.Context) error {
	if can := s.session.InitializeResult().Capabilities; can == nil || can.Tools == nil {
		return nil
	}
	n := 0
	for _, err := range s.session.Tools(ctx, nil) {
		switch {
		case err == nil:
		case s.hasExited(), ctx.Err() != nil:
			return s.failure(ctx, err)
		case s.isFirst():
			s.c.out.Problems = append(s.c.out.Problems, "its tools could not be listed: "+err.Error())
			return nil
		default:
			return nil
		}
		if n++; n == maxTools {
			break
		}
	}
	if s.isFirst() {
		s.c.out.Server.Tools = n
	}
	return nil
}

func (s *server) hasExited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// failure explains a failed handshake.
func (s *server) failure(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	// A server that closes its stdout is mostly about to exit, and its last line on stderr says why.
	const exitDelay = 500 * time.Millisecond
	late := time.After(exitDelay)
	for _, done := range []<-chan struct{}{s.exited, s.pipes.stderrRead} {
		select {
		case <-done:
			continue
		case <-late:
		}
		break
	}
	f := &facts.Failure{Kind: facts.NoServer, Cause: err, Waited: s.c.o.Startup}
	noise, stderr := s.pipes.written()
	f.Stderr, f.Stdout = stderr, noise.First
	wrong := s.pipes.wrong()
	var answered *jsonrpc.Error
	switch {
	case s.hasExited():
		f.Kind, f.Cause, f.Status = facts.ExitedEarly, nil, s.cmd.ProcessState.String()
	case errors.As(err, &answered) && !errors.Is(wrong, errEcho):
		f.Kind, f.Cause = facts.RefusedHandshake, answered
	case wrong != nil:
		f.Cause = wrong
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.Kind, f.Cause = facts.NeverAnswered, nil
	}
	return f
}

// look is [descendants.Tree.Look] without the client.
func (s *server) look(ctx context.Context) (*scan.Snapshot, []*scan.Process, error) {
	snapshot, tree, err := s.c.tree.Look(ctx)
	if s.withClient {
		tree = slices.DeleteFunc(tree, func(p *scan.Process) bool { return p.PID == s.cmd.Process.Pid })
	}
	return snapshot, tree, err
}

// top returns the process of the server's command, nil if it has exited.
func (s *server) top(tree []*scan.Process) *scan.Process {
	for _, p := range tree {
		if pid := s.cmd.Process.Pid; p.PID == pid || s.withClient && p.PPID == pid {
			return p
		}
	}
	return nil
}

// stop terminates all that this start has brought.
func (s *server) stop(ctx context.Context) {
	s.pipes.close()
	s.c.terminate(ctx)
	if s.session != nil {
		_ = s.session.Close() // its pipes are closed
	}
	select {
	case <-s.exited:
	case <-time.After(hurriedGrace): // it could not be terminated, and is among those left
	}
}
