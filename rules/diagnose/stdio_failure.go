package diagnose

import (
	"strings"

	"mcpdoctor/rules/format"
	"mcpdoctor/scan/facts"
)

// Unchecked says why a command could not be checked, as one sentence, and what can be done about it.
// What the command wrote is raw in it.
func Unchecked(f *facts.Failure, command []string) (what, hint string) {
	name := command[0]
	switch f.Kind {
	case facts.Missing:
		return "there is no command " + name, "look at the name and at PATH; the command and its arguments come after --, each as a word of its own"
	case facts.NotExecutable:
		return name + " is not executable", "make it so with chmod +x, or start it with its interpreter: node " + name
	case facts.Directory:
		return name + " is a directory", "give the program that is in it, or what starts that: node " + strings.TrimRight(name, "/") + "/index.js"
	case facts.NoProgram:
		return name + " is no program of this system, nor a script that names its interpreter", "start it with its interpreter: node " + name
	case facts.NeverStarted:
		return "cannot start " + name + ": " + f.Cause.Error(), "look whether it can be started by hand"
	case facts.ExitedEarly:
		what = name + " ended before it answered (" + f.Status + "), so that it is no MCP server, or lacks something"
		hint = "start it by hand and look what it says; it may need arguments, or variables that a client's configuration has"
	case facts.NeverAnswered:
		what = name + " did not answer initialize in " + format.Age(f.Waited)
		hint = "give it longer with --timeout if it has something to fetch first; if it serves HTTP, ask mcpdoctor probe URL"
	case facts.RefusedHandshake:
		what = name + " refused the handshake: " + f.Cause.Error()
		hint = "look whether it expects another version of the protocol, or variables that a client's configuration has"
	default:
		what = name + " is no MCP server on stdio: " + f.Cause.Error()
		hint = "give the command as a client's configuration has it; if it serves HTTP, ask mcpdoctor probe URL"
	}
	if f.Stdout != "" {
		what += "; it wrote to stdout: " + sentence(f.Stdout)
	}
	if f.Stderr != "" {
		what += "; it wrote to stderr: " + sentence(f.Stderr)
	}
	return what, hint
}

// sentence is what a stranger wrote, so that it can stand inside a sentence of ours.
func sentence(s string) string { return strings.TrimRight(strings.TrimSpace(s), ".") }
