package configured

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan/config"
)

// Schema is the version of the JSON form of a [Report]. It changes only if a reader of the present form
// would misunderstand the new one.
const Schema = 1

// Kind names the JSON form in the JSON itself.
const Kind = "mcpdoctor.config"

// Report is what the clients of one host are configured to start, how much of it runs, and what could be
// better. Strings from a file are raw, secrets included: package report makes them safe to show.
type Report struct {
	Schema int        `json:"schema"`
	Kind   string     `json:"kind"`
	Tool   rules.Tool `json:"tool"`
	Taken  time.Time  `json:"taken"`

	Servers []Server `json:"servers"` // by client, file, project and name
	Advice  []Advice `json:"advice"`  // what prevents most comes first

	Places   []config.Place `json:"places"`   // all that were looked at, in that order
	Problems []string       `json:"problems"` // one line for each broken file
}

// Server is one entry of a configuration file.
type Server struct {
	Client    string           `json:"client"`
	Name      string           `json:"name"`
	File      string           `json:"file"`
	Project   string           `json:"project,omitempty"` // empty if it is for all folders
	Transport config.Transport `json:"transport"`

	// Command and Args start it in CWD, as they are written. A running server has a URL instead.
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	CWD     string   `json:"cwd,omitempty"`
	URL     string   `json:"url,omitempty"`

	Disabled bool `json:"disabled"`

	// Instances counts its running instances, below its own client if that is known. PIDs are their
	// topmost processes, and RSSBytes is the memory of all their processes.
	Instances int   `json:"instances"`
	PIDs      []int `json:"pids"`
	RSSBytes  int64 `json:"rss_bytes"`
}

// Report returns what is configured, and how much of it runs.
func (a *Attribution) Report() *Report {
	running := make([][]*process.Instance, len(a.found.Servers))
	for _, in := range process.NewTable(a.Recognised).Instances {
		for _, i := range a.serversOf(in) {
			running[i] = append(running[i], in)
		}
	}
	out := &Report{
		Schema: Schema, Kind: Kind, Taken: a.Snapshot.Taken,
		Servers:  []Server{},
		Advice:   append([]Advice{}, a.advise(running)...),
		Places:   append([]config.Place{}, a.found.Places...),
		Problems: append([]string{}, a.found.Problems()...),
	}
	for i, s := range a.found.Servers {
		row := Server{
			Client: s.Client, Name: s.Name, File: s.File, Project: s.Project, Transport: s.Transport,
			Command: s.Command, Args: s.Args, CWD: s.CWD, URL: s.URL, Disabled: s.Disabled, Instances: len(running[i]), PIDs: []int{},
		}
		for _, in := range running[i] {
			row.PIDs = append(row.PIDs, in.Root().PID)
			row.RSSBytes += in.RSS()
		}
		slices.Sort(row.PIDs)
		out.Servers = append(out.Servers, row)
	}
	return out
}

// serversOf returns the configured servers that an instance is one of, as indexes into found.Servers: those
// whose entries started it, only those of its own client if there are any, and those whose URL it serves.
func (a *Attribution) serversOf(in *process.Instance) []int {
	var out []int
	for _, m := range in.Members {
		if out = slices.Clone(a.matches[m]); len(out) > 0 {
			break // the client started the topmost process
		}
	}
	servers := a.found.Servers
	if in.OwnedBy != nil {
		other := func(i int) bool { return servers[i].Client != in.OwnedBy.Name }
		if own := slices.DeleteFunc(slices.Clone(out), other); len(own) > 0 {
			out = own
		}
	}
	for i, s := range servers {
		if port := localPort(s.URL); port != "" && slices.ContainsFunc(in.Listen(), func(socket string) bool {
			return strings.HasPrefix(socket, "tcp:") && strings.HasSuffix(socket, ":"+port)
		}) {
			out = append(out, i)
		}
	}
	return out
}

// localPort returns the port of a URL of this machine, "" for others.
func localPort(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	switch u.Hostname() {
	case "localhost", "127.0.0.1", "::1":
		return u.Port()
	}
	return ""
}
