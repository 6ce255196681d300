// Package catalog is the data that recognition stands on: which programs are MCP clients, gateways, servers, their
// helpers, which only start another program, and which are none of these. All of it is text files, except a [Gateway] of
// which more than its name is known: that is one Go value. [Load] returns everything as an [Index]; package process says
// what it means for a process.
package catalog

// Family is what a row's program is.
type Family string

// The families, as they are written in a file's [heading].
const (
	Clients    Family = "clients"
	Gateways   Family = "gateways"
	Servers    Family = "servers"
	Helpers    Family = "helpers"
	Launchers  Family = "launchers"
	Lookalikes Family = "lookalikes"
	words      Family = "words" // with the name of a list
)

var families = []Family{Clients, Gateways, Servers, Helpers, Launchers, Lookalikes, words}

// Program is one name by which a client, gateway, server or helper is recognised.
type Program struct {
	Family  Family
	Client  *Client  // of the family Clients
	Gateway *Gateway // of the family Gateways

	// Program is the name to match, in lower case: an npm or PyPI package, a Python module, or the base name of a
	// script or binary without its extension. A "*" at its end matches any ending.
	Program string

	// Below, when set, is how a directory above the program must begin ("claude.app").
	Below string

	// Name is what people call it; for a server, the one name shared by its package and its binary.
	Name string

	// App marks a desktop application: many processes, of which few own servers.
	App bool

	// One of With, when there are any, and none of Without must hold for the arguments.
	With, Without []Condition
}

// Launcher is one row of launchers: a command that starts another program.
type Launcher struct {
	Name   string   // the canonical name, equal for "npx", "npm exec" and "npm x"
	Words  []string // the command and its sub-commands
	Starts Starts

	// Skip counts the words between the options and what is started ("timeout 60 COMMAND"); -1 when all up to a "--"
	// is skipped ("mise x node@22 -- COMMAND").
	Skip int

	// Options are those that are followed by a value in a word of its own. With AllOptions every option has one,
	// except these.
	Options    map[string]bool
	AllOptions bool
}

// Starts is how the command line of a launcher names what to start.
type Starts string

// The ways to name what is started.
const (
	StartsCommand Starts = "command" // a command and its arguments
	StartsPackage Starts = "package" // a package that has one, perhaps with a version
	StartsScript  Starts = "script"  // a script for Node
	StartsImage   Starts = "image"   // a container image
	StartsLine    Starts = "line"    // one line of shell
	StartsOption  Starts = "option"  // the value of one of its options: cargo run --bin x
)
