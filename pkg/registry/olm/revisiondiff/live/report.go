package live

import (
	"context"

	"github.com/penstock-project/penstock/pkg/diff"
	diffreview "github.com/penstock-project/penstock/pkg/diff/review"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

// report compares the current objects with the previewed objects, and adds notes.
func report(ctx context.Context, found preview.Preview, question revisiondiff.LiveQuestion) diff.Report {
	manifests := make(map[manifest.ID]manifest.Object, len(question.Manifests))
	for _, object := range question.Manifests {
		manifests[object.ID] = object
	}
	var before, after []manifest.Object
	var refused []diff.Change
	unchanged := 0
	for i := range found.Items {
		item := &found.Items[i]
		switch {
		case item.Unread:
			// An unread object is unknown, not absent.
			refused = append(refused, notCompared(item, "it could not be read"))
		case item.Overtaken:
			refused = append(refused, notCompared(item, "it was written while it was compared; ask again"))
		case item.Failure != nil && item.Exists:
			refused = append(refused, notCompared(item, "the API server refuses what a rollout would write"))
		case item.Action == preview.Delete:
			before = append(before, side(item.Ref, item.Before))
		case item.After != nil && item.Before != nil:
			before = append(before, side(item.Ref, item.Before))
			after = append(after, side(item.Ref, item.After))
		case !item.Exists && listed(manifests, item.ID):
			after = append(after, manifests[item.ID])
		case item.Exists:
			unchanged++
		}
	}
	out := diff.Revisions(ctx, before, after, question.Options)
	out.Changes = append(out.Changes, refused...)
	out.Summary.Changed += len(refused)
	out.Summary.Unchanged += unchanged
	out.Summary.OldBytes, out.Summary.NewBytes = 0, sizes(found, manifests)
	annotate(&out, found, question.Options)
	return out
}

// notCompared returns the change of an object that could not be compared.
func notCompared(item *preview.Item, why string) diff.Change {
	return diff.Change{ID: item.ID, OldVersion: item.Version, NewVersion: item.Version, Kind: diff.Changed, NotCompared: why}
}

func listed(manifests map[manifest.ID]manifest.Object, id manifest.ID) bool {
	_, ok := manifests[id]
	return ok
}

// side is one side of a comparison of an object with itself.
func side(ref manifest.Ref, raw []byte) manifest.Object {
	// The digest belongs to the manifest, and would be equal on both sides.
	ref.Digest = ""
	return manifest.Object{Ref: ref, JSON: raw}
}

// sizes returns the total size of the compared manifests, without Secrets.
func sizes(found preview.Preview, manifests map[manifest.ID]manifest.Object) int64 {
	var sum int64
	for i := range found.Items {
		if id := found.Items[i].ID; !id.IsSecret() {
			sum += int64(len(manifests[id].JSON))
		}
	}
	return sum
}

// annotate adds notes about facts that the changes do not show.
func annotate(out *diff.Report, found preview.Preview, options diff.Options) {
	changes := make(map[manifest.ID]*diff.Change, len(out.Changes))
	for i := range out.Changes {
		changes[out.Changes[i].ID] = &out.Changes[i]
	}
	var added []diffreview.Note
	for i := range found.Items {
		item := &found.Items[i]
		if text, ok := noteOf(item, changes[item.ID]); ok {
			text.ID = item.ID
			added = append(added, text)
		}
	}
	out.AddNotes(added, options.Limits)
}
