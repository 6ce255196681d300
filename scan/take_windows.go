package scan

import (
	"context"
	"slices"

	"github.com/shirou/gopsutil/v4/process"
)

// system returns the system as in GOOS.
func system() string { return "windows" }

// commandField is the JSON name of the field for the command line.
const commandField = "cmdline"

// windowsKernel are the names of kernel processes, which have no command line. The idle process and System have
// fixed PIDs, 0 and 4.
var windowsKernel = []string{"Registry", "Memory Compression", "Secure System"}

// readCommand reads the command line, which is one string on Windows. Empty without an error means refused.
func readCommand(ctx context.Context, g *process.Process, p *Process) bool {
	line, err := g.CmdlineWithContext(ctx)
	p.Cmdline = line
	return err == nil && line != "" || g.Pid == 0 || g.Pid == 4 || slices.Contains(windowsKernel, p.Name)
}

// refine does nothing: Windows has no such state, group, session or terminal.
func refine([]Process) {}
