// Package diff compares two manifests, or two revisions: field by field, as a unified diff, and in
// notes for users. It shows the effect of a revision to its approver, without noise and without
// Secrets.
//
// The package has only pure functions: no client, no clock, no store. Manifests are hostile input:
// no function panics, Limits bounds the output, the context bounds the time, and text for terminals
// has no control characters.
//
// Package tree computes the differences, render writes the output, review adds notes, and diff
// enforces the limits. Imports point in one direction:
//
//	diff -> render, review -> tree -> schema, printable
//
// Callers import diff, schema for the types that they compare with, and review for their own notes.
// Tree, render and printable are only for the packages of diff.
package diff

import (
	"context"

	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
)

// Options configure a comparison. The zero value has no types, hides only Secrets, and has the
// default limits.
type Options struct {
	// Schema returns the types of fields; nil means no types. schema.NewBuiltin has the types of
	// Kubernetes.
	Schema schema.Schema
	// Redactor hides fields in addition to the content of Secrets, which is always hidden; nil
	// hides no other fields.
	Redactor *redact.Redactor
	// Limits limit the size of the result.
	Limits Limits
	// Selecting are additional sets of objects whose selectors count for OnlyLabels.
	Selecting [][]manifest.Object
}

// Compare returns the changes from old to new. A nil pointer is an object that does not exist.
//
// Both objects must have the same identity. A manifest may be a live object: fields that a server
// fills in are ignored. Objects with the same digest are equal without parsing their JSON. If one
// has no digest, the bytes decide.
//
// If the context ends first, NotCompared says so.
func Compare(ctx context.Context, old, new *manifest.Object, options Options) Change {
	return newComparison(ctx, options.Schema, options).change(old, new)
}

// Revisions returns the changes between two sets of objects. It matches objects by identity, in any
// API version. Types come from the CustomResourceDefinitions among the objects, first those in new,
// then those in old, and then from options.Schema.
//
// JSON is read only if the digests differ or are missing. Objects that are equal on both sides may
// have no JSON; the summary then lacks their bytes. If several objects have the same identity, the
// last counts.
//
// If the context ends, objects that were not compared are listed as changed and counted in
// Truncated.
func Revisions(ctx context.Context, old, new []manifest.Object, options Options) Report {
	types := schema.Layers(schema.NewDefinitions(new), schema.NewDefinitions(old), options.Schema)
	c := newComparison(ctx, types, options)
	c.labels = unselected(append([][]manifest.Object{old, new}, options.Selecting...)...)
	return c.report(old, new)
}

// Count returns the number of changed objects between two sets, by their digests alone. An object
// counts as changed even if its manifest changed without effect.
func Count(old, new []manifest.Ref) Summary {
	var summary Summary
	before := make(map[manifest.ID]manifest.Digest, len(old))
	for _, ref := range old {
		before[ref.ID] = ref.Digest
	}
	after := make(map[manifest.ID]manifest.Digest, len(new))
	for _, ref := range new {
		after[ref.ID] = ref.Digest
	}
	for id, digest := range after {
		switch was, existed := before[id]; {
		case !existed:
			summary.Added++
		case was == digest:
			summary.Unchanged++
		default:
			summary.Changed++
		}
	}
	for id := range before {
		if _, stays := after[id]; !stays {
			summary.Removed++
		}
	}
	return summary
}
