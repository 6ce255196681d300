package catalog

import (
	"slices"
	"strings"
	"time"
)

// Gateway is everything that is known about one gateway: a server to one side and a client to the other, which
// starts servers of its own and may forget them. A nil Gateway is a program that is only called one because it started servers.
type Gateway struct {
	Name string // as people call it

	// Programs are the rows by which it is recognised, in the format of gateways.txt. Empty for one from that file.
	Programs string

	// ConfigFlags are the options whose value is a file with the servers that it starts.
	ConfigFlags []string

	// targets finds the commands that it starts; nil for what follows "--".
	targets func(Args) []Target

	// mode and transport read how it uses its servers and how its clients reach it; nil when that is not known.
	mode      func(Run) Mode
	transport func(Run) string

	// Advice is about its entries in the configuration of clients.
	Advice *Advice

	// Remedies for what `probe` finds at an endpoint, in place of the general ones.
	Remedies Remedies
}

// Advice is something about a configured gateway that prevents leaks when it is changed.
type Advice struct {
	Title, Why, Remedy string
	Note               func(Run) string // about one entry; empty when it needs no change
}

// Remedies are sentences for the rules that judge an endpoint. They begin with the name of the gateway.
type Remedies struct {
	Spawn          string // it keeps a process for each request or session
	SSE            string // it speaks the deprecated transport
	UnknownSession string // it does not answer 404 to an unknown session
	IdleSession    string // it keeps the sessions that clients drop
}

// The ages from which a server that a gateway started counts as left over.
const (
	RequestAge = 30 * time.Second // it was started for one request
	SessionAge = 10 * time.Minute // it was started for a session
)

// Mode is how a gateway uses the servers that it starts.
type Mode struct {
	PerRequest bool          // each server is for one request
	AtLeast    int           // the number of left-over copies that makes a finding
	Idle       time.Duration // the age from which a copy counts as left over
	Proved     time.Duration // the age from which that is certain; 0 for never
	NeverEnds  bool          // the server of a session that was not closed stays for ever
	Why        string        // what this is read from
	Missing    []string      // the options without which it does so
	Remedy     string
}

var anyMode = Mode{
	AtLeast: 5, Idle: SessionAge, Why: "one server per session is the most that it needs",
	Remedy: "update the gateway, or configure it to terminate its servers",
}

// Targets returns the commands that the gateway starts. Nil when they are in a configuration file, or
// when the command line does not say (pm2 cuts those of its jobs).
func (g *Gateway) Targets(a Args) []Target {
	if g == nil || g.targets == nil {
		return afterDashes(a)
	}
	return g.targets(a)
}

// Mode returns how the gateway uses its servers.
func (g *Gateway) Mode(r Run) Mode {
	if g == nil || g.mode == nil {
		return anyMode
	}
	return g.mode(r)
}

// Transport describes how clients reach the gateway; empty when nothing special is known.
func (g *Gateway) Transport(r Run) string {
	if g == nil || g.transport == nil {
		return ""
	}
	return g.transport(r)
}

// registered are the gateways that have a file of their own.
var registered []*Gateway

func register(g Gateway) *Gateway {
	registered = append(registered, &g)
	return &g
}

// AllGateways returns every gateway, by name.
func AllGateways() []*Gateway {
	all := slices.Clone(Load().gateways)
	slices.SortFunc(all, func(a, b *Gateway) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return all
}
