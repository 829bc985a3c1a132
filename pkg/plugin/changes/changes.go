// Package changes prints the changes of a revision: notes first, then a table, then the lines.
package changes

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/text"
)

// Print shows a diff. Without View.Lines it ends after the table.
func Print(s *screen.Screen, diff *v1alpha1.RevisionDiff, view View) {
	from := diff.From
	if from == "" {
		from = "nothing"
	}
	s.Printf("%s\n", s.Paint(screen.Bold, fmt.Sprintf("%s → %s: %s", from, diff.To, Summary(&diff.Summary))))
	for _, note := range diff.Notes {
		style, glyph := severity(note.Severity)
		s.Para(style, glyph, noteText(&note))
	}
	each, folds := folded(diff.Changes, view)
	if len(each) > 0 {
		s.Printf("\n")
		s.Table(table(each))
	}
	for _, fold := range folds {
		s.Para(screen.Plain, screen.Waiting, fold.text(diff, view))
	}
	if view.Lines {
		for i := range each {
			unified(s, &each[i])
		}
	}
	shown := diff
	if left := diff.Truncated; left != nil && !view.Lines {
		// Lines that the user did not request do not count as omitted.
		counted := *left
		counted.Lines = 0
		copied := *diff
		if copied.Truncated = &counted; counted == (v1alpha1.DiffTruncation{}) {
			copied.Truncated = nil
		}
		shown = &copied
	}
	for _, missing := range Missing(shown, view) {
		s.Para(screen.Yellow, screen.Notice, missing)
	}
}

// Summary counts objects in words.
func Summary(summary *v1alpha1.DiffSummary) string {
	return fmt.Sprintf("%d added, %d changed, %d removed, %d unchanged", summary.Added, summary.Changed, summary.Removed, summary.Unchanged)
}

// Missing describes the parts that a diff does not show, with the commands that show them.
func Missing(diff *v1alpha1.RevisionDiff, view View) []string {
	var missing []string
	if n := diff.Summary.Withheld; n > 0 {
		missing = append(missing, text.Count(n, "object")+" not shown, whether changed or not: you cannot read their content")
	}
	if diff.Truncated == nil {
		return missing
	}
	named, more := 0, 0
	for i := range diff.Changes {
		change := &diff.Changes[i]
		left := describeOmitted(change.Truncated)
		switch {
		case left == "":
			continue
		case named == maxCut:
			more++
			continue
		}
		named++
		missing = append(missing, fmt.Sprintf("%s left out of %s %s. All of it: %s", left,
			Kind(change.APIVersion, change.Kind), qualified(change.Namespace, change.Name), whole(diff, change, view)))
	}
	switch {
	case more > 0:
		missing = append(missing, fmt.Sprintf("parts of %s more left out: the table marks them, and the same command with their kind and name shows each", text.Count(more, "object")))
	case named == 0:
		missing = append(missing, describeOmitted(diff.Truncated)+" left out: the diff is too large")
	}
	return missing
}

const maxCut = 10

// describeOmitted describes the omitted parts with their numbers; empty for none.
func describeOmitted(left *v1alpha1.DiffTruncation) string {
	if left == nil {
		return ""
	}
	var parts []string
	for _, part := range []struct {
		count int32
		noun  string
	}{{left.Objects, "object"}, {left.Fields, "field"}, {left.Values, "value"}, {left.Lines, "line"}, {left.Notes, "note"}} {
		if part.count > 0 {
			parts = append(parts, text.Count(part.count, part.noun))
		}
	}
	return strings.Join(parts, ", ")
}

// WholeCommand returns the command that shows all changes of one object. In a comparison of a
// single object, the server cuts nothing.
func WholeCommand(diff *v1alpha1.RevisionDiff, change *v1alpha1.ObjectChange) string {
	return fmt.Sprintf("%s --object %s/%s", command(diff), Kind(change.APIVersion, change.Kind), qualified(change.Namespace, change.Name))
}

// whole returns the commands that show all changes of one object. The server compares a single
// object only in stored revisions. So the first command stores a revision that is not stored,
// without rolling it out.
func whole(diff *v1alpha1.RevisionDiff, change *v1alpha1.ObjectChange, view View) string {
	if !view.Unstored {
		return WholeCommand(diff, change)
	}
	return fmt.Sprintf("store %s without rolling it out (penstock render --paused | kubectl create -f -), then %s", diff.To, WholeCommand(diff, change))
}

func command(diff *v1alpha1.RevisionDiff) string {
	switch diff.From {
	case "":
		return "kubectl penstock diff " + diff.To
	case v1alpha1.Live:
		return "kubectl penstock diff " + diff.To + ".." + v1alpha1.Live
	default:
		return "kubectl penstock diff " + diff.From + ".." + diff.To
	}
}

func severity(severity v1alpha1.NoteSeverity) (screen.Style, string) {
	switch severity {
	case v1alpha1.NoteCritical:
		return screen.Red, screen.Bad
	case v1alpha1.NoteWarning:
		return screen.Yellow, screen.Notice
	default:
		return screen.Dim, screen.Waiting
	}
}

func noteText(note *v1alpha1.DiffNote) string {
	if note.Kind == "" {
		return note.Message
	}
	kind := schema.GroupKind{Group: note.Group, Kind: note.Kind}.String()
	return kind + " " + qualified(note.Namespace, note.Name) + ": " + note.Message
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func table(changes []v1alpha1.ObjectChange) screen.Table {
	out := screen.Table{Header: []string{"CHANGE", "+/-", "OBJECT"}}
	for i := range changes {
		change := &changes[i]
		style := screen.Yellow
		switch change.Change {
		case v1alpha1.ChangeAdded:
			style = screen.Green
		case v1alpha1.ChangeRemoved:
			style = screen.Red
		case v1alpha1.ChangeChanged:
		}
		out.Rows = append(out.Rows, []screen.Cell{
			{Text: string(change.Change), Style: style}, {Text: fmt.Sprintf("+%d/-%d", change.LinesAdded, change.LinesRemoved)},
			{Text: objectOf(change)},
		})
	}
	return out
}

// objectOf returns the name of an object in a table, and whether its change is incomplete.
func objectOf(change *v1alpha1.ObjectChange) string {
	name := Kind(change.APIVersion, change.Kind) + " " + qualified(change.Namespace, change.Name)
	if describeOmitted(change.Truncated) != "" {
		name += " (not all shown)"
	}
	return name
}

// Kind returns a kind with its group: Deployment.apps.
func Kind(apiVersion, kind string) string {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return kind
	}
	return schema.GroupKind{Group: version.Group, Kind: kind}.String()
}

func unified(s *screen.Screen, change *v1alpha1.ObjectChange) {
	if change.NotCompared != "" {
		s.Printf("\n")
		s.Para(screen.Yellow, screen.Notice, Kind(change.APIVersion, change.Kind)+" "+qualified(change.Namespace, change.Name)+": "+change.NotCompared)
		return
	}
	if change.Unified != "" {
		s.Printf("\n")
		Lines(s, change.Unified)
	}
}

// Lines prints a unified diff.
func Lines(s *screen.Screen, unified string) {
	for line := range strings.Lines(unified) {
		style := screen.Plain
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
			style = screen.Bold
		case strings.HasPrefix(line, "@@"):
			style = screen.Cyan
		case strings.HasPrefix(line, "+"):
			style = screen.Green
		case strings.HasPrefix(line, "-"):
			style = screen.Red
		}
		s.Printf("%s\n", s.Paint(style, strings.TrimSuffix(line, "\n")))
	}
}
