// Package format writes numbers, ages and lists as people read them.
package format

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Bytes returns a number of bytes for people: "812 KB", "64 MB", "1.5 GB". The units are powers of
// 1024, as in top(1) and free(1).
func Bytes(n int64) string {
	const kb, mb, gb = 1 << 10, 1 << 20, 1 << 30
	switch f := float64(n); {
	case n < kb:
		return fmt.Sprintf("%d B", n)
	case n < mb:
		return fmt.Sprintf("%.0f KB", f/kb)
	case f < 999.5*mb:
		return fmt.Sprintf("%.0f MB", f/mb)
	case f < 99.95*gb:
		return fmt.Sprintf("%.1f GB", f/gb)
	default:
		return fmt.Sprintf("%.0f GB", f/gb)
	}
}

// Age returns a length of time for people, in at most two units: "8 s", "12 min", "3 h 20 min",
// "2 d 4 h".
func Age(d time.Duration) string {
	two := func(a int, unit string, b int, small string) string {
		if b == 0 {
			return fmt.Sprintf("%d %s", a, unit)
		}
		return fmt.Sprintf("%d %s %d %s", a, unit, b, small)
	}
	switch s := int(d / time.Second); {
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min", s/60)
	case s < 24*3600:
		return two(s/3600, "h", s%3600/60, "min")
	default:
		return two(s/86400, "d", s%86400/3600, "h")
	}
}

// Count returns a number with its noun: "1 server", "25 servers".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "h") {
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Plural returns one for a count of 1, else many.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// List joins the first few words, with the number of those left out.
func List(words []string, most int) string {
	if len(words) > most {
		return strings.Join(words[:most], ", ") + fmt.Sprintf(" and %d more", len(words)-most)
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// PIDs joins the first few PIDs, with the number of those left out.
func PIDs(pids []int, most int) string {
	words := make([]string, len(pids))
	for i, p := range pids {
		words[i] = fmt.Sprint(p)
	}
	return List(words, most)
}

// Cadence describes the intervals between starts: "one every 30 min" when they are equal (cron, a poller), "one
// every 6 s on average" when not, "25 started within 8 s" when they are shorter than a second; "" for fewer than three.
func Cadence(starts []time.Time) string {
	starts = slices.DeleteFunc(slices.Clone(starts), time.Time.IsZero)
	if len(starts) < 3 {
		return ""
	}
	slices.SortFunc(starts, time.Time.Compare)
	gaps := len(starts) - 1
	mean := starts[gaps].Sub(starts[0]) / time.Duration(gaps)
	if mean < time.Second {
		return fmt.Sprintf("%d started within %s", len(starts), Age(starts[gaps].Sub(starts[0])+time.Second))
	}
	const regular = 0.1 // of the mean: what cron's and the start-up's own jitter leave
	for i := range gaps {
		if gap := starts[i+1].Sub(starts[i]); math.Abs(float64(gap-mean)) > regular*float64(mean)+float64(time.Second) {
			return "one every " + Age(mean) + " on average"
		}
	}
	return "one every " + Age(mean)
}
