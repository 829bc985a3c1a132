package clusterextensionrevision

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/manifest"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// maxGoing bounds the deleted objects in the warnings. Clients get at most 4 KiB of warnings.
	maxGoing = 20
	// maxStaying bounds the kept objects in the warnings.
	maxStaying = 3
	// longestWarning and longestName bound one warning and one name, in bytes.
	longestWarning = 240
	longestName    = 120
)

// Inventories reads the inventories of chains. *chain.Inventories implements it.
type Inventories interface {
	// Load returns the inventory of a chain and etcd's revision of its last write.
	Load(ctx context.Context, name string) (chain.Inventory, int64, error)
}

// foretell adds warnings to a dry-run about the objects that the deletion would delete. A user who
// may delete but not get a revision learns the numbers of objects by kind, but no names. If
// something cannot be determined, a warning reports it, and the dry-run continues.
func (r *REST) foretell(ctx context.Context, name string, orphans bool) {
	lines, err := r.forecast(ctx, name, orphans)
	if err != nil {
		lines = []string{text.Clip("the objects that would be deleted are not known: "+err.Error(), longestWarning)}
	}
	for _, line := range lines {
		warning.AddWarning(ctx, "", line)
	}
}

func (r *REST) forecast(ctx context.Context, name string, orphans bool) ([]string, error) {
	extension, _, ok := olm.ChainOf(name)
	if !ok {
		return nil, nil
	}
	revisions, err := r.Chain(ctx, extension)
	if err != nil {
		return nil, fmt.Errorf("reading the revisions of %s: %w", extension, err)
	}
	all, err := rev.FromHub(revisions...)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(revision v1alpha1.ClusterExtensionRevision) bool { return revision.Name == name })
	if i < 0 {
		return nil, nil // it is already deleted
	}
	inventory, _, err := r.inventories.Load(ctx, extension)
	if err != nil {
		return nil, err
	}
	named, err := r.mayGet(ctx, name)
	if err != nil {
		return nil, err
	}
	return inWords(rev.TeardownOf(&all[i], orphans, all, rev.Inventory(inventory)), named), nil
}

func (r *REST) mayGet(ctx context.Context, name string) (bool, error) {
	who, ok := genericrequest.UserFrom(ctx)
	if !ok || r.authorizer == nil {
		return true, nil
	}
	may, err := authz.On(v1alpha1.SchemeGroupVersion.WithResource(resource), "get", "", name).Has(ctx, r.authorizer, who)
	if err != nil {
		return false, fmt.Errorf("asking whether you may get %s: %w", name, err)
	}
	return may, nil
}

// inWords describes a teardown: the numbers of deleted and kept objects, then the names of deleted
// objects. Without named, it returns only numbers. It returns nothing for a revision without
// objects.
func inWords(found rev.Teardown, named bool) []string {
	if len(found.Deleted)+len(found.Listed)+len(found.Adopted)+len(found.Orphaned) == 0 {
		return nil
	}
	lines := []string{"would delete no object"}
	if n := len(found.Deleted); n > 0 {
		lines[0] = fmt.Sprintf("would delete %s: %s", text.Count(n, "object"), byKind(found.Deleted))
	}
	if found.Paused != "" && len(found.Deleted) > 0 {
		lines = append(lines, "nothing is deleted while "+found.Paused+" is paused")
	}
	stays := func(ids []manifest.ID, why string) {
		if len(ids) > 0 {
			lines = append(lines, fmt.Sprintf("would leave %s, %s: %s", text.Count(len(ids), "object"), why, some(ids, named)))
		}
	}
	stays(found.Listed, "which "+found.By+" lists too")
	stays(found.Adopted, "which existed before the extension")
	stays(found.Orphaned, "as the policy Orphan says")
	for i, line := range lines {
		lines[i] = text.Clip(line, longestWarning)
	}
	if !named {
		return lines
	}
	first := found.Deleted[:min(maxGoing, len(found.Deleted))]
	for _, id := range first {
		lines = append(lines, text.Middle("would delete "+id.String(), longestName)+along(id))
	}
	if more := len(found.Deleted) - len(first); more > 0 {
		lines = append(lines, fmt.Sprintf("would delete %d more", more))
	}
	return lines
}

// along describes the content that is deleted together with an object.
func along(id manifest.ID) string {
	switch {
	case id.IsDefinition():
		return ", with all of its instances"
	case id.IsNamespace(id.Name):
		return ", with all that is in it"
	case id.Group == "" && id.Kind == "PersistentVolumeClaim":
		return ", with its data"
	default:
		return ""
	}
}

// some lists the first objects by name if named is true. Otherwise it counts all objects by kind.
func some(ids []manifest.ID, named bool) string {
	if !named {
		return byKind(ids)
	}
	var parts []string
	for _, id := range ids[:min(maxStaying, len(ids))] {
		parts = append(parts, id.String())
	}
	if more := len(ids) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// byKind returns text like "3 ConfigMap, 1 Role.rbac.authorization.k8s.io".
func byKind(ids []manifest.ID) string {
	counts := map[string]int{}
	for _, id := range ids {
		counts[id.GroupKind().String()]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}
