package diagnose

import (
	"strings"

	"mcpdoctor/rules/format"
	"mcpdoctor/scan/facts"
)

// Unchecked returns why a command could not be checked, as one sentence, and a hint. What the command wrote is raw in it.
func Unchecked(f *facts.Failure, command []string) (what, hint string) {
	const (
		start   = "start it by hand and read its output; it may need arguments, or variables from a client's configuration"
		useHTTP = "; if it serves HTTP, use mcpdoctor probe URL"
	)
	name := command[0]
	switch f.Kind {
	case facts.Missing:
		return "command not found: " + name, "check the name and PATH; the command and its arguments follow -- as separate words"
	case facts.NotExecutable:
		return name + " is not executable", "run chmod +x " + name + ", or start it with its interpreter: node " + name
	case facts.Directory:
		hint = "give the program in it, or the command that starts it: node " + strings.TrimRight(name, "/") + "/index.js"
		return name + " is a directory", hint
	case facts.NoProgram:
		return name + " is neither a program of this system nor a script with an interpreter line", "start it with its interpreter: node " + name
	case facts.NeverStarted:
		return "cannot start " + name + ": " + f.Cause.Error(), "try to start it by hand"
	case facts.ExitedEarly:
		what, hint = name+" exited before it answered initialize ("+f.Status+")", start
	case facts.NeverAnswered:
		what = name + " did not answer initialize within " + format.Age(f.Waited)
		hint = "allow more time with --timeout if it downloads something first" + useHTTP
	case facts.RefusedHandshake:
		what, hint = name+" refused the handshake: "+f.Cause.Error(), start
	default:
		what = name + " is not an MCP server on stdio: " + f.Cause.Error()
		hint = "give the command exactly as a client's configuration has it" + useHTTP
	}
	for _, wrote := range []struct{ where, text string }{{"stdout", f.Stdout}, {"stderr", f.Stderr}} {
		if wrote.text != "" {
			what += "; it wrote to " + wrote.where + ": " + strings.TrimRight(strings.TrimSpace(wrote.text), ".")
		}
	}
	return what, hint
}
