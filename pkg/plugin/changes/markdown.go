package changes

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
	"github.com/penstock-project/penstock/pkg/text"
)

// Write prints a diff in a format. Machine formats contain everything, for any view.
func Write(s *session.Session, format session.Format, diff *v1alpha1.RevisionDiff, view View) error {
	if format != session.Markdown {
		return s.PrintObject(format, diff)
	}
	_, err := fmt.Fprint(s.Stdout, Markdown(diff, view))
	return err
}

// maxMarkdown bounds a diff in Markdown, in bytes. Code hosts cut slightly longer comments at any
// place.
const maxMarkdown = 60 << 10

// Markdown returns a diff for a review comment: first the important notes, then a table, then as
// many lines as fit. It states how much is omitted.
func Markdown(diff *v1alpha1.RevisionDiff, view View) string {
	m := &markdown{all: "the same command without -o markdown"}
	if !view.Unstored {
		m.all = command(diff)
	}
	from := diff.From
	if from == "" {
		from = "nothing"
	}
	m.add(fmt.Sprintf("### %s → %s: %s\n\n", escaped(from), escaped(diff.To), Summary(&diff.Summary)))
	m.each("note", len(diff.Notes), func(i int) string {
		note := &diff.Notes[i]
		said := escaped(noteText(note))
		if note.Severity != v1alpha1.NoteInfo {
			said = "**" + string(note.Severity) + "** " + said
		}
		return "- " + said + "\n"
	})
	each, folds := folded(diff.Changes, view)
	if len(each) > 0 {
		m.add("\n| change | lines | object |\n|---|---|---|\n")
		m.each("object", len(each), func(i int) string {
			change := &each[i]
			return fmt.Sprintf("| %s | +%d/-%d | %s |\n", change.Change, change.LinesAdded, change.LinesRemoved,
				escaped(objectOf(change)))
		})
	}
	m.each("line about labels", len(folds), func(i int) string { return "\n" + escaped(folds[i].text(diff, view)) + "\n" })
	if len(each) > 0 {
		m.add("\n")
		m.each("diff of an object", len(each), func(i int) string { return block(&each[i]) })
	}
	for _, missing := range Missing(diff, view) {
		m.rest("\n**" + escaped(missing) + "**\n")
	}
	return m.out.String()
}

// markdown collects the parts of a diff in Markdown, up to maxMarkdown bytes.
type markdown struct {
	out strings.Builder
	all string
}

// reserved is the space for the note about omitted parts.
const reserved = 4 << 10

func (m *markdown) add(part string) bool {
	if m.out.Len()+len(part) > maxMarkdown-reserved {
		return false
	}
	m.out.WriteString(part)
	return true
}

func (m *markdown) rest(part string) { m.out.WriteString(part) }

// each adds parts until there is no space, and states how many are omitted. It omits none in the
// middle: a reader would take the last part for the end.
func (m *markdown) each(noun string, n int, part func(int) string) {
	for i := range n {
		if !m.add(part(i)) {
			left := text.Count(n-i, noun)
			if noun == "diff of an object" {
				left = "the lines of " + text.Count(n-i, "object")
			}
			m.rest(fmt.Sprintf("\n**%s more left out: this comment would be too long. All of it: %s**\n", left, escaped(m.all)))
			return
		}
	}
}

// block returns the lines of one object in a fence. The lines cannot end the fence.
func block(change *v1alpha1.ObjectChange) string {
	if change.NotCompared != "" {
		return escaped(qualified(change.Namespace, change.Name)+": "+change.NotCompared) + "\n\n"
	}
	if change.Unified == "" {
		return ""
	}
	fence := "```"
	for strings.Contains(change.Unified, fence) {
		fence += "`"
	}
	return fence + "diff\n" + strings.TrimSuffix(screen.SafeLines(change.Unified), "\n") + "\n" + fence + "\n\n"
}

// escaped returns a text of one line without special meaning in Markdown.
func escaped(said string) string {
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "&lt;", "#", "\\#", "@", "&#64;").Replace(screen.Safe(said))
}
