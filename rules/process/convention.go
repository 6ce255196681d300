package process

import (
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
)

// Conventions are the names that MCP servers have. Only the program counts, never the rest of the line: folders called
// x-mcp hold compilers and test runners too.

var (
	jobWords    = catalog.List("jobs")
	jobCommands = catalog.List("job commands")
	doing       = catalog.List("doing")
	tending     = catalog.List("tending")
	about       = catalog.List("about")
	minecraft   = catalog.List("minecraft")
	around      = catalog.List("around")
	serving     = catalog.List("serving")
)

// convention returns how sure it is that a command is a server by its name; "" when its name is not that of one.
func convention(c *command.Command) Confidence {
	switch {
	case c.Kind == command.KindImage && imageName(c.Program):
		return Likely
	case c.Kind == command.KindImage:
		return ""
	case job(c):
		return "" // terminating it halfway may do real damage
	case c.Runtime == "java" && hasWord(c.Program, minecraft):
		return ""
	case c.Kind == command.KindScript && (tending(leading(c.Program)) || isBelow(c.Path, "init.d")):
		return ""
	case serverName(command.ModuleStem(c.Program)) && c.NamedByFolder:
		return Possible
	case serverName(command.ModuleStem(c.Program)), c.From != "" && serverName(c.From):
		return Likely
	case c.Kind == command.KindScript && strings.HasSuffix(c.Program, "-wrapper"):
		return ""
	}
	inside, _, several := strings.Cut(strings.TrimPrefix(c.Program, "@"), "/")
	switch {
	case c.Kind == command.KindPackage && several && strings.Count(c.Program, "/") == 1 && serverName(inside):
		return Likely // one of the scripts of x-mcp
	case camelName(command.LastSegment(c.Path)):
		return Likely
	case c.Kind == command.KindScript && strings.Contains(c.Path, "Claude Extensions"):
		return Likely // Claude Desktop keeps its extensions there, all of which are servers
	}
	switch c.Kind {
	case command.KindScript, command.KindModule, command.KindPackage:
		if inMCPFolder(c) || c.Kind != command.KindPackage && scriptName(c) {
			return Possible
		}
	}
	return subCommand(c)
}

// job reports whether a program named like a server does one thing and exits, by its name (mcp-server-migrate) or its
// first argument (x-mcp import dump.sql).
func job(c *command.Command) bool {
	return len(c.Args) > 0 && jobCommands(c.Args[0]) || hasWord(command.LastSegment(c.Program), jobWords)
}

// hasWord reports whether a name has a word of a list in it.
func hasWord(name string, listed func(string) bool) bool {
	for w := range command.WordsOf(name) {
		if listed(w) {
			return true
		}
	}
	return false
}

// serverName reports whether a package, module, binary or script is named like a server: x-mcp, x_mcp_server,
// mcp-server-x, @scope/mcp, x-mcp-stdio.
func serverName(name string) bool {
	scoped := strings.HasPrefix(name, "@")
	name = name[strings.LastIndexByte(name, '/')+1:]
	if !strings.Contains(name, "mcp") {
		return false
	}
	var words [12]string // more words are not the name of a server
	n := 0
	for w := range command.WordsOf(name) {
		if n == len(words) {
			return false
		}
		words[n] = w
		n++
	}
	if n == 0 || doing(words[0]) {
		return false
	}
	for i := n - 1; i >= 0; i-- {
		rest := words[i+1 : n]
		switch {
		case strings.HasSuffix(words[i], "mcpserver"), strings.HasSuffix(words[i], "mcpserverapplication"):
			return len(rest) == 0
		case words[i] != "mcp":
		case len(rest) == 0:
			return scoped || i > 0
		case rest[0] == "server":
			return len(rest) == 1 || !about(rest[len(rest)-1])
		default:
			return len(rest) == 1 && (rest[0] == "stdio" || rest[0] == "serve" || rest[0] == "http" || rest[0] == "sse")
		}
	}
	return false
}

func leading(name string) string {
	word, _, _ := strings.Cut(command.WithDashes(name), "-")
	return word
}

// imageName reports whether a container image is named like a server: mcp/time, x/y-mcp-server.
func imageName(image string) bool {
	segments := strings.Split(image, "/")
	last := segments[len(segments)-1]
	if len(segments) > 1 && segments[len(segments)-2] == "mcp" {
		return len(segments) == 2 || len(segments) == 3 && strings.Contains(segments[0], ".")
	}
	return serverName(last)
}

// camelName reports whether a program is named like a server in the style of C# and Java: UnityMcpServer. MCP alone at the
// end is not enough, since vendors of hardware have tools of such names.
func camelName(name string) bool {
	name = command.BaseName(name)
	return strings.HasSuffix(name, "McpServer") || strings.HasSuffix(name, "MCPServer")
}

// inMCPFolder reports whether a script called x-server lies in a folder called mcp.
func inMCPFolder(c *command.Command) bool {
	name := command.Stem(c.Path)
	if !strings.HasSuffix(name, "-server") && !strings.HasSuffix(name, "_server") {
		return false
	}
	dirs := command.Parents(c.Path)
	return len(dirs) > 0 && dirs[0] == "mcp"
}

// scriptName reports whether a script or module is called mcp-x, where x is not something that is done to servers. Binaries
// of that name are too often tools; the catalog lists the servers among them.
func scriptName(c *command.Command) bool {
	switch c.Runtime {
	case "node", "bun", "deno", "python":
	default:
		return false
	}
	if c.Kind == command.KindScript && !command.IsScript(c.Path) {
		return false
	}
	rest, ok := strings.CutPrefix(command.WithDashes(c.Program), "mcp-")
	if !ok || rest == "" {
		return false
	}
	return !hasWord(rest, around) && !hasWord(rest, doing) && !hasWord(rest, about)
}

// subCommand returns how sure it is that a program runs as a server: x mcp serve, x start-mcp-server, x --mcp. Any binary
// may have an argument "mcp", so that it counts only for scripts and packages.
func subCommand(c *command.Command) Confidence {
	if len(c.Args) == 0 || c.Kind == command.KindImage {
		return ""
	}
	switch first := c.Args[0]; {
	case first == "start-mcp-server" || first == "start-mcp":
		return Likely
	case first == "mcp-server" && c.Kind != command.KindBinary:
		return Likely
	case first == "mcp-server":
		return Possible
	case first == "mcp" && len(c.Args) > 1 && serving(c.Args[1]):
		return Likely
	case first == "mcp" && c.Kind != command.KindBinary && (len(c.Args) == 1 || strings.HasPrefix(c.Args[1], "-")):
		return Possible
	case first == "mcp:start" || first == "mcp:serve":
		return Likely
	}
	for _, flag := range []string{"--mcp", "--mcp-server"} {
		if value, ok := c.Flag(flag); ok && value == "" { // else it is something's name
			return Possible
		}
	}
	return ""
}
