package diff

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
)

// comparison is one call of Compare or Revisions.
type comparison struct {
	*builder
	schema   schema.Schema
	redactor *redact.Redactor
	limits   Limits
	// before and after are the rights that the sets of objects give; nil when
	// only one object is compared.
	before, after *powers

	// What may still be shown, of the limits on the whole.
	fields, valueBytes, unifiedBytes int
}

func newComparison(ctx context.Context, options Options) *comparison {
	limits := options.Limits.withDefaults()
	return &comparison{
		builder:      &builder{seed: maphash.MakeSeed(), stop: func() bool { return ctx.Err() != nil }},
		schema:       schema.Layers(options.Schema),
		redactor:     options.Redactor,
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
	// Errors of the decoder are not shown: they quote what may be a Secret.
	before, err := c.node(old)
	if err != nil {
		return notCompared(change, "the old manifest is no JSON object")
	}
	after, err := c.node(new)
	if err != nil {
		return notCompared(change, "the new manifest is no JSON object")
	}
	shown := c.show(change, differ{c.builder}.compare(before, after))
	if c.stop() {
		return notCompared(change, "time ran out")
	}
	return shown
}

// header is a change without its content. Objects that both exist are Changed.
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

// sameBytes tells whether two manifests are the same to the byte: by digest, or
// by their JSON where one has none, or where they were made with different keys.
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

// node decodes a manifest, leaves out what servers fill in, and marks what is to
// be hidden.
func (c *comparison) node(object *manifest.Object) (*node, error) {
	if object == nil {
		return nil, nil
	}
	var decoded map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object.JSON, &decoded); err != nil {
		return nil, err
	}
	if decoded == nil {
		return nil, fmt.Errorf("found null, want an object")
	}
	hide := c.redactor.Mask(object.GroupKind())
	if object.IsSecret() {
		hide = append(slices.Clip(hide), redact.SecretMask()...)
	}
	decoded = conceal(withoutServerFields(decoded), len(hide) > 0)
	return c.build(decoded, c.schema.TypeOf(object.GroupVersionKind()), place{mask: hide}), nil
}

// show fills in what is shown of a difference.
func (c *comparison) show(change Change, d delta) Change {
	switch d.op {
	case deltaSame:
		change.Kind = Unchanged
		return change
	case deltaInside, deltaReplaced:
		list := fieldList{left: &c.fields, leftBytes: &c.valueBytes, limits: c.limits}
		list.add(&path{}, d, -1)
		change.Fields = list.changes
		change.Truncated.add(list.truncated)
	}
	c.unified(&change, d)
	c.words(&change, d)
	return change
}

func (c *comparison) unified(change *Change, d delta) {
	h := &hunks{limit: min(c.limits.UnifiedBytes, c.unifiedBytes), width: c.limits.LineBytes, around: contextLines}
	printer := &yamlPrinter{hunks: h, stop: c.stop}
	switch d.op {
	case deltaAdded:
		printer.object(newSide, d.new, 0)
	case deltaRemoved:
		printer.object(oldSide, d.old, 0)
	default:
		printer.fieldsDelta(d, 0)
	}
	h.finish()
	change.AddedLines, change.RemovedLines = h.addedLines, h.removedLines
	change.Truncated.Lines += h.left
	c.unifiedBytes -= h.out.Len()
	if h.out.Len() == 0 {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n", fileName(change.ID, change.OldVersion))
	fmt.Fprintf(&b, "+++ %s\n", fileName(change.ID, change.NewVersion))
	b.WriteString(h.out.String())
	if h.left > 0 {
		fmt.Fprintf(&b, "\\ %d more lines\n", h.left)
	}
	change.Unified = b.String()
}

// fileName is what a unified diff calls one side.
func fileName(id manifest.ID, version string) string {
	if version == "" {
		return "/dev/null"
	}
	name := []string{runtimeschema.GroupVersion{Group: id.Group, Version: version}.String(), id.Kind, id.Namespace, id.Name}
	return text(strings.Join(slices.DeleteFunc(name, func(s string) bool { return s == "" }), "/"))
}

// words writes the notes of a change.
func (c *comparison) words(change *Change, d delta) {
	notes := c.notesOf(*change, d)
	slices.SortStableFunc(notes, func(a, b Note) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	if over := len(notes) - c.limits.Notes; over > 0 {
		notes = notes[:c.limits.Notes]
		change.Truncated.Notes += over
	}
	change.Notes = notes
}

func rank(s Severity) int {
	return slices.Index([]Severity{Critical, Warning, Info}, s)
}
