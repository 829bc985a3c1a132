package clusterextensionrevision

import (
	"fmt"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// `kubectl describe` prints a kind it does not know in the order of the alphabet:
// metadata, then all of spec, then status. Status, which a person needs first, would
// come last, behind a screen of objects. The server therefore keeps the sum of status
// in an annotation, which is printed at the top: one line when all is well, and the
// conditions and the objects that are at fault otherwise. It is written together with
// status, belongs to the server, and says nothing that status does not say.

const (
	// describedLine is the number of characters that kubectl describe prints of a line of an
	// annotation.
	describedLine = 136
	// summaryObjects bounds the failing objects that the summary names.
	summaryObjects = 5
)

// summarize brings the annotation up to date with status.
func summarize(revision *olm.ClusterExtensionRevision) {
	decisive := decisiveCondition(revision.Status.Conditions)
	line := decisive.Reason
	if decisive.Message != "" {
		line += ": " + decisive.Message
	}
	lines := []string{line}
	if faults, some := faultsOf(revision, decisive.Message); some {
		lines = append(append(lines, conditionsLine(revision.Status.Conditions)), faults...)
	}
	for i := range lines {
		lines[i] = wrap(lines[i])
	}
	setAnnotation(revision, v1alpha1.SummaryAnnotation, strings.Join(lines, "\n"))
}

// conditionsLine has all conditions in one line.
func conditionsLine(conditions []metav1.Condition) string {
	var parts []string
	for _, c := range conditions {
		parts = append(parts, fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason))
	}
	return strings.Join(parts, ", ")
}

// faultsOf are the objects that hold the revision back, a line each, without those that a
// message has named already. It tells whether there are any.
func faultsOf(revision *olm.ClusterExtensionRevision, named string) (lines []string, some bool) {
	left := 0
	for _, phase := range revision.Status.Phases {
		left += int(phase.FailingOmitted)
		for _, object := range phase.Failing {
			some = true
			name := object.Name
			if object.Namespace != "" {
				name = object.Namespace + "/" + name
			}
			switch {
			case strings.Contains(named, name+": "+object.Message):
			case len(lines) == summaryObjects:
				left++
			default:
				lines = append(lines, fmt.Sprintf("%s: %s %s: %s: %s", phase.Name, object.Kind, name, object.Reason, object.Message))
			}
		}
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", left))
	}
	return lines, some
}

// wrap breaks a line where kubectl would cut it, between words.
func wrap(line string) string {
	if len(line) <= describedLine {
		return line
	}
	var out strings.Builder
	width := 0
	for i, word := range strings.Split(line, " ") {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width+1+length > describedLine:
			out.WriteString("\n  ")
			width = 2
		default:
			out.WriteByte(' ')
			width++
		}
		out.WriteString(word)
		width += length
	}
	return out.String()
}
