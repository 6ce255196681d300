package catalog

import (
	"slices"
	"strings"
)

// Client is everything that is known about one client: a program that owns MCP servers. A nil Client is one that is
// only called a client because it started servers.
type Client struct {
	Name string // as people call it
	Kind ClientKind

	// ConfigFlags are the options whose value is a file with the servers that it starts.
	ConfigFlags []string

	// nonInteractive are the options and first arguments with which it runs without a person in front of it: for one
	// prompt, or driven by another program over its stdin. Empty for the conventional ones.
	nonInteractive []string
}

// ClientKind is the sort of program that a client is.
type ClientKind string

// The kinds of clients.
const (
	Agent   ClientKind = "agent"   // runs in a terminal
	Desktop ClientKind = "desktop" // an application with windows
	Editor  ClientKind = "editor"  // a desktop application that also starts language servers, linters and the like
	Daemon  ClientKind = "daemon"  // a service
)

// conventional is what makes most agents run for one prompt.
var conventional = []string{"-p", "--print", "--input-format", "--output-format", "--headless", "exec", "run", "app-server"}

// NonInteractive reports whether a run with these arguments has no person in front of it.
func (c *Client) NonInteractive(a Args) bool {
	words := conventional
	if c != nil && len(c.nonInteractive) > 0 {
		words = c.nonInteractive
	}
	return slices.ContainsFunc(words, func(w string) bool {
		if strings.HasPrefix(w, "-") {
			return a.Has(w)
		}
		return len(a) > 0 && a[0] == w
	})
}

// IsEditor reports whether the client also starts language servers, as it starts MCP servers.
func (c *Client) IsEditor() bool { return c != nil && c.Kind == Editor }

// Restart is what a person does to terminate the client with all its servers, and to start it again.
func (c *Client) Restart() string {
	if c == nil || c.Kind == Daemon {
		return "restart"
	}
	return "quit and reopen"
}
