package render

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/text"
)

// hunks collects lines into the hunks of a unified diff. It keeps no more lines than may be shown.
type hunks struct {
	limits Limits
	out    strings.Builder

	addedLines, removedLines int
	// left counts the omitted lines of hunks; full is true when the limit is reached.
	left int
	full bool

	oldLine, newLine int // lines seen so far
	// before are the last context lines outside a hunk.
	before []line
	hunk   *hunk
}

// hunk is an unfinished hunk.
type hunk struct {
	oldStart, newStart int
	oldCount, newCount int
	body               strings.Builder
	changes            bool // body has changed lines
	// olds and news are consecutive changed lines: the removed lines are printed first.
	olds, news []string
	// after are context lines that possibly do not belong to the hunk.
	after []line
}

func (h *hunks) context(content line) {
	h.oldLine++
	h.newLine++
	if h.hunk == nil {
		h.before = append(h.before, content)
		if over := len(h.before) - h.limits.ContextLines; over > 0 {
			h.before = slices.Delete(h.before, 0, over)
		}
		return
	}
	h.flushChanges()
	h.hunk.after = append(h.hunk.after, content)
	if len(h.hunk.after) > 2*h.limits.ContextLines {
		h.finish()
	}
}

func (h *hunks) removed(content string) {
	h.open()
	h.oldLine++
	h.removedLines++
	h.hunk.olds = append(h.hunk.olds, content)
	h.flushLongRow()
}

func (h *hunks) added(content string) {
	h.open()
	h.newLine++
	h.addedLines++
	h.hunk.news = append(h.hunk.news, content)
	h.flushLongRow()
}

// flushLongRow limits the number of consecutive changed lines in memory.
func (h *hunks) flushLongRow() {
	const row = 10_000
	if len(h.hunk.olds)+len(h.hunk.news) > row {
		h.flushChanges()
	}
}

// open starts a hunk, or continues the open hunk.
func (h *hunks) open() {
	if h.hunk == nil {
		h.hunk = &hunk{oldStart: h.oldLine - len(h.before) + 1, newStart: h.newLine - len(h.before) + 1}
		h.hunk.after, h.before = h.before, nil
	}
	for _, content := range h.hunk.after {
		h.write(' ', h.fit(content.String()))
	}
	h.hunk.after = nil
}

// flushChanges writes changed lines. It shortens a line that is too long, but keeps the part that
// differs from its replacement. If that part is too long, the line counts as omitted.
func (h *hunks) flushChanges() {
	other := func(lines []string, i int) string {
		if i < len(lines) {
			return lines[i]
		}
		return ""
	}
	for i, content := range h.hunk.olds {
		h.writeChanged('-', content, other(h.hunk.news, i))
	}
	for i, content := range h.hunk.news {
		h.writeChanged('+', content, other(h.hunk.olds, i))
	}
	h.hunk.olds, h.hunk.news = h.hunk.olds[:0], h.hunk.news[:0]
}

func (h *hunks) writeChanged(mark byte, content, other string) {
	shown, whole := around(content, other, h.limits.LineBytes)
	if h.write(mark, shown) && !whole {
		h.left++
	}
}

// write writes a line, and reports whether there was room for it.
func (h *hunks) write(mark byte, content string) bool {
	now, remark := h.hunk, remarkOn(mark, content)
	if h.full || h.out.Len()+now.body.Len()+len(content)+2+len(remark) > h.limits.Bytes {
		h.full = true
		h.left++
		return false
	}
	if mark != '+' {
		now.oldCount++
	}
	if mark != '-' {
		now.newCount++
	}
	now.changes = now.changes || mark != ' '
	now.body.WriteByte(mark)
	now.body.WriteString(content)
	now.body.WriteByte('\n')
	now.body.WriteString(remark)
	return true
}

// remarkOn returns a line that warns about lookalike letters in a changed line of a block text,
// where letters cannot be escaped. Tools that read unified diffs skip lines that begin with a
// backslash.
func remarkOn(mark byte, content string) string {
	if mark == ' ' {
		return ""
	}
	names := printable.Lookalikes(content)
	if len(names) == 0 {
		return ""
	}
	const most = 10
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return "\\ the line above has letters that look like other letters: " + strings.Join(names, ", ") + "\n"
}

func (h *hunks) fit(content string) string {
	if len(content) <= h.limits.LineBytes {
		return content
	}
	head := text.Cut(content, h.limits.LineBytes)
	return fmt.Sprintf("%s ... (%d bytes more)", head, len(content)-len(head))
}

// around shortens a line that is longer than limit, but keeps the part that differs from the other
// line. whole is false if that part is longer than limit: then only its beginning and end are
// shown.
func around(content, other string, limit int) (shown string, whole bool) {
	if len(content) <= limit {
		return content, true
	}
	from, back := 0, 0
	for from < min(len(content), len(other)) && content[from] == other[from] {
		from++
	}
	for back < min(len(content), len(other))-from && content[len(content)-1-back] == other[len(other)-1-back] {
		back++
	}
	// Differences consist of whole characters.
	from, to := runeStart(content, from), runeEnd(content, len(content)-back)
	if room := limit - (to - from); room >= 0 {
		start := runeEnd(content, max(0, min(from-room/2, len(content)-limit)))
		end := runeStart(content, min(len(content), start+limit))
		start, end = min(start, from), max(end, to)
		return elided(start) + content[start:end] + rest(len(content)-end), true
	}
	start, end := 0, len(content)
	if from > limit/4 {
		start = from
	}
	if back > limit/4 {
		end = to
	}
	head, tail := runeStart(content, start+limit/2), runeEnd(content, end-limit/2)
	return fmt.Sprintf("%s%s ... (%d bytes) ... %s%s", elided(start), content[start:head], tail-head, content[tail:end], rest(len(content)-end)), false
}

func elided(bytes int) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("(%d bytes) ... ", bytes)
}

func rest(bytes int) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(" ... (%d bytes more)", bytes)
}

// runeStart and runeEnd move a position to the beginning or the end of a character.
func runeStart(s string, at int) int {
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

func runeEnd(s string, at int) int {
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return at
}

func (h *hunks) finish() {
	if h.hunk == nil {
		return
	}
	h.flushChanges()
	after := h.hunk.after
	for _, content := range after[:min(len(after), h.limits.ContextLines)] {
		h.write(' ', h.fit(content.String()))
	}
	if h.hunk.changes {
		fmt.Fprintf(&h.out, "@@ -%s +%s @@\n", span(h.hunk.oldStart, h.hunk.oldCount), span(h.hunk.newStart, h.hunk.newCount))
		h.out.WriteString(h.hunk.body.String())
	} else {
		h.left += h.hunk.oldCount
	}
	h.before = append([]line(nil), after[max(0, len(after)-h.limits.ContextLines):]...)
	h.hunk = nil
}

// span returns the range of lines in a unified diff: the first line and the count. An empty range
// names the line before it.
func span(start, count int) string {
	if count == 0 {
		start--
	}
	if count == 1 {
		return fmt.Sprint(start)
	}
	return fmt.Sprintf("%d,%d", start, count)
}
