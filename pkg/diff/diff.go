// Package diff compares two manifests, or two revisions: field by field, as a unified diff, and in
// notes for people. The user who approves a revision must see its effect, without noise and without
// Secrets.
//
// Everything here is a function of values: no client, no clock, no store. Manifests are hostile
// input: no function panics, Limits bounds the output, the context bounds the time, and text that
// reaches a terminal has no control characters.
//
// Diff compares with tree, render writes the result, review adds notes, and diff keeps both within
// the limits. Imports point one way, downwards:
//
//	diff -> render, review -> tree -> schema, printable
//
// Callers import diff, schema for the types that they compare with, and review for notes of their
// own. Tree, render and printable are for the packages of diff.
package diff

import (
	"context"

	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
)

// Options configure a comparison. The zero value knows no types, hides only Secrets, and has the
// default limits.
type Options struct {
	// Schema returns the types of fields; nil has none. schema.NewBuiltin has the types of Kubernetes.
	Schema schema.Schema
	// Redactor hides fields beyond the content of Secrets, which is always
	// hidden; nil hides no more.
	Redactor *redact.Redactor
	// Limits bound the result.
	Limits Limits
	// Selecting are sets of objects besides the compared ones whose selectors count, for OnlyLabels.
	Selecting [][]manifest.Object
}

// Compare returns what changes when new takes the place of old. A nil pointer
// is an object that does not exist; not both may be nil.
//
// The objects are of one identity. A manifest may be a live object: what a
// server fills in is left out of the comparison. Objects with the same digest
// are equal without a look at their JSON; where one has no digest, the bytes
// decide.
//
// When the context ends before the comparison does, the Change says so in
// NotCompared.
func Compare(ctx context.Context, old, new *manifest.Object, options Options) Change {
	return newComparison(ctx, options.Schema, options).change(old, new)
}

// Revisions returns what changes between two sets of objects, which it matches
// by identity, whatever the version they are written in. Types come from the
// CustomResourceDefinitions among the objects first, those of new before those
// of old, and then from options.Schema.
//
// JSON is looked at only where digests differ, or where there is none; of
// objects that are the same on both sides it may be missing (their bytes are
// then missing in the summary). Of several objects of one identity the last
// counts.
//
// When the context ends, what was not compared is listed as changed and counted
// in Truncated.
func Revisions(ctx context.Context, old, new []manifest.Object, options Options) Report {
	types := schema.Layers(schema.NewDefinitions(new), schema.NewDefinitions(old), options.Schema)
	c := newComparison(ctx, types, options)
	c.labels = unselected(append([][]manifest.Object{old, new}, options.Selecting...)...)
	return c.report(old, new)
}

// Count returns how many objects change between two sets, by their digests
// alone. An object whose manifest changed without meaning counts as changed.
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
