package endpoint

import (
	"net/http"
	"os/exec"
	"sync"
	"testing"
	"time"

	"mcpdoctor/scan/facts"
)

// spawner is an endpoint that starts processes as gateways do: this test's own process listens, and
// has them as its children.
type spawner struct {
	fake
	args  []string // what it starts for each POST that opens a session; nothing else is a request of it
	all   bool     // for every POST
	until bool     // each is ended with its answer
	late  bool     // each is started a while after its answer

	mu   sync.Mutex
	live []*exec.Cmd
}

func (s *spawner) start(t *testing.T) string {
	t.Helper()
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !s.all && (r.Header.Get("Mcp-Session-Id") != "" || r.Header.Get("MCP-Protocol-Version") != "") {
			return false
		}
		c := exec.Command(s.args[0], s.args[1:]...)
		if s.late {
			time.AfterFunc(400*time.Millisecond, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				if c.Start() == nil {
					s.live = append(s.live, c)
				}
			})
			return false
		}
		if err := c.Start(); err != nil {
			t.Error(err)
			return false
		}
		if s.until {
			_ = c.Process.Kill()
			_ = c.Wait()
			return false
		}
		s.mu.Lock()
		s.live = append(s.live, c)
		s.mu.Unlock()
		return false
	}
	url := s.serve(t).URL
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.live {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	return url
}

func lookAt(t *testing.T, e *facts.Endpoint, when facts.When) facts.Look {
	t.Helper()
	for _, l := range e.Retention.Looks {
		if l.When == when {
			return l
		}
	}
	t.Fatalf("there is no look %q; process %+v", when, e.Process)
	return facts.Look{}
}

// These do not run beside each other: all of them count the children of this process.
func TestEndpointProcesses(t *testing.T) {
	t.Run("kept", func(t *testing.T) {
		s := &spawner{args: []string{"sleep", "60"}, all: true}
		e := asked(t, options(t, s.start(t), 6))
		if l := lookAt(t, e, facts.Settled); l.SessionChildren != 6 || l.SessionProcesses != 6 || l.NewChildren != len(s.live) || l.Gone || l.Strays != 0 {
			t.Errorf("%+v", e.Retention.Looks)
		}
		if l := lookAt(t, e, facts.AtSessions); l.SessionProcesses != 0 || l.NewProcesses != len(s.live)-6 {
			t.Errorf("%+v", e.Retention.Looks)
		}
		if len(e.Process.Left) != len(s.live) || lookAt(t, e, facts.AtStart).NewProcesses != 0 {
			t.Errorf("%d are left of %d", len(e.Process.Left), len(s.live))
		}
	})
	t.Run("ended", func(t *testing.T) {
		s := &spawner{args: []string{"sleep", "60"}, all: true, until: true}
		e := asked(t, options(t, s.start(t), 6))
		if l := lookAt(t, e, facts.Settled); l.SessionProcesses != 0 || l.NewProcesses != 0 || len(e.Process.Left) != 0 {
			t.Errorf("%+v", e.Retention.Looks)
		}
	})
	t.Run("started after the answer", func(t *testing.T) {
		s := &spawner{args: []string{"sleep", "60"}, late: true}
		o := options(t, s.start(t), 4)
		o.Settling = quietTime + 500*time.Millisecond
		if l := lookAt(t, asked(t, o), facts.Settled); l.SessionChildren < 4 {
			t.Errorf("%+v", l)
		}
	})
	t.Run("ended while it settles", func(t *testing.T) {
		s := &spawner{args: []string{"sleep", "0.5"}, all: true}
		o := options(t, s.start(t), 3)
		o.Settling = 10 * time.Second
		go func() {
			for range 40 { // a parent that waits for its children, as node does
				time.Sleep(100 * time.Millisecond)
				s.mu.Lock()
				for _, c := range s.live {
					if c.ProcessState == nil {
						_ = c.Wait()
					}
				}
				s.mu.Unlock()
			}
		}()
		e := asked(t, o)
		if l := lookAt(t, e, facts.Settled); l.SessionProcesses != 0 {
			t.Errorf("%+v", e.Retention.Looks)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.live = nil
	})
	t.Run("astray", func(t *testing.T) {
		// The shell ends after a while, and what it started is adopted by somebody else.
		s := &spawner{args: []string{"sh", "-c", "sleep 5 & exec sleep 1"}, all: true}
		o := options(t, s.start(t), 3)
		o.Settling = quietTime + 500*time.Millisecond
		e := asked(t, o)
		if l := lookAt(t, e, facts.Settled); l.Strays < 3 || l.SessionChildren < 3 {
			t.Errorf("%+v", e.Retention.Looks)
		}
	})
	t.Run("with sessions", func(t *testing.T) {
		s := &spawner{fake: fake{sessions: true, unknown: 404}, args: []string{"sleep", "60"}}
		e := asked(t, options(t, s.start(t), 4))
		if lookAt(t, e, facts.Settled).SessionChildren != 4 || lookAt(t, e, facts.Cleared).SessionChildren != 4 {
			t.Errorf("%+v", e.Retention.Looks)
		}
	})
}

func TestListensAt(t *testing.T) {
	for _, c := range []struct {
		listen, host string
		want         bool
	}{
		{"tcp:127.0.0.1:80", "127.0.0.1", true}, {"tcp:*:80", "127.0.0.1", true}, {"tcp:[::1]:80", "::1", true}, {"tcp:[::1]:80", "127.0.0.1", false},
		{"tcp:10.0.0.1:80", "127.0.0.1", false}, {"tcp:127.0.0.1:8080", "127.0.0.1", false}, {"unix:/x:80", "127.0.0.1", false}, {"tcp:", "127.0.0.1", false}, {"tcp:10.0.0.1:80", "0.0.0.0", true},
	} {
		if got := listensAt([]string{c.listen}, []string{c.host}, "80"); got != c.want {
			t.Errorf("%s for %s: %v", c.listen, c.host, got)
		}
	}
}
