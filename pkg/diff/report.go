package diff

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
)

func (c *comparison) report(old, new []manifest.Object) Report {
	var report Report
	before, after := byID(old), byID(new)
	c.schema = schema.Layers(schema.NewDefinitions(new), schema.NewDefinitions(old), c.schema)
	c.powers(old, new, before, after)
	for _, id := range order(new, old) {
		was, is := before[id], after[id]
		report.Summary.size(was, is)
		report.add(c.change(was, is))
	}
	slices.SortStableFunc(report.Notes, func(a, b Note) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	if over := len(report.Notes) - c.limits.TotalNotes; over > 0 {
		report.Notes = slices.Clip(report.Notes[:c.limits.TotalNotes])
		report.Truncated.Notes += over
	}
	return report
}

// powers reads the rights that both sets give, if they are not the same.
func (c *comparison) powers(old, new []manifest.Object, before, after map[manifest.ID]*manifest.Object) {
	differ := slices.ContainsFunc(order(old, new), func(id manifest.ID) bool {
		was, is := before[id], after[id]
		return id.Group == rbacGroup && (was == nil || is == nil || !sameBytes(was, is))
	})
	if !differ {
		return
	}
	build := func(object *manifest.Object) *node {
		// What cannot be read gives no rights here; its change says so.
		n, _ := c.node(object)
		return n
	}
	c.before, c.after = powersOf(old, build), powersOf(new, build)
}

func byID(objects []manifest.Object) map[manifest.ID]*manifest.Object {
	found := make(map[manifest.ID]*manifest.Object, len(objects))
	for i := range objects {
		found[objects[i].ID] = &objects[i]
	}
	return found
}

// order returns the identities of several lists, each once, in the order of
// their first occurrence.
func order(lists ...[]manifest.Object) []manifest.ID {
	var ids []manifest.ID
	seen := make(map[manifest.ID]bool)
	for _, list := range lists {
		for i := range list {
			if id := list[i].ID; !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (s *Summary) size(old, new *manifest.Object) {
	if old != nil && !old.IsSecret() {
		s.OldBytes += int64(len(old.JSON))
	}
	if new != nil && !new.IsSecret() {
		s.NewBytes += int64(len(new.JSON))
	}
}

func (r *Report) add(change Change) {
	switch change.Kind {
	case Added:
		r.Summary.Added++
	case Removed:
		r.Summary.Removed++
	case Changed:
		r.Summary.Changed++
	default:
		r.Summary.Unchanged++
		return
	}
	r.Truncated.add(change.Truncated)
	r.Notes = append(r.Notes, change.Notes...)
	r.Changes = append(r.Changes, change)
}

// withoutServerFields drops what is not the author's: status, what the API
// server writes into metadata, and what Penstock and the deployment controller
// write into labels and annotations.
func withoutServerFields(object map[string]any) map[string]any {
	object = maps.Clone(object)
	delete(object, "status")
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	metadata = maps.Clone(metadata)
	object["metadata"] = metadata
	for _, name := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "selfLink", "managedFields",
	} {
		delete(metadata, name)
	}
	for _, name := range []string{"labels", "annotations"} {
		entries, ok := metadata[name].(map[string]any)
		if !ok {
			continue
		}
		entries = maps.Clone(entries)
		maps.DeleteFunc(entries, func(key string, _ any) bool {
			return strings.HasPrefix(key, "penstock.dev/") || key == "deployment.kubernetes.io/revision"
		})
		metadata[name] = entries
		if len(entries) == 0 {
			delete(metadata, name)
		}
	}
	return object
}
