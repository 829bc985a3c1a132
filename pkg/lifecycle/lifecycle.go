// Package lifecycle has the versions in which Kubernetes introduces, deprecates and removes its
// kinds. It is pure.
//
// hack/lifecycle generates table.txt from several versions of Kubernetes' libraries, because each
// version lacks kinds that old manifests still have. supplement.txt is written by hand, and has the
// kinds that all of these libraries lack.
package lifecycle

import (
	_ "embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/clusterversion"
)

//go:embed table.txt
var generated string

//go:embed supplement.txt
var supplement string

// announced is the number of future minor versions whose removals the table lists. Kubernetes
// deprecates a beta version at least three minors before it removes it.
const announced = 3

// API is the lifecycle of one kind in one version. A zero version is not stated.
type API struct {
	Introduced, Deprecated, Removed clusterversion.Kubernetes
	// Replacement is empty when there is none.
	Replacement schema.GroupVersionKind
}

// Table holds the lifecycles of built-in kinds.
type Table struct {
	version clusterversion.Kubernetes
	apis    map[schema.GroupVersionKind]API
	groups  map[string]bool
}

// New returns the table that is compiled in.
func New() (*Table, error) {
	table := &Table{apis: map[schema.GroupVersionKind]API{}, groups: map[string]bool{}}
	first, _, _ := strings.Cut(generated, "\n")
	var err error
	if table.version, err = clusterversion.ParseKubernetes("1." + strings.TrimPrefix(first[strings.LastIndex(first, " ")+1:], "0.")); err != nil {
		return nil, fmt.Errorf("reading the version of the lifecycle table: %w", err)
	}
	for line := range strings.Lines(generated + supplement) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if err := table.add(strings.Fields(line)); err != nil {
			return nil, fmt.Errorf("reading the lifecycle table, line %q: %w", line, err)
		}
	}
	return table, nil
}

func (t *Table) add(columns []string) error {
	if len(columns) != 6 {
		return fmt.Errorf("%d columns, want 6", len(columns))
	}
	var one API
	for i, version := range []*clusterversion.Kubernetes{&one.Introduced, &one.Deprecated, &one.Removed} {
		if text := columns[2+i]; text != "-" {
			var err error
			if *version, err = clusterversion.ParseKubernetes(text); err != nil {
				return err
			}
		}
	}
	if at := strings.LastIndex(columns[5], "/"); at > 0 {
		one.Replacement = schema.FromAPIVersionAndKind(columns[5][:at], columns[5][at+1:])
	}
	kind := schema.FromAPIVersionAndKind(columns[0], columns[1])
	t.apis[kind] = one
	t.groups[kind.Group] = true
	return nil
}

// Version returns the newest version of Kubernetes whose libraries are in the table.
func (t *Table) Version() clusterversion.Kubernetes { return t.version }

// Knows reports whether the table covers the removals of a version. Kubernetes announces them a few
// versions ahead.
func (t *Table) Knows(target clusterversion.Kubernetes) bool {
	return target.Major == t.version.Major && target.Minor <= t.version.Minor+announced
}

// Find returns the lifecycle of a kind. found is false if its version is neither deprecated nor
// removed, or if the kind is not built in.
func (t *Table) Find(kind schema.GroupVersionKind) (one API, found bool) {
	one, found = t.apis[kind]
	return one, found
}

// IsAlpha reports whether a kind belongs to an alpha version of a built-in group. Kubernetes can
// remove such a version without notice.
func (t *Table) IsAlpha(kind schema.GroupVersionKind) bool {
	return t.groups[kind.Group] && strings.Contains(kind.Version, "alpha")
}
