package rules

import (
	"path"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules/command"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// pairing is how far apart a `docker run` client and its container may start. The container follows within a
// second; a pull or a busy daemon takes longer.
const pairing = 10 * time.Second

// contained reports whether an instance is the main process of a container, seen from the host: its parent
// is the container's shim, or an init that docker put between.
func (j *judgement) contained(in *process.Instance) bool { return j.shim(in) != nil }

// shim returns the shim of the container whose main process the instance is; nil for none.
func (j *judgement) shim(in *process.Instance) *scan.Process {
	at := j.Forest.Parent[in.RootNode]
	if at != process.None && containerInits[process.BaseName(j.Process(at))] {
		at = j.Forest.Parent[at]
	}
	if at == process.None {
		return nil
	}
	if name := process.BaseName(j.Process(at)); strings.HasPrefix(name, "containerd-shim") || name == "conmon" {
		return j.Process(at)
	}
	return nil
}

// containerInits are the inits of `docker run --init` and the like.
var containerInits = map[string]bool{"docker-init": true, "tini": true, "dumb-init": true, "catatonit": true}

// findContainers finds the containers of stdio servers whose `docker run -i` client has exited: a container
// belongs to the daemon and outlives its client. The process table links the two by start time and image
// name only.
func (j *judgement) findContainers(gone orphans) {
	clients := slices.DeleteFunc(slices.Clone(j.Instances), func(in *process.Instance) bool {
		return in.Recognition.Command.Kind != command.KindImage
	})
	for _, in := range j.WithRole(process.RoleServer) {
		if in.Service != nil || !j.contained(in) || len(in.Listen()) > 0 || process.SpeaksHTTP(in.Recognition.Command) {
			continue
		}
		if client := clientOf(in, clients); client != nil {
			clients = slices.DeleteFunc(clients, func(c *process.Instance) bool { return c == client })
			in.Owner = process.Owner{Kind: client.Owner.Kind, PID: client.Root().PID, Name: launcherName(client.Recognition)}
			if in.Owner.Kind == process.OwnerNobody {
				in.Owner.Kind = process.OwnerUnknown
			}
			continue
		}
		gone[in] = &orphanCandidate{in: in, confidence: process.Likely,
			proof: "no docker run client of this image started at the same time",
			doubt: "its client may run on another machine, and docker stop is the way to terminate a container"}
	}
}

// containerRemedy is to stop containers by docker, which also removes them, and by their id.
func (j *judgement) containerRemedy(subjects []*process.Instance) Remedy {
	r := Remedy{
		Summary: "stop the containers by their id, not by their image, which would stop the one in use as well",
		Steps: []string{
			"check that they are not in use: their client may run on another machine",
			"give docker run a --name or --label per session to distinguish them; or run the server without docker",
		},
	}
	var ids []string
	for _, in := range subjects {
		if id := j.containerID(in); id != "" {
			ids = append(ids, id)
		}
	}
	r.Commands = []string{"docker ps"}
	if n := len(ids); n > 0 && n <= 16 { // on one line
		r.Commands = []string{"docker stop " + strings.Join(ids, " ")}
	}
	return r
}

// containerID is the container's id in the short form that docker prints, from the command line of its shim
// (containerd-shim -id ID) or the name of its control group; "" when neither has it.
func (j *judgement) containerID(in *process.Instance) string {
	const short, whole = 12, 64
	args := j.shim(in).Args
	for i, a := range args {
		if (a == "-id" || a == "--id") && i+1 < len(args) && isHex(args[i+1]) {
			return args[i+1][:min(short, len(args[i+1]))]
		}
	}
	// docker-ID.scope, /docker/ID, libpod-ID.scope, cri-containerd-ID.scope, crio-ID.scope
	id := strings.TrimSuffix(path.Base(in.Root().Cgroup), ".scope")
	id = id[strings.LastIndexByte(id, '-')+1:]
	if len(id) == whole && isHex(id) {
		return id[:short]
	}
	return ""
}

func isHex(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdef") == "" }

// clientOf returns the client that started closest to a container of its image; nil for none.
func clientOf(in *process.Instance, clients []*process.Instance) (best *process.Instance) {
	least := pairing
	for _, c := range clients {
		d := c.Root().Started.Sub(in.Root().Started).Abs()
		if d <= least && imageRuns(c.Recognition.Command.Program, in.Recognition.Command.Program) {
			best, least = c, d
		}
	}
	return best
}

// imageRuns reports whether a program may be the one that an image is named after:
// "ghcr.io/github/github-mcp-server" and "github-mcp-server", "mcp/time" and "mcp-server-time".
func imageRuns(image, program string) bool {
	base, prog := path.Base(image), path.Base(program)
	return base == prog || strings.Contains(prog, base) || strings.Contains(base, prog)
}
