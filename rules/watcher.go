package rules

import "embed"

// Snippet is code that a person can put into a program.
type Snippet struct {
	Runtime string `json:"runtime"` // "node", "python" or "go"
	Where   string `json:"where"`   // where it belongs, and what to know about it
	Code    string `json:"code"`
}

//go:embed watchers
var watcherFiles embed.FS

// watchers exit a server when its client has closed stdin, whatever else keeps the process alive. They
// take nothing from what the server itself reads: each waits until all requests are read, then five
// seconds for answers, and up to a minute while an answer is not taken. That is longer than clients on an
// SDK wait, which send SIGTERM after 2 s; it matters when requests are piped in. The lab tries them in
// servers that do not exit by themselves.
var watchers = []Snippet{
	{
		Runtime: "node", Code: watcherCode("node.mjs"),
		Where: "anywhere in the main file of the server, which has to read stdin as the SDK's transport does. " +
			"An answer that takes longer than 5 s after the end of stdin is lost: raise the 5000",
	},
	{
		Runtime: "python", Code: watcherCode("python.py"),
		Where: "in the main module; call it before the server starts. Not for Windows, which has no poll; it does nothing when " +
			"stdin is a file or /dev/null. " +
			"An answer that takes longer than 5 s after the last request was read is lost: raise grace. os._exit runs no atexit handlers: " +
			"child processes have to watch their own stdin, or be terminated there",
	},
	{
		Runtime: "go", Code: watcherCode("go.txt"),
		Where: "in package main, which imports os, sync and time; with w := &wire{} give the server w for both stdin and stdout: " +
			"&mcp.IOTransport{Reader: w, Writer: w} with the official SDK, server.NewStdioServer(s).Listen(ctx, w, w) with mcp-go. " +
			"An answer that takes longer than 5 s after the end of stdin is lost: raise the 5. os.Exit runs no deferred functions: " +
			"child processes have to watch their own stdin, or be terminated there",
	},
}

func watcherCode(file string) string {
	code, err := watcherFiles.ReadFile("watchers/" + file)
	if err != nil {
		panic(err) // a broken build
	}
	return string(code)
}

// Watcher returns the code for a runtime; nil when there is none.
func Watcher(runtime string) *Snippet {
	for i := range watchers {
		if watchers[i].Runtime == runtime {
			return &watchers[i]
		}
	}
	return nil
}
