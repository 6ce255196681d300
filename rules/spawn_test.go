package rules

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules/process"
	"mcpdoctor/testdata/tables"
)

// What a gateway's flags, its version and its connections say about the servers below it.
func TestGatewayModes(t *testing.T) {
	const super = "node /x/node_modules/.bin/supergateway --stdio /x/s.mjs --port 8000"
	minutes := func(of ...int) []time.Duration {
		var out []time.Duration
		for _, m := range of {
			out = append(out, time.Duration(m)*time.Minute)
		}
		return out
	}
	seconds := func(of ...int) []time.Duration {
		var out []time.Duration
		for _, s := range of {
			out = append(out, time.Duration(s)*time.Second)
		}
		return out
	}
	for _, c := range []struct {
		name            string
		gateway         string
		version         string
		ages            []time.Duration // of the servers, which get the PIDs 201, 202 ...
		connections     int
		safe, onRequest []int
		silence         int64 // seconds; 0 when the system does not tell
	}{
		{"stateless, before 4", super + " --outputTransport streamableHttp", "3.4.3", seconds(120, 90, 60, 1), 0, []int{201, 202, 203}, nil, 0},
		{"the same, all at work", super + " --outputTransport streamableHttp", "3.4.3", seconds(20, 15, 10, 5, 1), 5, nil, nil, 0},
		{"the same, just answered: nobody waits", super + " --outputTransport streamableHttp", "3.4.3", seconds(20, 15, 10, 5, 1), 0, []int{201, 202, 203, 204}, nil, 0},
		{"the same, two left and many at work", super + " --outputTransport streamableHttp", "3.4.3", seconds(3000, 2000, 20, 15, 10, 1), 4, nil, []int{201, 202}, 0},
		{"the same, one is slow, and nothing tells which", super + " --outputTransport streamableHttp", "3.4.3", seconds(200, 60, 59, 58, 57, 1), 1, nil, []int{201, 202, 203, 204, 205}, 0},
		{"the same, as many may be at work as there are", super + " --outputTransport streamableHttp", "3.4.3", seconds(200, 190, 180, 60), 3, nil, nil, 0},
		{"the same, only connections that are kept alive", super + " --outputTransport streamableHttp", "3.4.3", minutes(50, 40, 30, 20), 30, nil, []int{201, 202, 203}, 0},
		{"the same, and when the last request came is told", super + " --outputTransport streamableHttp", "3.4.3", minutes(50, 40, 30, 20, 1, 0), 2, []int{201, 202, 203, 204}, []int{205}, 30},
		{"the same, one request takes long", super + " --outputTransport streamableHttp", "3.4.3", minutes(50, 40, 30, 20, 1), 2, []int{201, 202}, []int{203, 204}, 35 * 60},
		{"the same, only connections that are kept alive, and it is told", super + " --outputTransport streamableHttp", "3.4.3", minutes(50, 40, 30, 20), 30, nil, []int{201, 202, 203}, 3600},
		{"the same, one server only", super + " --outputTransport streamableHttp", "3.4.3", minutes(50), 0, nil, nil, 0},
		{"stateless, version not seen, young", super + " --outputTransport streamableHttp", "", seconds(120, 90, 60, 1), 0, nil, []int{201, 202, 203}, 0},
		{"stateless, version not seen, some old", super + " --outputTransport streamableHttp", "", minutes(60, 20, 2, 0), 0, []int{201, 202}, []int{203}, 0},
		{"stateless, 4", super + " --outputTransport streamableHttp", "4.0.0", minutes(4, 3, 2, 1), 0, nil, nil, 0},
		{"stateless, 4, older than it keeps any", super + " --outputTransport streamableHttp", "4.0.0", minutes(60, 50, 40, 30), 0, nil, []int{201, 202, 203}, 0},
		{"SSE: one server is for all", super, "3.4.3", minutes(60), 0, nil, nil, 0},
		{"SSE: not judged as stateless", super + " --outputTransport sse", "3.4.3", minutes(60, 50, 40), 0, nil, nil, 0},
		{"stateful with a timeout, in use", super + " --outputTransport streamableHttp --stateful --sessionTimeout 15000", "3.4.3", minutes(9, 5, 1), 3, nil, nil, 0},
		{"stateful, as many connections as servers", super + " --outputTransport streamableHttp --stateful --sessionTimeout 60000", "3.4.3", minutes(40, 35, 30, 25, 20, 15), 6, nil, nil, 0},
		{"stateful without a timeout, few", super + " --outputTransport streamableHttp --stateful", "3.4.3", minutes(600, 500, 400), 0, nil, nil, 0},
		{"stateful without a timeout, many", super + " --outputTransport streamableHttp --stateful", "3.4.3", minutes(600, 500, 400, 300, 200, 100), 0, nil, []int{201, 202, 203, 204, 205}, 0},
		{"docker, one container per call", "docker mcp gateway run", "", minutes(60, 30, 10), 0, nil, []int{201, 202}, 0},
		{"docker, containers that are kept", "docker mcp gateway run --long-lived", "", minutes(60, 30, 10), 0, nil, nil, 0},
		{"one per named server", "mcp-proxy --port 80 -- /x/s.mjs", "", minutes(600), 0, nil, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := tables.NewMachine()
			g := h.Run(200, 100, 24*time.Hour, c.gateway)
			g.Version, g.InboundConnections, g.Listen = c.version, &c.connections, []string{"tcp:*:8000"}
			if c.silence > 0 {
				g.InboundSilenceSeconds = &c.silence
			}
			for i, age := range c.ages {
				h.Run(201+i, 200, age, "node /x/s.mjs")
			}
			r := Judge(process.Recognise(&h.Snapshot), Options{})
			var safe, onRequest []int
			for _, f := range r.Findings {
				if f.Rule == "spawn-per-request" {
					safe, onRequest = append(safe, f.Reap.Safe...), append(onRequest, f.Reap.OnRequest...)
				} else if f.Rule != "runaway-parent" {
					t.Errorf("%s: %s", f.Rule, f.Title)
				}
			}
			if !slices.Equal(safe, c.safe) || !slices.Equal(onRequest, c.onRequest) {
				t.Errorf("safe %v, on request %v; want %v and %v", safe, onRequest, c.safe, c.onRequest)
				for _, f := range r.Findings {
					t.Log(f.Title, strings.Join(f.Evidence, "; "))
				}
			}
		})
	}
}

// A gateway that is the first process of a container has children that it did not start: what was left
// behind there, and what the script started that became the gateway.
func TestFirstProcessHasOtherChildren(t *testing.T) {
	h := tables.NewMachine()
	h.Host.Container = true
	g := &h.Processes[0]
	g.Args = strings.Fields("node /x/node_modules/.bin/supergateway --stdio /x/s.mjs --outputTransport streamableHttp --port 8000")
	g.Version, g.InboundConnections, g.Listen = "3.4.3", new(int), []string{"tcp:*:8000"}
	for i := range 3 {
		h.Run(200+i, 1, time.Duration(i+1)*time.Hour, "sshd: dev@pts/1")
		h.Run(210+i, 1, time.Duration(i+1)*time.Hour, "node /srv/app/worker.js")
		h.Run(220+i, 1, time.Duration(i+1)*time.Hour, "node /x/s.mjs")
	}
	// Another gateway, whose mode is another.
	h.Run(300, 1, 5*time.Hour, "node /x/node_modules/.bin/supergateway --stdio /x/s.mjs --outputTransport streamableHttp --stateful --port 8001").Version = "3.4.3"
	for i := range 3 {
		h.Run(310+i, 300, time.Duration(i+1)*time.Hour, "node /x/s.mjs")
	}
	var safe, onRequest []int
	for _, f := range Judge(process.Recognise(&h.Snapshot), Options{}).Findings {
		safe, onRequest = append(safe, f.Reap.Safe...), append(onRequest, f.Reap.OnRequest...)
	}
	if !slices.Equal(safe, []int{221, 222}) || len(onRequest) > 0 {
		t.Errorf("safe %v, on request %v", safe, onRequest)
	}
}

// A gateway that does not listen itself has connections that are not counted.
func TestGatewayThatDoesNotListen(t *testing.T) {
	h := tables.NewMachine()
	g, none := h.Run(200, 100, 24*time.Hour, "node /x/node_modules/.bin/supergateway --stdio 'node /x/s.mjs' --outputTransport streamableHttp --port 8000"), 0
	g.Version, g.InboundConnections, g.Listen = "3.4.3", &none, []string{}
	for i := range 5 {
		h.Run(201+i, 200, time.Duration(5-i)*time.Hour, "node /x/s.mjs")
	}
	found := 0
	for _, f := range Judge(process.Recognise(&h.Snapshot), Options{}).Findings {
		if f.Rule == "spawn-per-request" {
			found += len(f.Reap.OnRequest)
		}
		if len(f.Reap.Safe) > 0 {
			t.Errorf("%v are safe: %s", f.Reap.Safe, f.Title)
		}
	}
	if found != 4 {
		t.Errorf("%d may be ended on request, not 4", found)
	}
}
