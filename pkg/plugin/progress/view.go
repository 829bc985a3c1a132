package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// heartbeat is the longest time without a line in a log.
const heartbeat = time.Minute

// View shows progress: a replaced picture on a terminal, or new lines without a terminal.
type View struct {
	screen *screen.Screen
	live   *screen.Live
	began  time.Time
	// said has the lines of the last picture, for logs.
	said map[string]bool
	// spoke is the time of the last line of a log.
	spoke time.Time
	head  string
}

// NewView returns a view that begins now.
func NewView(s *screen.Screen, now time.Time) *View {
	v := &View{screen: s, began: now, spoke: now, said: map[string]bool{}}
	if s.Redraws() {
		v.live = &screen.Live{Screen: s}
	}
	return v
}

// Show shows a picture. Lines of a log begin with the elapsed time.
func (v *View) Show(lines []screen.Line, now time.Time) {
	if v.live != nil {
		shown := append([]screen.Line(nil), lines...)
		if len(shown) > 0 {
			shown[0].Text += ", watched for " + Elapsed(now.Sub(v.began))
		}
		v.live.Draw(shown)
		return
	}
	said := map[string]bool{}
	for _, line := range lines {
		text := line.Text
		if line.Glyph != "" {
			text = line.Glyph + " " + text
		}
		text = strings.Repeat(" ", line.Indent) + text
		said[text] = true
		if v.head = lines[0].Text; !v.said[text] && !(line.Glyph == screen.Waiting && line.Indent > 0) {
			v.print(text, now)
		}
	}
	v.said = said
}

// Beat is called regularly. It updates the time in a picture. In a log it prints a line after a
// minute without one.
func (v *View) Beat(lines []screen.Line, now time.Time) {
	if v.live != nil {
		v.Show(lines, now)
		return
	}
	if now.Sub(v.spoke) >= heartbeat {
		v.print(screen.Waiting+" still "+v.head, now)
	}
}

func (v *View) print(text string, now time.Time) {
	v.screen.Printf("%6s  %s\n", Elapsed(now.Sub(v.began)), text)
	v.spoke = now
}

// Elapsed formats a duration for users: 7s, 1m05s, 2h03m.
func Elapsed(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}
