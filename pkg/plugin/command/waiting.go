package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// clusterExtensions lists the ClusterExtensions by name. Who may not see them is told so. A
// cluster without that kind has none.
func clusterExtensions(ctx context.Context, s *session.Session, cluster *session.Cluster) ([]unstructured.Unstructured, error) {
	listed, err := cluster.Host.Resource(extension.Resource).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		s.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("ClusterExtensions are not shown: %v", err))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing ClusterExtensions: %w", err)
	}
	slices.SortFunc(listed.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return listed.Items, nil
}

// wanted is what has become of ClusterExtensions.
type wanted struct {
	// alone have no revision among those that are shown: they were denied, or no catalog has a
	// version for them. By name.
	alone []overview.Asked
	// unmet have revisions, by name, none of which needs somebody, and do not get what they ask for.
	unmet map[string]overview.Asked
}

// readWanted says how ClusterExtensions are, as far as Penstock has looked at them as they are.
func readWanted(objects []unstructured.Unstructured, shown []overview.Extension) (wanted, error) {
	out := wanted{unmet: map[string]overview.Asked{}}
	for i := range objects {
		read, err := extension.From(&objects[i])
		if err != nil {
			return wanted{}, err
		}
		asked := overview.Ask(read)
		at := slices.IndexFunc(shown, func(one overview.Extension) bool { return one.Name == asked.Name })
		switch {
		case at < 0:
			out.alone = append(out.alone, asked)
		case asked.Needs && !shown[at].Attended():
			out.unmet[asked.Name] = asked
		}
	}
	return out, nil
}

// inNeed are lines about those that need somebody; why shows all of a message.
func (a wanted) inNeed() []screen.Line {
	all := slices.Concat(a.alone, slices.Collect(maps.Values(a.unmet)))
	slices.SortFunc(all, func(a, b overview.Asked) int { return strings.Compare(a.Name, b.Name) })
	var lines []screen.Line
	for _, one := range all {
		if one.Needs {
			lines = append(lines, screen.Line{Glyph: screen.Bad, Style: screen.Red,
				Text: fmt.Sprintf("%s: %s: %s; kubectl penstock why %s", one.Name, one.Reason, one.Announced(), one.Name)})
		}
	}
	return lines
}

// rows are those of the table of extensions that have no revision.
func (a wanted) rows(now time.Time) [][]screen.Cell {
	var rows [][]screen.Cell
	for _, one := range a.alone {
		style := screen.Cyan
		if one.Needs {
			style = screen.Red
		}
		rows = append(rows, []screen.Cell{
			{Text: one.Name}, {Text: "-"}, {}, {}, {}, {Text: duration.HumanDuration(now.Sub(one.Created.Time))}, {Text: one.Reason, Style: style},
		})
	}
	return rows
}
