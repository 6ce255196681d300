package scan

import (
	"context"
	"slices"

	"github.com/shirou/gopsutil/v4/process"
)

// system is the name of the system, as in GOOS.
func system() string { return "windows" }

// commandField is what holds the command line here, as it is called in JSON.
const commandField = "cmdline"

// The kernel's own processes, which have no command line: the idle process and System have fixed
// PIDs, the others names.
var windowsKernel = []string{"Registry", "Memory Compression", "Secure System"}

// readCommand reads the command line, which on Windows is one string that each program splits for
// itself. Empty without an error means refused.
func readCommand(ctx context.Context, g *process.Process, p *Process) bool {
	line, err := g.CmdlineWithContext(ctx)
	p.Cmdline = line
	return err == nil && line != "" || g.Pid == 0 || g.Pid == 4 || slices.Contains(windowsKernel, p.Name)
}

// refine adds nothing: Windows has no state, group, session or terminal of this kind.
func refine([]Process) {}
