package rules

// Snippet is code that a person can put into a program.
type Snippet struct {
	Runtime string `json:"runtime"` // "node", "python" as in [Command]; "go"
	Where   string `json:"where"`   // where it belongs, and what to know of it
	Code    string `json:"code"`
}

// watchers end a server when its client has closed stdin, whatever else keeps it alive. None of them
// takes anything away that the server itself reads, and each leaves a second for answers that are on
// their way. A test takes them from here and tries them in servers that do not end by themselves.
var watchers = []Snippet{
	{
		Runtime: "node",
		Where:   "anywhere in the main file of the server, which has to read stdin as the SDK's transport does",
		Code: `// The end of stdin means that the client is gone. The timer lets answers finish, and does not
// itself keep Node alive.
for (const event of ['end', 'close']) {
  process.stdin.on(event, () => setTimeout(() => process.exit(0), 1000).unref());
}
`,
	},
	{
		Runtime: "python",
		Where:   "in the main module; call it before the server starts. Not for Windows, which has no poll",
		Code: `import os, select, threading, time


def end_with_stdin():
    """Ends this process when its client has closed stdin, whatever other threads do."""
    wire = os.dup(0)  # a server may put another file in the place of its stdin
    poll = select.poll()
    poll.register(wire, getattr(select, "POLLRDHUP", 0))  # what there is to read is not asked for

    def watch():
        poll.poll()  # returns when nobody holds the other end
        time.sleep(1)  # for answers that are on their way
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


end_with_stdin()
`,
	},
	{
		Runtime: "go",
		Where:   "in package main, which imports io, log, os and time; call it first in main, before the server is given os.Stdin",
		Code: `// endWithStdin ends this process when its client has closed stdin, whatever other goroutines do.
// The server reads what came from it, from a pipe in its place.
func endWithStdin() {
	r, w, err := os.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	stdin := os.Stdin
	os.Stdin = r
	go func() {
		_, _ = io.Copy(w, stdin)
		w.Close()
		time.Sleep(time.Second) // for answers that are on their way
		os.Exit(0)
	}()
}
`,
	},
}

// watcher returns the code for a runtime; nil when there is none.
func watcher(runtime string) *Snippet {
	for i := range watchers {
		if watchers[i].Runtime == runtime {
			return &watchers[i]
		}
	}
	return nil
}
