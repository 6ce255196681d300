package rules

// Snippet is code that a person can put into a program.
type Snippet struct {
	Runtime string `json:"runtime"` // "node", "python" as in [Command]; "go"
	Where   string `json:"where"`   // where it belongs, and what to know of it
	Code    string `json:"code"`
}

// watchers end a server when its client has closed stdin, whatever else keeps it alive. None of them
// takes anything away that the server itself reads. What was sent before is still read, and answered:
// each waits until nothing is unread, then five seconds for answers, and on while an answer is not
// taken, a minute at most. That is longer than clients on an SDK wait, which send SIGTERM then; it
// matters for who pipes requests in. A test takes them from here and tries them in servers that do
// not end by themselves.
var watchers = []Snippet{
	{
		Runtime: "node",
		Where: "anywhere in the main file of the server, which has to read stdin as the SDK's transport does. " +
			"An answer that takes longer than 5 s after the end of stdin is lost: raise the 5000",
		Code: `// The end of stdin means that the client is gone. Answers get 5 s to be made, and a minute to be
// taken. The timers do not keep Node alive themselves.
for (const event of ['end', 'close']) {
  process.stdin.on(event, () => {
    setTimeout(() => process.stdout.write('', () => process.exit(0)), 5000).unref();
    setTimeout(() => process.exit(0), 60000).unref();
  });
}
`,
	},
	{
		Runtime: "python",
		Where: "in the main module; call it before the server starts. Not for Windows, which has no poll; it does nothing when stdin is a file or /dev/null. " +
			"An answer that takes longer than 5 s after the last request was read is lost: raise grace. os._exit runs no atexit: " +
			"child processes have to see to their own stdin, or be ended in its place",
		Code: `import fcntl, os, select, termios, threading, time


def end_with_stdin(grace=5, patience=60):
    """Ends this process when its client has closed stdin, whatever other threads do: grace seconds
    after all has been read and no answer is held up, or patience seconds after the end of stdin."""
    try:
        wire = os.dup(0)  # a server may put another file in the place of its stdin
    except OSError:
        return  # it was started without one
    gone = select.POLLHUP | getattr(select, "POLLRDHUP", 0)
    stdin, stdout = select.poll(), select.poll()
    stdin.register(wire, gone)
    stdout.register(1, select.POLLOUT)

    def busy():  # something is unread, or the answers are not taken
        return any(fcntl.ioctl(wire, termios.FIONREAD, bytes(4))) or not stdout.poll(0)

    def watch():
        try:
            while not any(events & gone for _, events in stdin.poll(1000)):
                time.sleep(0.1)
            end = quiet = time.monotonic()
            while time.monotonic() < min(quiet + grace, end + patience):
                if busy():
                    quiet = time.monotonic()
                time.sleep(0.1)
        finally:
            os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


end_with_stdin()
`,
	},
	{
		Runtime: "go",
		Where: "in package main, which imports os, sync and time; with w := &wire{} give the server w for both stdin and stdout: " +
			"&mcp.IOTransport{Reader: w, Writer: w} with the official SDK, server.NewStdioServer(s).Listen(ctx, w, w) with mcp-go. " +
			"An answer that takes longer than 5 s after the end of stdin is lost: raise the 5. os.Exit runs nothing that is deferred: " +
			"child processes have to see to their own stdin, or be ended in its place",
		Code: `// wire is stdin and stdout for the server. The end of stdin means that the client is gone: then it ends
// this process, whatever other goroutines do. Answers get 5 s to be made, and a minute to be taken.
type wire struct{ writing sync.Mutex }

func (w *wire) Read(b []byte) (int, error) {
	n, err := os.Stdin.Read(b)
	if err != nil {
		time.AfterFunc(5*time.Second, func() {
			w.writing.Lock() // not in the midst of an answer
			os.Exit(0)
		})
		time.AfterFunc(time.Minute, func() { os.Exit(0) })
	}
	return n, err
}

func (w *wire) Write(b []byte) (int, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	return os.Stdout.Write(b)
}

func (w *wire) Close() error { return nil }
`,
	},
}

// watcher returns the code for a runtime; nil when there is none.
func Watcher(runtime string) *Snippet {
	for i := range watchers {
		if watchers[i].Runtime == runtime {
			return &watchers[i]
		}
	}
	return nil
}
