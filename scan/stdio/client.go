package stdio

import (
	"io"
	"os/exec"
)

// PlayClient is the client that is killed: it starts the server of which words are the command, holds
// its pipes as clients do, and passes on what goes through them. It returns the exit code when the
// server has ended, or when its own stdin is closed.
//
// Its being there is all that matters: when it is killed, the server is left with three pipes that
// have nobody at their other ends.
func PlayClient(words []string, in io.Reader, out, errs io.Writer) int {
	const failed = 127 // as shells have it
	w, t, err := newWires()
	if err != nil {
		_, _ = io.WriteString(errs, err.Error()+"\n")
		return failed
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.stdin, t.stdout, t.stderr
	if err := cmd.Start(); err != nil {
		_, _ = io.WriteString(errs, err.Error()+"\n")
		return failed
	}
	t.close()
	go func() {
		_, _ = io.Copy(w.stdin, in)
		w.stdin.Close()
	}()
	go func() { _, _ = io.Copy(errs, w.stderr) }()
	_, _ = io.Copy(out, w.stdout) // another may still answer when the first process has ended
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}
