package diff

import (
	"bytes"
	"context"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/diff/render"
	"github.com/penstock-project/penstock/pkg/diff/review"
	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// contextLines is the number of lines around each change of a unified diff.
const contextLines = 3

type comparison struct {
	comparer *tree.Comparer
	reviewer review.Reviewer
	// stop reports whether the time is over.
	stop   func() bool
	limits Limits
	// parsed are objects that give rights and have been parsed already.
	parsed map[*manifest.Object]*tree.Node

	// labels are the version labels that no selector uses.
	labels []string

	// The remaining parts of the total limits.
	fields, valueBytes, unifiedBytes int
}

func newComparison(ctx context.Context, types schema.Schema, options Options) *comparison {
	limits := options.Limits.withDefaults()
	stop := func() bool { return ctx.Err() != nil }
	return &comparison{
		comparer:     tree.NewComparer(types, options.Redactor, stop),
		reviewer:     review.Reviewer{Stop: stop},
		stop:         stop,
		limits:       limits,
		fields:       limits.TotalFields,
		valueBytes:   limits.TotalValueBytes,
		unifiedBytes: limits.TotalUnifiedBytes,
	}
}

func (c *comparison) change(old, new *manifest.Object) Change {
	change := header(old, new)
	if change.Kind == Changed && sameBytes(old, new) {
		change.Kind = Unchanged
	}
	if change.Kind == Unchanged {
		return change
	}
	if c.stop() {
		return notCompared(change, "time ran out")
	}
	// Errors of the decoder are not shown, because they may quote a Secret.
	before, err := c.parse(old)
	if err != nil {
		return notCompared(change, "the old manifest is no JSON object")
	}
	after, err := c.parse(new)
	if err != nil {
		return notCompared(change, "the new manifest is no JSON object")
	}
	shown := c.show(change, c.comparer.Compare(before, after))
	if c.stop() {
		return notCompared(change, "time ran out")
	}
	return shown
}

// parse returns the tree of an object. A cached tree is used once.
func (c *comparison) parse(object *manifest.Object) (*tree.Node, error) {
	if n, ok := c.parsed[object]; ok {
		delete(c.parsed, object)
		return n, nil
	}
	return c.comparer.Parse(object)
}

// header returns a change without its content. If both objects exist, its kind is Changed.
func header(old, new *manifest.Object) Change {
	var change Change
	switch {
	case old == nil && new == nil:
		change.Kind = Unchanged
	case old == nil:
		change.Kind, change.ID, change.NewVersion = Added, new.ID, new.Version
	case new == nil:
		change.Kind, change.ID, change.OldVersion = Removed, old.ID, old.Version
	default:
		change.Kind, change.ID = Changed, new.ID
		change.OldVersion, change.NewVersion = old.Version, new.Version
	}
	return change
}

// sameBytes reports whether two manifests are identical. If the digests differ, or one is missing,
// it compares the JSON, because digests may have different keys.
func sameBytes(old, new *manifest.Object) bool {
	if old.Digest != "" && old.Digest == new.Digest {
		return true
	}
	return old.JSON != nil && bytes.Equal(old.JSON, new.JSON)
}

func notCompared(change Change, why string) Change {
	change.NotCompared = why
	change.Truncated.Objects = 1
	return change
}

// show completes a change with the visible parts of its difference.
func (c *comparison) show(change Change, d tree.Delta) Change {
	switch d.Op {
	case tree.Same:
		change.Kind = Unchanged
		return change
	case tree.Inside, tree.Replaced:
		list := fieldList{left: &c.fields, leftBytes: &c.valueBytes, limits: c.limits}
		list.add(&tree.Path{}, d, -1)
		change.Fields = list.changes
		change.Truncated.Add(list.truncated)
	}
	c.unified(&change, d)
	c.review(&change, d)
	change.OnlyLabels = onlyLabels(&change, c.labels)
	return change
}

func (c *comparison) unified(change *Change, d tree.Delta) {
	unified := render.NewUnified(d, render.Limits{
		Bytes: min(c.limits.UnifiedBytes, c.unifiedBytes), LineBytes: c.limits.LineBytes, ContextLines: contextLines,
	}, c.stop)
	c.unifiedBytes -= len(unified.Hunks)
	change.AddedLines, change.RemovedLines = unified.AddedLines, unified.RemovedLines
	change.Truncated.Lines += unified.LeftOut
	change.Unified = unified.Text(fileName(change.ID, change.OldVersion), fileName(change.ID, change.NewVersion))
}

func fileName(id manifest.ID, version string) string {
	if version == "" {
		return "/dev/null"
	}
	name := []string{runtimeschema.GroupVersion{Group: id.Group, Version: version}.String(), id.Kind, id.Namespace, id.Name}
	return printable.Line(strings.Join(slices.DeleteFunc(name, func(s string) bool { return s == "" }), "/"))
}

func (c *comparison) review(change *Change, d tree.Delta) {
	notes := c.reviewer.Notes(review.Change{ID: change.ID, OldVersion: change.OldVersion, NewVersion: change.NewVersion, Delta: d})
	change.Notes, change.Truncated.Notes = mostSevere(notes, c.limits.Notes)
}

// mostSevere sorts notes by severity, and returns the first notes and the number of omitted notes.
func mostSevere(notes []review.Note, limit int) (kept []review.Note, leftOut int) {
	review.Sort(notes)
	if over := len(notes) - limit; over > 0 {
		return slices.Clip(notes[:limit]), over
	}
	return notes, 0
}
