package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkAlone runs the real command in a process of its own: all children of that process are taken for
// those of the server.
func checkAlone(t *testing.T, args ...string) result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, append([]string{"check"}, args...)...)
	c.Env = append(os.Environ(), playAs+"=mcpdoctor")
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	_ = c.Run() // its exit code tells
	return result{c.ProcessState.ExitCode(), out.String(), stderr.String()}
}

// What cannot be checked is said in a sentence, with what to do about it.
func TestCheckWhatCannotBe(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "there is no command to check"},
		{[]string{"--"}, "there is no command to check"},
		{[]string{"--", ""}, "there is no command to check"},
		{[]string{"--timeout", "10ms", "--", "cat"}, "--timeout is too short"},
		{[]string{"--timeout", "soon", "--", "cat"}, "use a duration"},
		{[]string{"--bogus", "--", "cat"}, "unknown flag"},
		{[]string{"--", "no-such-command-anywhere"}, "command not found: no-such-command-anywhere"},
		{[]string{"--", plain}, plain + " is not executable"},
		{[]string{"--", filepath.Dir(plain)}, filepath.Dir(plain) + " is a directory"},
		{[]string{"--", "true"}, "true exited before it answered initialize (exit status 0)"},
		{[]string{"--", "sh", "-c", "echo 'Error: no API key' >&2; exit 3"}, "(exit status 3); it wrote to stderr: Error: no API key"},
		{[]string{"--", "sh", "-c", "echo 'error: --token hunter2 is no token\x1b[2J' >&2; exit 3"}, `it wrote to stderr: error: --token *** is no token\x1b[2J`},
		{[]string{"cat"}, "cat is not an MCP server on stdio: it writes back what it is given"},
		{[]string{"yes"}, "yes is not an MCP server on stdio: it wrote something else than messages to stdout; it wrote to stdout: y"},
		{[]string{"sh", "-c", "exec >&-; sleep 60"}, "sh is not an MCP server on stdio: it closed its stdout"},
		{[]string{"env", playAs + "=server", os.Args[0]}, "env is not an MCP server on stdio: unsupported protocol version"}, // answers {}
	} {
		r := checkAlone(t, c.args...)
		if r.code != exitTrouble || r.out != "" || !strings.Contains(r.err, c.says) {
			t.Errorf("check %q: exit code %d, %q, %q does not say %q", c.args, r.code, r.out, r.err, c.says)
		}
		_, errors, _ := strings.Cut(r.err, "closing its stdin\n") // what is done is said before
		if errors == "" {
			errors = r.err
		}
		checkErrorForm(t, strings.Join(c.args, " "), errors)
	}
}
