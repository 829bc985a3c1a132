package clusterextensionrevision

import (
	"fmt"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// `kubectl describe` prints an unknown kind in alphabetical order: metadata, then all of spec, then
// status. Users need status first. So the server keeps a summary of status in an annotation, which
// is printed at the top. It is one line for a revision without faults; otherwise it has the
// conditions and the faulty objects. The server writes it together with status, and it contains
// only facts from status.

const (
	// describedLine is the number of characters of an annotation line that kubectl describe prints.
	describedLine = 136
	// summaryObjects bounds the failing objects in the summary.
	summaryObjects = 5
)

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

func conditionsLine(conditions []metav1.Condition) string {
	var parts []string
	for _, c := range conditions {
		parts = append(parts, fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason))
	}
	return strings.Join(parts, ", ")
}

// faultsOf returns one line for each object that blocks the revision, except objects that named
// already contains. It reports whether any object blocks the revision.
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

// wrap breaks a line between words, before kubectl would cut it.
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
