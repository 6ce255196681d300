package rules

import (
	"path"
	"strings"
	"time"
)

// pairing is how far apart the starts of a `docker run` client and of its container may lie. The
// container follows its client within a second; pulling a layer or a busy daemon takes longer.
const pairing = 10 * time.Second

// contained tells that an instance is the main process of a container, as seen from the host. Its
// parent is the container's shim, whether it is in use or not; or an init that docker put between.
func (t *judgement) contained(in *instance) bool { return t.shim(in) != none }

// shim returns the process that keeps the container whose main process the instance is, or none.
func (t *judgement) shim(in *instance) int32 {
	at := t.forest.parent[in.rootNode]
	if at != none && containerInits[baseName(t.proc(at))] {
		at = t.forest.parent[at]
	}
	if at == none {
		return none
	}
	if name := baseName(t.proc(at)); strings.HasPrefix(name, "containerd-shim") || name == "conmon" {
		return at
	}
	return none
}

// containerInits are what `docker run --init` and its like start a container's program with.
var containerInits = map[string]bool{"docker-init": true, "tini": true, "dumb-init": true, "catatonit": true}

// findContainers finds the containers of stdio servers whose `docker run -i` client is gone: the
// container belongs to the daemon and does not end with its client. No link between the two can
// be seen in a process table but the moment of their start and the name of the image.
func (t *judgement) findContainers(gone map[*instance]lost) {
	var clients []*instance
	for _, in := range t.instances {
		if in.rec.Command.Kind == KindImage {
			clients = append(clients, in)
		}
	}
	taken := map[*instance]bool{}
	for _, in := range t.instances {
		if in.role != RoleServer || in.service != nil || !t.contained(in) || len(in.listen()) > 0 || speaksHTTP(in.rec.Command) {
			continue
		}
		if client := t.clientOf(in, clients, taken); client != nil {
			taken[client] = true
			in.owner = Owner{Kind: client.owner.Kind, PID: client.root().PID, Name: launcherName(client.rec)}
			if in.owner.Kind == OwnerNobody {
				in.owner.Kind = OwnerUnknown
			}
			continue
		}
		gone[in] = lost{in: in, confidence: Likely,
			proof: "no docker run client of this image was started when its container was",
			doubt: "the client may run on another machine, and a container is ended by docker stop"}
	}
}

// containerRemedy tells how to end containers: by docker, which also removes them, and by their id.
func (t *judgement) containerRemedy(subjects []*instance) Remedy {
	r := Remedy{
		Summary: "stop the containers by their id, never by their image, which would stop the one in use as well",
		Steps: []string{
			"make sure that nobody uses them: their client may run on another machine",
			"give docker run a --name or --label per session, so that they can be told apart; or run the server without docker",
		},
	}
	var ids []string
	for _, in := range subjects {
		if id := t.containerID(in); id != "" {
			ids = append(ids, id)
		}
	}
	const most = 16 // on one line
	if len(ids) > 0 && len(ids) <= most {
		r.Commands = append(r.Commands, "docker stop "+strings.Join(ids, " "))
	} else {
		r.Commands = append(r.Commands, "docker ps")
	}
	r.Commands = append(r.Commands, "mcpdoctor explain orphan")
	return r
}

// containerID is the container's id in the short form that docker prints: as its shim was told it
// (containerd-shim -id ID), or as its control group is called; "" when neither tells.
func (t *judgement) containerID(in *instance) string {
	const short = 12
	args := t.proc(t.shim(in)).Args
	for i, a := range args {
		if (a == "-id" || a == "--id") && i+1 < len(args) && isHex(args[i+1]) {
			return args[i+1][:min(short, len(args[i+1]))]
		}
	}
	// docker-ID.scope, /docker/ID, libpod-ID.scope, cri-containerd-ID.scope, crio-ID.scope
	id := strings.TrimSuffix(path.Base(in.root().Cgroup), ".scope")
	id = id[strings.LastIndexByte(id, '-')+1:]
	const whole = 64
	if len(id) == whole && isHex(id) {
		return id[:short]
	}
	return ""
}

func isHex(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdef") == "" }

func (t *judgement) clientOf(in *instance, clients []*instance, taken map[*instance]bool) *instance {
	var best *instance
	least := pairing
	started := in.root().Started
	for _, c := range clients {
		if taken[c] || !imageRuns(c.rec.Command.Program, in.rec.Command.Program) {
			continue
		}
		if d := c.root().Started.Sub(started).Abs(); d <= least {
			best, least = c, d
		}
	}
	return best
}

// imageRuns tells that a program may be the one that an image is named after:
// "ghcr.io/github/github-mcp-server" and "github-mcp-server", "mcp/time" and "mcp-server-time".
func imageRuns(image, program string) bool {
	base, prog := path.Base(image), path.Base(program)
	return base == prog || strings.Contains(prog, base) || strings.Contains(base, prog)
}
