package process

import (
	"testing"

	"mcpdoctor/scan"
)

// The value of --config is no command, so that the first process of a container did start what is below it.
func TestConfiguredGatewayOfContainer(t *testing.T) {
	s := &scan.Snapshot{Host: scan.Host{OS: "linux", Container: true}, Processes: []scan.Process{
		{PID: 1, Args: []string{"/main", "--config", "/config/config.json"}},
		{PID: 7, PPID: 1, Args: []string{"node", "/srv/tools/server.js"}},
	}}
	for _, program := range []string{"/usr/local/bin/mcp-proxy", "/app/build/mcp-proxy"} {
		s.Processes[0].Args[0] = program
		r := Recognise(s)
		if rec := r.Recognitions[1]; rec.RoleOrNone() != RoleServer || rec.By != ByRelation {
			t.Errorf("%s: its child is %+v", program, rec)
		}
	}
}
