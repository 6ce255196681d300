package diagnose

import (
	"fmt"
	"strings"
	"time"

	"mcpdoctor/rules/command"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
)

// SDKWait is how long clients on an SDK wait for a server after they have closed its stdin, before
// they send SIGTERM: the TypeScript and Python SDKs 2 s, the Go SDK 5 s.
const SDKWait = 2 * time.Second

// JudgeStdio judges what was seen of a stdio server.
func Stdio(s *facts.Stdio) *StdioReport {
	c := &checked{Stdio: s, command: command.Parse(&scan.Process{Args: s.Command}, s.OS)}
	out := &StdioReport{
		Schema: StdioSchema, Kind: StdioKind, Command: s.Command, TimeoutSeconds: seconds(s.Timeout), Server: c.server(),
		Rows: []CheckRow{}, Problems: append([]string{}, s.Problems...),
	}
	for _, e := range s.Ends {
		out.Rows = append(out.Rows, c.judge(e))
	}
	out.Rows = append(out.Rows, judgeNoise(s.Noise))
	for _, r := range out.Rows {
		switch r.Verdict {
		case CheckFailed:
			out.Failed++
		case CheckUnknown:
			out.Unknown++
		}
	}
	for _, p := range s.Left {
		out.Problems = append(out.Problems, fmt.Sprintf("pid %d could not be ended and is still there: %s", p.PID, process.CommandLine(&p)))
	}
	return out
}

// checked is a server with what its command line says.
type checked struct {
	*facts.Stdio
	command command.Command
}

func (c *checked) server() CheckedServer {
	s := CheckedServer{Name: c.Server.Name, Version: c.Server.Version, Protocol: c.Server.Protocol, Tools: c.Server.Tools, StartupSeconds: []float64{}, Layers: []Layer{}}
	for _, d := range c.Startups {
		s.StartupSeconds = append(s.StartupSeconds, seconds(d))
	}
	t := c.treeOf(c.Rest)
	for i := range c.Rest {
		p := &c.Rest[i]
		s.Layers = append(s.Layers, Layer{
			PID: p.PID, PPID: p.PPID, Kind: t.kind(p), Name: t.name(p), Command: process.CommandLine(p), Argv: p.Args, RSSBytes: p.RSSBytes, PSSBytes: p.PSSBytes,
		})
	}
	s.RSSBytes = sum(c.Rest, func(p *scan.Process) *int64 { return p.RSSBytes })
	s.PSSBytes = sum(c.Rest, func(p *scan.Process) *int64 { return p.PSSBytes })
	return s
}

// sum adds what is known of every process; nil when it is not.
func sum(tree []scan.Process, of func(*scan.Process) *int64) *int64 {
	var n int64
	for i := range tree {
		v := of(&tree[i])
		if v == nil {
			return nil
		}
		n += *v
	}
	if len(tree) == 0 {
		return nil
	}
	return &n
}

func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond)) / float64(time.Second)
}

func judgeNoise(n facts.Noise) CheckRow {
	r := CheckRow{ID: CheckStdout, Question: "is all that it writes to stdout a message", Answer: "yes", Verdict: CheckOK}
	if n.Lines > 0 {
		r.Answer, r.Verdict = "no: "+format.Count(n.Lines, "line")+" of something else", CheckFailed
		r.Because = []string{"the first is: " + n.First, "the specification says that a server must not; some clients end the connection"}
		r.Remedy = &CheckRemedy{Steps: []string{"server: write logs and banners to stderr; in a wrapper's script redirect what else prints (>&2)"}}
	}
	return r
}

// ends has what is said of each way to end a server.
var ends = map[facts.Way]struct {
	id       CheckID
	question string
}{
	facts.CloseStdin: {CheckStdin, "does it all end when stdin is closed"},
	facts.Terminate:  {CheckTerminated, "does it all end when its top gets SIGTERM"},
	facts.KillClient: {CheckKilled, "does it all end when its client is killed"},
}

// judge answers one question.
func (c *checked) judge(e facts.End) CheckRow {
	r := CheckRow{ID: ends[e.Way].id, Question: ends[e.Way].question, Verdict: CheckUnknown}
	switch {
	case e.Untried != "":
		r.Answer = "it could not be tried: " + e.Untried
	case e.Early:
		r.Answer = "it had ended by itself before"
	case len(e.Left) > 0:
		c.judgeLeft(e, &r)
	case c.command.Kind == command.KindImage:
		r.Answer = "what was started here ended, but the container runs elsewhere: look with " + containerTool(c.command) + " ps"
	case len(e.Strays) > 0:
		r.Answer = c.strayed(e.Strays)
	default:
		took := seconds(e.Took)
		r.Verdict, r.Seconds, r.Answer = CheckOK, &took, fmt.Sprintf("yes, within %.1f s", max(took, 0.1))
		if e.Way == facts.CloseStdin && e.Took > SDKWait {
			r.Answer += fmt.Sprintf("; a client on an SDK sends SIGTERM after %.0f s", SDKWait.Seconds())
		}
	}
	return r
}

// strayed says that nobody knows whose some processes are.
func (c *checked) strayed(strays []scan.Process) string {
	p := &strays[0]
	says := fmt.Sprintf("%s (pid %d)", (&trialTree{os: c.OS}).name(p), p.PID)
	if more := len(strays) - 1; more > 0 {
		says += " and " + format.Count(more, "other")
	}
	return "all that was seen of it ended, but " + says + " began meanwhile without a parent, and this system does not tell who started " + format.Plural(len(strays), "it", "them") +
		": look whose " + format.Plural(len(strays), "it is", "they are") + " and ask again, or check on Linux"
}

func containerTool(c command.Command) string {
	tool, _, _ := strings.Cut(c.Launchers[len(c.Launchers)-1], " ")
	return tool
}
