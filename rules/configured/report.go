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

// ConfigurationSchema is the version of the JSON form of a [Report]. It changes only when a
// reader of the present form would misunderstand the new one.
const Schema = 1

// ConfigurationKind names the JSON form in its own text.
const Kind = "mcpdoctor.config"

// Configuration is what the clients of one host are configured to start, how much of it runs, and
// what could be better. It is a plain value: text and JSON are two readers of it.
//
// Strings that came from a file are raw here, secrets included. Package report makes them safe to
// show.
type Report struct {
	Schema int        `json:"schema"`
	Kind   string     `json:"kind"`
	Tool   rules.Tool `json:"tool"`
	Taken  time.Time  `json:"taken"`

	Servers []Server `json:"servers"` // by client, file, project and name
	Advice  []Advice `json:"advice"`  // what prevents most comes first

	// Places are all that were looked at, in that order.
	Places []config.Place `json:"places"`

	// Problems are one line for each file that is broken.
	Problems []string `json:"problems"`
}

// ConfiguredServer is one entry of a configuration file.
type Server struct {
	Client    string           `json:"client"`
	Name      string           `json:"name"`
	File      string           `json:"file"`
	Project   string           `json:"project,omitempty"` // empty when it is for all folders
	Transport config.Transport `json:"transport"`

	// Command and Args start it, as they are written, and CWD is where; URL is instead of them.
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	CWD     string   `json:"cwd,omitempty"`
	URL     string   `json:"url,omitempty"`

	Disabled bool `json:"disabled"`

	// Instances counts what runs of it now, below its own client when that is known. PIDs are those
	// of their topmost processes, and RSSBytes is what they hold with all their processes.
	Instances int   `json:"instances"`
	PIDs      []int `json:"pids"`
	RSSBytes  int64 `json:"rss_bytes"`
}

// Configuration reports what is configured, and how much of it runs.
func (c *Attribution) Report() *Report {
	out := &Report{
		Schema: Schema, Kind: Kind, Taken: c.Snapshot.Taken,
		Servers: []Server{}, Advice: []Advice{}, Places: []config.Place{}, Problems: []string{},
	}
	found := c.found
	out.Places = append(out.Places, found.Places...)
	out.Problems = append(out.Problems, found.Problems()...)
	running := make([][]*process.Instance, len(found.Servers))
	t := process.NewTable(c.Recognised)
	for _, in := range t.Instances {
		for _, i := range c.entriesOf(in) {
			running[i] = append(running[i], in)
		}
	}
	for i, s := range found.Servers {
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
	out.Advice = append(out.Advice, c.advise(running)...)
	return out
}

// entriesOf returns the entries that an instance is one of, as indexes into found.Servers: those
// that started it, without those of other clients when its own is among them; and the URLs that it
// answers.
func (c *Attribution) entriesOf(in *process.Instance) []int {
	var all []int
	for _, m := range in.Members {
		if all = c.matches[m]; len(all) > 0 {
			break // the topmost process is the one that the client started
		}
	}
	servers := c.found.Servers
	if in.OwnedBy != nil {
		own := slices.DeleteFunc(slices.Clone(all), func(i int) bool { return servers[i].Client != in.OwnedBy.Name })
		if len(own) > 0 {
			all = own
		}
	}
	all = slices.Clone(all)
	for i, s := range servers {
		if port := localPort(s.URL); port != "" && slices.ContainsFunc(in.Listen(), func(socket string) bool {
			return strings.HasPrefix(socket, "tcp:") && strings.HasSuffix(socket, ":"+port)
		}) {
			all = append(all, i)
		}
	}
	return all
}

// localPort returns the port of a URL of this machine, "" for all others.
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
