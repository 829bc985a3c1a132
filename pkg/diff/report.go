package diff

import (
	"slices"

	"github.com/penstock-project/penstock/pkg/diff/review"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
)

func (c *comparison) report(old, new []manifest.Object) Report {
	var report Report
	before, after := byID(old), byID(new)
	c.readRights(old, new, before, after)
	c.reviewer.Replaced = review.NewReplaced(old, new)
	c.reviewer.Old = c.oldWorkloads(old, new)
	for _, id := range order(new, old) {
		was, is := before[id], after[id]
		report.Summary.addSizes(was, is)
		report.add(c.change(was, is))
	}
	report.limitNotes(c.limits)
	return report
}

// readRights reads the rights that both sets give, if any role or binding differs.
func (c *comparison) readRights(old, new []manifest.Object, before, after map[manifest.ID]*manifest.Object) {
	differ := slices.ContainsFunc(order(old, new), func(id manifest.ID) bool {
		was, is := before[id], after[id]
		return review.GivesRights(id) && (was == nil || is == nil || !sameBytes(was, is))
	})
	if !differ {
		return
	}
	c.parsed = make(map[*manifest.Object]*tree.Node)
	parse := func(object *manifest.Object) *tree.Node {
		// An unreadable role gives no rights here; its change reports the error.
		n, err := c.comparer.Parse(object)
		if err == nil {
			c.parsed[object] = n
		}
		return n
	}
	c.reviewer.Before, c.reviewer.After = review.NewRights(old, parse), review.NewRights(new, parse)
}

// oldWorkloads reads the workloads of old, if a workload changes or is added to an existing set.
func (c *comparison) oldWorkloads(old, new []manifest.Object) *review.Workloads {
	before := byID(old)
	if len(old) == 0 || !slices.ContainsFunc(new, func(object manifest.Object) bool {
		was := before[object.ID]
		return review.TemplatePath(object.ID) != nil && (was == nil || !sameBytes(was, &object))
	}) {
		return nil
	}
	return review.NewWorkloads(old, new, func(object *manifest.Object) *tree.Node {
		n, err := c.comparer.Parse(object)
		if err != nil {
			return nil // its change reports the error
		}
		return n
	})
}

func byID(objects []manifest.Object) map[manifest.ID]*manifest.Object {
	found := make(map[manifest.ID]*manifest.Object, len(objects))
	for i := range objects {
		found[objects[i].ID] = &objects[i]
	}
	return found
}

// order returns the identities of several lists without duplicates, in the order of their first
// occurrence.
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

func (s *Summary) addSizes(old, new *manifest.Object) {
	if old != nil && !old.IsSecret() {
		s.OldBytes += int64(len(old.JSON))
	}
	if new != nil && !new.IsSecret() {
		s.NewBytes += int64(len(new.JSON))
	}
}

// AddNotes adds the notes of a caller, before the existing notes of the same severity. It applies
// the limits of the comparison.
func (r *Report) AddNotes(notes []review.Note, limits Limits) {
	for i := range r.Changes {
		change := &r.Changes[i]
		if slices.ContainsFunc(notes, func(one review.Note) bool { return one.ID == change.ID && one.Severity != note.Info }) {
			change.OnlyLabels = "" // the object has more than label changes now
		}
	}
	r.Notes = slices.Concat(notes, r.Notes)
	r.limitNotes(limits.withDefaults())
}

func (r *Report) limitNotes(limits Limits) {
	notes, leftOut := mostSevere(r.Notes, limits.TotalNotes)
	r.Notes = notes
	r.Truncated.Notes += leftOut
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
	r.Truncated.Add(change.Truncated)
	r.Notes = append(r.Notes, change.Notes...)
	r.Changes = append(r.Changes, change)
}
