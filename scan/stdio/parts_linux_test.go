package stdio

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpdoctor/scan/facts"
)

// The servers that are checked are this test binary, started again with a part to play: the first word
// of its arguments.
const partVar = "PROBE_TEST_PLAYS"

// runVar is in the environment of all that one test starts, with a value of its own, so that the test
// can tell by another means than the check itself whether anything is left.
const runVar = "PROBE_TEST_RUN"

func init() {
	assignParts()
	if os.Getenv(partVar) == "" || len(os.Args) < 2 {
		return
	}
	part, ok := stdioParts[os.Args[1]]
	if !ok {
		return
	}
	part(os.Args[2:])
	os.Exit(0)
}

var stdioParts map[string]func(args []string)

// assignParts breaks the circle of parts that start others.
func assignParts() {
	stdioParts = map[string]func([]string){
		// Servers that end as they should, and those that do not.
		"good":     func([]string) { serve() },
		"late":     func([]string) { serve(); time.Sleep(2500 * time.Millisecond) },
		"stubborn": func([]string) { serve(); forever() },
		"deaf":     func([]string) { signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP); serve(); forever() },
		"busy": func([]string) {
			serve()
			for {
			}
		},
		"soon gone": func([]string) { // as soon as it has said what its client waits for
			answering(func(r request) (any, error) {
				if r.Method == "tools/list" {
					time.AfterFunc(20*time.Millisecond, func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) })
				}
				return usual(r), nil
			})
		},
		"forks": func(args []string) { // its helper has left the tree, the session and the environment
			spawn(func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }, "fork", args[0])
			serve()
		},
		"forks and is mute": func(args []string) { // the same, in a start that does not come to its end
			spawn(func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }, "fork", args[0])
			forever()
		},
		"fork": func(args []string) {
			spawn(func(c *exec.Cmd) {
				c.Env = []string{partVar + "=yes"}
				c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			}, "helper", args[0])
		},
		"helper": func(args []string) {
			note(args[0])
			forever()
		},

		// Wrappers around another part.
		"drops":    func(args []string) { follow(args, nil) }, // SIGTERM ends it alone
		"swallows": func(args []string) { signal.Ignore(syscall.SIGTERM); follow(args, nil) },
		"holds": func(args []string) { // keeps the server's stdin open when its own is at its end
			r, w, err := os.Pipe()
			must(err)
			go func() { io.Copy(w, os.Stdin) }()
			follow(args, r)
		},
		"leaves": func(args []string) { // starts the server and goes
			c := exec.Command("/proc/self/exe", args...)
			c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
			must(c.Start())
		},
		"lingers": func(args []string) { follow(args, nil); forever() },

		// No servers, or odd ones.
		"banner":  func([]string) { fmt.Println("Welcome to the server\n\nversion 1"); serve() },
		"mute":    func([]string) { io.Copy(io.Discard, os.Stdin); forever() },
		"exits":   func([]string) { fmt.Fprintln(os.Stderr, "Error: no API key\nNode.js v20.20.2"); os.Exit(3) },
		"prints":  func([]string) { fmt.Println("usage: prints [flags]"); forever() },
		"refuses": func([]string) { answering(func(request) (any, error) { return nil, errors.New("not today") }) },
		"wrong ID": func([]string) {
			answering(func(r request) (any, error) {
				fmt.Println(`{"jsonrpc":"2.0","id":99,"result":{}}`)
				forever()
				return nil, nil
			})
		},
		"ID as a string": func([]string) {
			answering(func(r request) (any, error) {
				fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{}}\n", r.ID)
				forever()
				return nil, nil
			})
		},
		"stray answer": func([]string) {
			fmt.Println(`{"jsonrpc":"2.0","id":99,"result":{}}`)
			time.Sleep(500 * time.Millisecond)
			serve()
		},
		"closes": func([]string) { os.Stdout.Close(); forever() },
		"floods": func([]string) {
			line := strings.Repeat("x", 1000) + "\n"
			go func() {
				for {
					os.Stderr.WriteString(line)
				}
			}()
			for {
				os.Stdout.WriteString(line)
			}
		},
		"long line": func([]string) {
			for {
				os.Stdout.WriteString(strings.Repeat("{", 1<<20))
			}
		},
		"chatty": func([]string) { // writes much more than a pipe holds to stderr, all the time
			go func() {
				for ; ; time.Sleep(5 * time.Millisecond) {
					os.Stderr.WriteString(strings.Repeat("log ", 20_000) + "\n")
				}
			}()
			serve()
		},
		"toolless": func([]string) {
			answering(func(r request) (any, error) {
				if r.Method == "initialize" {
					return map[string]any{"protocolVersion": "2024-11-05", "capabilities": map[string]any{}, "serverInfo": map[string]any{"name": "toolless", "version": "1"}}, nil
				}
				return nil, errors.New("no such method")
			})
		},
		"broken tools": func([]string) {
			answering(func(r request) (any, error) {
				if r.Method == "tools/list" {
					return nil, errors.New("the database is away")
				}
				return usual(r), nil
			})
		},
		"endless tools": func([]string) {
			answering(func(r request) (any, error) {
				if r.Method == "tools/list" {
					return map[string]any{"tools": tools(500), "nextCursor": "on"}, nil
				}
				return usual(r), nil
			})
		},
		"sdk": func([]string) { // the official SDK's own
			server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
			mcp.AddTool(server, &mcp.Tool{Name: "nothing"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, nil
			})
			_ = server.Run(context.Background(), &mcp.StdioTransport{}) // an error at the end of stdin
		},
		"modern": func([]string) { // speaks the revision without a handshake only
			answering(func(r request) (any, error) {
				switch r.Method {
				case "server/discover":
					return map[string]any{"supportedVersions": []string{"2026-07-28"}, "capabilities": map[string]any{"tools": map[string]any{}},
						"_meta": map[string]any{"io.modelcontextprotocol/serverInfo": map[string]any{"name": "modern", "version": "2"}}}, nil
				case "tools/list":
					return map[string]any{"tools": tools(3)}, nil
				}
				return nil, errors.New("unsupported protocol version")
			})
		},

		// Parts of the check itself.
		"client": func(args []string) { must(RunClient(args, os.Stdin, os.Stdout, os.Stderr)) },
		"supervisor": func(args []string) {
			must(RunSupervisor(context.Background(), args, os.Environ(), os.Stdin, os.Stdout, time.Now))
		},
		"check": playCheck,

		// Those who have nothing to do with it.
		"stay": func([]string) { forever() },
		"parent": func(args []string) { // leaves a child behind when its stdin is closed
			spawn(func(c *exec.Cmd) {}, "helper", args[0])
			fmt.Println("ready")
			io.Copy(io.Discard, os.Stdin)
		},
	}
}

// checking is what a check of its own process is told, and checkedSo what it answers.
type checking struct {
	Run              string
	Words            []string // of a part
	Command          []string // instead of them
	Startup, Timeout time.Duration
	Steps            bool // it says each step before it answers
}

type checkedSo struct {
	Facts   *facts.Stdio
	Failure *facts.Failure
	Error   string
}

// playCheck is a check in a process of its own, since all children of that process are taken for the
// server's.
func playCheck(args []string) {
	var c checking
	must(json.Unmarshal([]byte(args[0]), &c))
	o := checkOptions(c.Run, c.Words...)
	o.Startup, o.Timeout = c.Startup, c.Timeout
	if c.Command != nil {
		o.Command = c.Command
	}
	if c.Steps {
		o.Step = func(w facts.Way) { fmt.Println("step", w) }
	}
	var out checkedSo
	var err error
	out.Facts, err = Check(context.Background(), o)
	if err != nil {
		out.Error = err.Error()
		if errors.As(err, &out.Failure) {
			out.Failure.Cause = nil
		}
	}
	text, err := json.Marshal(out)
	must(err)
	fmt.Println(string(text))
}

type request struct {
	ID     json.RawMessage
	Method string
}

// answering is a server until its stdin is at its end.
func answering(how func(request) (any, error)) {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		if json.Unmarshal(line, &r) != nil || r.ID == nil {
			continue
		}
		m := map[string]any{"jsonrpc": "2.0", "id": r.ID}
		if result, err := how(r); err != nil {
			m["error"] = map[string]any{"code": -32022, "message": err.Error()}
		} else {
			m["result"] = result
		}
		text, err := json.Marshal(m)
		must(err)
		fmt.Println(string(text))
	}
}

func serve() { answering(func(r request) (any, error) { return usual(r), nil }) }

func usual(r request) any {
	switch r.Method {
	case "initialize":
		return map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "part", "version": "0.1"}}
	case "tools/list":
		return map[string]any{"tools": tools(2)}
	}
	return map[string]any{}
}

func tools(n int) []any {
	var out []any
	for i := range n {
		out = append(out, map[string]any{"name": fmt.Sprint("tool", i), "inputSchema": map[string]any{"type": "object"}})
	}
	return out
}

func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// spawn starts a part with nothing at its stdin and stdout.
func spawn(setup func(*exec.Cmd), words ...string) {
	c := exec.Command("/proc/self/exe", words...)
	setup(c)
	must(c.Start())
	if words[0] == "fork" {
		must(c.Wait())
	}
}

// follow starts a part on the same wires, but for its stdin when another is given, and waits for it.
func follow(args []string, stdin *os.File) {
	c := exec.Command("/proc/self/exe", args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if stdin != nil {
		c.Stdin = stdin
	}
	must(c.Start())
	_ = c.Wait()
}

// note writes down who this process is.
func note(file string) {
	must(os.WriteFile(file+".new", []byte(fmt.Sprint(os.Getpid(), " ", startOf(os.Getpid()))), 0o600))
	must(os.Rename(file+".new", file))
}

// startOf returns the start time of a process that lives, 0 when it does not.
func startOf(pid int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	if fields[0] == "Z" || fields[0] == "X" {
		return 0
	}
	n, _ := strconv.ParseInt(fields[19], 10, 64)
	return n
}

// noted waits until a process has written down who it is.
func noted(t *testing.T, file string) (pid int, start int64) {
	t.Helper()
	for range 200 {
		if text, err := os.ReadFile(file); err == nil {
			fmt.Sscan(string(text), &pid, &start)
			return pid, start
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("nobody wrote %s", file)
	return 0, 0
}

// The tests mostly wait, so more of them may run at a time than there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	must(flag.Set("test.parallel", "16"))
	os.Exit(m.Run())
}
