package diagnose

import (
	"fmt"

	"mcpdoctor/rules/format"
	"mcpdoctor/scan/facts"
)

// memory judges two equal rounds after a warm-up. Fewer sessions prove nothing: see [facts.LeastForMemory].
func (j *endpointJudge) memory() {
	const question = "does its memory grow?"
	r := j.e.Retention
	settled, _ := j.look(facts.Settled)
	switch {
	case !j.e.Process.Found:
		j.row(TopicMemory, question, Unsure, j.e.Process.Why)
		return
	case j.forwarder():
		return
	case settled.Gone:
		j.row(TopicMemory, question, Unsure, "the server has ended")
		return
	case len(r.Rounds) < 2 && r.Refused != nil && r.Asked >= facts.LeastForMemory:
		before, _ := j.look(facts.AtSessions)
		after, _ := j.look(facts.AtOnce)
		j.row(TopicMemory, question, Unsure, fmt.Sprintf("it refused before the two rounds were finished; %d cost it %s", r.Served, format.Bytes(max(0, after.RSSBytes-before.RSSBytes))))
		return
	case len(r.Rounds) < 2 && r.Asked < facts.LeastForMemory:
		j.row(TopicMemory, question, Unsure, "fewer than a thousand requests tell a leak from a warm start no better than chance: ask with --sessions 2000")
		return
	case len(r.Rounds) < 2:
		j.row(TopicMemory, question, Unsure, "the two rounds were not finished")
		return
	}
	first, second := r.Rounds[0], r.Rounds[1]
	grown := second.AfterBytes - second.BeforeBytes
	each := grown / int64(second.Sessions)
	line := fmt.Sprintf("after a warm-up, two rounds of %d: %s, then %s", first.Sessions, growth(first), growth(second))
	steady := grown*levelling >= first.AfterBytes-first.BeforeBytes
	switch {
	case each < noise:
		j.row(TopicMemory, question, OK, line+": what is left is noise")
	case steady && (j.kept > 0 || each >= heavy):
		j.growing = fmt.Sprintf("%s, which is %s for each", line, format.Bytes(each))
		j.row(TopicMemory, question, Failed, j.growing)
	default:
		j.row(TopicMemory, question, Unsure, line+": more than noise, and no proof; ask again with more")
	}
}

// What tells a leak from a garbage collector that takes its time, by what eleven servers did in rounds
// of 800: those that keep their sessions grew by 12 to 230 KB for each, in the second round 0.6 to 1.1
// times as much as in the first. Healthy ones grew by 23 KB at most, mostly by less than 8, and 0.1 to
// 0.7 times as much.
const (
	noise     = 8 << 10  // for each: less is never called growth
	heavy     = 64 << 10 // for each: from here on it is growth even where no session is known to be kept
	levelling = 2        // the second round has to be this share of the first, else it levels off
)

func growth(r facts.Round) string {
	return fmt.Sprintf("%+.1f MB", float64(r.AfterBytes-r.BeforeBytes)/(1<<20))
}
