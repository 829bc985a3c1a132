package revisiondiff

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/printing"
)

const (
	// maxWarnings and maxWarningRunes keep the notes of a table in the headers below 4096
	// characters. Above this limit the server cuts warnings. Notes that fit together are not cut:
	// the end of a note may be important.
	maxWarnings     = 18
	maxWarningRunes = 200
)

// table prints tables of diffs: one row for each changed object.
//
// Notes are sent as warnings, which kubectl prints on stderr before the table, in colour on a
// terminal. So scripts that parse the rows are not affected. Rows could not hold notes: kubectl
// sorts and aligns rows, so one sentence in a column would push the other columns off the screen.
// With -o yaml they are notes.
type table struct{}

func columns() []metav1.TableColumnDefinition {
	const wide = 1
	return []metav1.TableColumnDefinition{
		{Name: "Change", Type: "string", Description: "Added, Removed or Changed."},
		{Name: "Kind", Type: "string", Description: "Kind of the object, with its group."},
		{Name: "Namespace", Type: "string", Description: "Namespace of the object."},
		{Name: "Name", Type: "string", Description: "Name of the object."},
		{Name: "Fields", Type: "string", Description: "Number of fields that change; ? when they were not compared."},
		{Name: "+/-", Type: "string", Description: "Lines that are added and removed in YAML."},
		{Name: "First Path", Type: "string", Priority: wide, Description: "Path of the first field that changes."},
	}
}

// ConvertToTable prints a diff.
func (table) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	changes, ok := object.(*v1alpha1.RevisionDiff)
	if !ok {
		return nil, fmt.Errorf("printing a table of changes: got a %T", object)
	}
	out := &metav1.Table{}
	for i := range changes.Changes {
		change := &changes.Changes[i]
		out.Rows = append(out.Rows, printing.Row(cells(change), &v1alpha1.RevisionDiff{ObjectMeta: named(change.Name)}))
	}
	for _, text := range warnings(changes) {
		warning.AddWarning(ctx, "", text)
	}
	return printing.Headed(out, options, columns()), nil
}

func cells(change *v1alpha1.ObjectChange) []any {
	group, _ := schema.ParseGroupVersion(change.APIVersion)
	kind := schema.GroupKind{Group: group.Group, Kind: change.Kind}
	fields, path := "-", ""
	switch {
	case change.NotCompared != "":
		fields = "?"
	case change.Change == v1alpha1.ChangeChanged:
		fields = strconv.Itoa(int(change.FieldCount))
	}
	if len(change.Fields) > 0 {
		path = change.Fields[0].Path
	}
	lines := fmt.Sprintf("+%d/-%d", change.LinesAdded, change.LinesRemoved)
	return []any{string(change.Change), kind.String(), change.Namespace, change.Name, fields, lines, path}
}

// warnings returns the lines before the table.
func warnings(changes *v1alpha1.RevisionDiff) []string {
	var texts []string
	for i := range changes.Notes {
		texts = append(texts, noteText(&changes.Notes[i]))
	}
	// If everything is omitted, no warning claims that there is no difference.
	if len(changes.Changes) == 0 && (changes.Summary.Unchanged > 0 || changes.Summary.Withheld == 0) {
		texts = append(texts, nothing(changes))
	}
	if len(texts) > maxWarnings {
		more := len(texts) - maxWarnings
		texts = append(texts[:maxWarnings], fmt.Sprintf("%d more notes: see them with -o yaml", more))
	}
	if n := changes.Summary.Withheld; n > 0 {
		may := "get"
		if changes.From == v1alpha1.Live {
			may = "both get and patch"
		}
		texts = append(texts, fmt.Sprintf("left out, as you cannot %s them: %d", may, n))
	}
	if changes.Truncated != nil {
		texts = append(texts, "parts of this diff are left out, because it is too large: see truncated with -o yaml")
	}
	return fitting(texts)
}

// fitting returns the texts that fit into the headers of an answer.
func fitting(texts []string) []string {
	runes := 0
	for i, text := range texts {
		texts[i] = inHeader(text)
		runes += utf8.RuneCountInString(texts[i])
	}
	if runes <= maxWarnings*maxWarningRunes {
		return texts
	}
	for i, text := range texts {
		texts[i] = clip(text)
	}
	return texts
}

// nothing returns a warning for an empty diff. Without it, kubectl would print "No resources
// found", as for a missing answer.
func nothing(changes *v1alpha1.RevisionDiff) string {
	return fmt.Sprintf("no difference between %s and %s, in %d objects", orNothing(changes.From), changes.To, changes.Summary.Unchanged)
}

func orNothing(name string) string {
	if name == "" {
		return "nothing"
	}
	return name
}

func noteText(note *v1alpha1.DiffNote) string {
	text := note.Message
	if note.Kind != "" {
		object := note.Name
		if note.Namespace != "" {
			object = note.Namespace + "/" + note.Name
		}
		text = schema.GroupKind{Group: note.Group, Kind: note.Kind}.String() + " " + object + ": " + text
	}
	if note.Severity == v1alpha1.NoteCritical {
		text = "CRITICAL: " + text
	}
	return text
}

// inHeader returns text without control characters, which the server would drop from a header.
func inHeader(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

func clip(text string) string {
	if runes := []rune(text); len(runes) > maxWarningRunes {
		return string(runes[:maxWarningRunes-3]) + "..."
	}
	return text
}
