package rules

import (
	"slices"
	"testing"
	"time"

	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/testdata/tables"
)

// Which browsers belong to nobody any more, and which only look like it.
func TestLeftovers(t *testing.T) {
	const (
		chrome  = "/opt/google/chrome/chrome --headless --enable-automation --remote-debugging-pipe --user-data-dir=/home/dev/.cache/ms-playwright-mcp/mcp-chrome-1"
		byPort  = "/opt/google/chrome/chrome --headless --enable-automation --remote-debugging-port=0 --user-data-dir=/tmp/puppeteer_dev_chrome_profile-x"
		handler = "/opt/google/chrome/chrome_crashpad_handler --monitor-self"
	)
	for _, c := range []struct {
		name            string
		build           func(h *tables.Machine)
		safe, onRequest []int
	}{
		{"adopted, nobody drives it", func(h *tables.Machine) {
			h.Run(200, 1, time.Hour, chrome).Stdin = &scan.Stdin{Type: scan.StdinPipe, Peer: scan.PeerClosed, FD: 3}
			h.Run(201, 200, time.Hour, "/opt/google/chrome/chrome --type=renderer")
			h.Run(202, 1, time.Hour, handler)
		}, []int{200, 201}, nil},
		{"adopted, with an agent at work that it has started, and a shell", func(h *tables.Machine) {
			h.Run(200, 1, time.Hour, "bun /home/dev/.claude/plugins/claude-mem/worker-service.cjs start")
			h.Run(201, 200, time.Minute, "claude -p --output-format json")
			h.Run(202, 201, time.Minute, "github-mcp-server stdio")
			h.Run(203, 200, time.Minute, "bash").TTY = "pts/3"
		}, nil, []int{200, 203}},
		{"adopted, and started by hand to log in", func(h *tables.Machine) {
			h.Run(200, 1, time.Hour, "/opt/google/chrome/chrome --user-data-dir=/home/dev/.cache/chrome-devtools-mcp/chrome-profile https://example.com")
		}, nil, []int{200}},
		{"adopted, with a shell that it has started", func(h *tables.Machine) {
			h.Run(200, 1, time.Hour, "bun /home/dev/.claude/plugins/claude-mem/worker-service.cjs start")
			h.Run(203, 200, time.Minute, "bash").TTY = "pts/3"
		}, []int{200}, []int{203}},
		{"adopted, and somebody drives it", func(h *tables.Machine) {
			h.Run(200, 1, time.Hour, chrome).Stdin = &scan.Stdin{Type: scan.StdinPipe, Peer: scan.PeerOpen, FD: 3}
		}, nil, nil},
		{"adopted, and nobody could look who drives it", func(h *tables.Machine) {
			h.Run(200, 1, time.Hour, chrome).Unreadable = []string{"stdin"}
		}, nil, []int{200}},
		{"below its server, with its crash handlers below PID 1", func(h *tables.Machine) {
			h.Run(150, 100, time.Hour, "claude")
			h.Run(160, 150, time.Hour, "node /x/node_modules/.bin/playwright-mcp")
			h.Run(200, 160, time.Hour, chrome)
			h.Run(201, 1, time.Hour, handler)
			h.Run(202, 1, time.Hour, handler)
		}, nil, nil},
		{"below a script", func(h *tables.Machine) {
			h.Run(150, 100, time.Hour, "node scrape.js")
			h.Run(200, 150, time.Hour, chrome)
		}, nil, nil},
		{"adopted, with a debugging port", func(h *tables.Machine) {
			p := h.Run(200, 1, time.Hour, byPort)
			p.Stdin, p.Listen = tables.Pipe(scan.PeerClosed), []string{"tcp:127.0.0.1:33333"}
		}, nil, []int{200}},
		{"adopted, and nobody could look whether it has a debugging port", func(h *tables.Machine) {
			p := h.Run(200, 1, time.Hour, byPort)
			p.Stdin, p.Unreadable = tables.Pipe(scan.PeerClosed), []string{"listen"}
		}, nil, []int{200}},
		{"adopted, with a debugging port to which somebody is connected", func(h *tables.Machine) {
			p, one := h.Run(200, 1, time.Hour, byPort), 1
			p.Stdin, p.Listen, p.InboundConnections = tables.Pipe(scan.PeerClosed), []string{"tcp:127.0.0.1:33333"}, &one
		}, nil, nil},
		{"a person's own browser", func(h *tables.Machine) {
			h.Run(200, 1, time.Hour, "/opt/google/chrome/chrome")
			h.Run(201, 200, time.Hour, "/opt/google/chrome/chrome --type=renderer")
		}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := tables.NewMachine()
			c.build(h)
			r := Judge(process.Recognise(&h.Snapshot), Options{})
			var safe, onRequest []int
			for _, f := range r.Findings {
				safe, onRequest = append(safe, f.Reap.Safe...), append(onRequest, f.Reap.OnRequest...)
			}
			if !slices.Equal(safe, c.safe) || !slices.Equal(onRequest, c.onRequest) {
				t.Errorf("safe %v, on request %v; want %v and %v: %+v", safe, onRequest, c.safe, c.onRequest, r.Findings)
			}
		})
	}
}
