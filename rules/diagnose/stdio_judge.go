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

// SDKWait is how long clients built on an SDK wait after they have closed a server's stdin before they send SIGTERM:
// the TypeScript and Python SDKs 2 s, the Go SDK 5 s.
const SDKWait = 2 * time.Second

// Stdio judges what was observed of a stdio server.
func Stdio(s *facts.Stdio) *StdioReport {
	j := &stdioJudge{Stdio: s, command: command.Parse(&scan.Process{Args: s.Command}, s.OS)}
	out := &StdioReport{
		Schema: StdioSchema, Kind: StdioKind, Command: s.Command, TimeoutSeconds: seconds(s.Timeout), Server: j.server(),
		Rows: []StdioRow{}, Problems: append([]string{}, s.Problems...),
	}
	for _, e := range s.Ends {
		out.Rows = append(out.Rows, j.judge(e))
	}
	out.Rows = append(out.Rows, judgeNoise(s.Noise))
	for _, r := range out.Rows {
		switch r.Verdict {
		case Failed:
			out.Failed++
		case Unsure:
			out.Unknown++
		}
	}
	for _, p := range s.Left {
		problem := fmt.Sprintf("pid %d could not be terminated and is still running: %s", p.PID, process.CommandLine(&p))
		out.Problems = append(out.Problems, problem)
	}
	return out
}

// stdioJudge is the facts about a server with its parsed command line.
type stdioJudge struct {
	*facts.Stdio
	command command.Command
}

func (j *stdioJudge) server() StdioServer {
	s := StdioServer{Server: j.Server, StartupSeconds: []float64{}, Layers: []Layer{}}
	for _, d := range j.Startups {
		s.StartupSeconds = append(s.StartupSeconds, seconds(d))
	}
	t := j.tree(j.Rest)
	if t.root != nil {
		s.RSSBytes, s.PSSBytes = new(int64), new(int64)
	}
	for _, p := range t.order {
		s.Layers = append(s.Layers, Layer{
			PID: p.PID, PPID: p.PPID, Kind: t.kind(p), Name: t.name(p),
			Command: process.CommandLine(p), Argv: p.Args, RSSBytes: p.RSSBytes, PSSBytes: p.PSSBytes,
		})
		s.RSSBytes, s.PSSBytes = sum(s.RSSBytes, p.RSSBytes), sum(s.PSSBytes, p.PSSBytes)
	}
	return s
}

// sum returns nil when either is not known.
func sum(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	n := *a + *b
	return &n
}

func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond)) / float64(time.Second)
}

func stdioRow(id Topic, verdict Verdict, answer string) StdioRow {
	return StdioRow{ID: id, Row: Row{Question: questions[id], Answer: answer, Verdict: verdict}}
}

func judgeNoise(n facts.Noise) StdioRow {
	if n.Lines == 0 {
		return stdioRow(TopicStdout, OK, "yes")
	}
	r := stdioRow(TopicStdout, Failed, "no: "+format.Count(n.Lines, "line")+" of other output")
	r.Because = []string{"first such line: " + n.First, "the specification forbids it, and some clients disconnect"}
	r.Remedy = &StdioRemedy{Steps: []string{"server: write logs and banners to stderr; in a wrapper script, redirect other output with >&2"}}
	return r
}

var topics = map[facts.Way]Topic{
	facts.CloseStdin: TopicStdinClosed, facts.Terminate: TopicTerminated, facts.KillClient: TopicClientKilled,
}

// judge judges one way to stop the server.
func (j *stdioJudge) judge(e facts.End) StdioRow {
	id := topics[e.Way]
	switch {
	case e.Untried != "":
		return stdioRow(id, Unsure, "not tested: "+e.Untried)
	case e.Early:
		return stdioRow(id, Unsure, "it exited by itself before the test")
	case len(e.Left) > 0:
		return j.survived(id, e)
	case j.command.Kind == command.KindImage:
		tool, _, _ := strings.Cut(j.command.Launchers[len(j.command.Launchers)-1], " ")
		return stdioRow(id, Unsure, "its local processes exited, but the container may still run: check "+tool+" ps")
	case len(e.Strays) > 0:
		return stdioRow(id, Unsure, j.strayed(e.Strays))
	}
	took := seconds(e.Took)
	r := stdioRow(id, OK, fmt.Sprintf("yes, within %.1f s", max(took, 0.1)))
	r.Seconds = &took
	if e.Way == facts.CloseStdin && e.Took > SDKWait {
		r.Answer += fmt.Sprintf("; SDK clients send SIGTERM after %.0f s", SDKWait.Seconds())
	}
	return r
}

// strayed names processes that may or may not belong to the server.
func (j *stdioJudge) strayed(strays []scan.Process) string {
	first := (&processTree{os: j.OS}).describe(&strays[0])
	if more := len(strays) - 1; more > 0 {
		first += " and " + format.Count(more, "other")
	}
	return "its known processes exited, but " + first + " started meanwhile without a parent, and this system does not show where " +
		format.Plural(len(strays), "it", "they") + " came from: check again, or on Linux"
}
