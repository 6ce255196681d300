package report

import (
	"io"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// styles use only the sixteen named colours, which follow the reader's own theme.
type styles struct {
	plain, bold, dim, err, warn, info, good lipgloss.Style
}

// newStyles uses a renderer of its own: lipgloss's global one would ask the terminal for its background and wait for
// the answer.
func newStyles(w io.Writer, colour bool) styles {
	profile := termenv.Ascii
	if colour {
		profile = termenv.ANSI
	}
	r := lipgloss.NewRenderer(w, termenv.WithProfile(profile))
	r.SetColorProfile(profile)
	r.SetHasDarkBackground(true)
	plain := r.NewStyle().TabWidth(lipgloss.NoTabConversion)
	return styles{
		plain: plain,
		bold:  plain.Bold(true),
		dim:   plain.Faint(true),
		err:   plain.Bold(true).Foreground(lipgloss.ANSIColor(1)),
		warn:  plain.Bold(true).Foreground(lipgloss.ANSIColor(3)),
		info:  plain.Bold(true).Foreground(lipgloss.ANSIColor(6)),
		good:  plain.Bold(true).Foreground(lipgloss.ANSIColor(2)),
	}
}
