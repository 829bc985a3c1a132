package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// withoutRevisions lists the ClusterExtensions that have no revision among those that are shown,
// by name: those that were denied, or for which no catalog has a version. Who may not see
// them is told so. A cluster without that kind has none.
func withoutRevisions(ctx context.Context, s *session.Session, cluster *session.Cluster, shown []overview.Extension) ([]unstructured.Unstructured, error) {
	listed, err := cluster.Host.Resource(extension.Resource).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		s.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("ClusterExtensions without revisions are not shown: %v", err))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing ClusterExtensions: %w", err)
	}
	waiting := slices.DeleteFunc(listed.Items, func(object unstructured.Unstructured) bool {
		return slices.ContainsFunc(shown, func(one overview.Extension) bool { return one.Name == object.GetName() })
	})
	slices.SortFunc(waiting, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return waiting, nil
}

// waitingExtension is how an extension without revisions is.
type waitingExtension struct {
	name, reason, message string
	// stalled is whether it needs somebody.
	stalled bool
	created time.Time
}

// readWaiting says how extensions are, as far as Penstock has looked at them as they are.
func readWaiting(objects []unstructured.Unstructured) ([]waitingExtension, error) {
	var all []waitingExtension
	for i := range objects {
		read, err := extension.From(&objects[i])
		if err != nil {
			return nil, err
		}
		one := waitingExtension{name: read.Name, reason: "Pending", created: read.CreationTimestamp.Time}
		if ready := meta.FindStatusCondition(read.Status.Conditions, "Ready"); ready != nil && ready.ObservedGeneration == read.Generation {
			one.reason, one.message = ready.Reason, ready.Message
			one.stalled = meta.IsStatusConditionTrue(read.Status.Conditions, "Stalled")
		}
		all = append(all, one)
	}
	return all, nil
}

// waitingInNeed are lines about those that need somebody. A message may end with a file, behind
// words that announce it: why shows all.
func waitingInNeed(all []waitingExtension) []screen.Line {
	var lines []screen.Line
	for _, one := range all {
		if one.stalled {
			first, _, more := strings.Cut(one.message, "\n")
			if end := strings.LastIndex(first, ": "); more && end > 0 {
				first = first[:end]
			}
			lines = append(lines, screen.Line{Glyph: screen.Bad, Style: screen.Red,
				Text: fmt.Sprintf("%s: %s: %s; kubectl penstock why %s", one.name, one.reason, first, one.name)})
		}
	}
	return lines
}

// waitingRows are rows of the table of extensions.
func waitingRows(all []waitingExtension, now time.Time) [][]screen.Cell {
	var rows [][]screen.Cell
	for _, one := range all {
		style := screen.Cyan
		if one.stalled {
			style = screen.Red
		}
		rows = append(rows, []screen.Cell{
			{Text: one.name}, {Text: "-"}, {}, {}, {}, {Text: duration.HumanDuration(now.Sub(one.created))}, {Text: one.reason, Style: style},
		})
	}
	return rows
}
