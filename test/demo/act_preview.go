package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/text"
)

// preview creates the revision of the second version as Paused, and shows what it would change.
func preview(ctx context.Context, d *demo) {
	then := get(d.cluster.read(ctx, d.wanted))
	revision := d.apply(ctx, rendering{dir: d.To, paused: true})
	out := d.show(ctx, fmt.Sprintf("kubectl get cer %s --subresource=diff", revision.Name))
	change := compareRevisions(d.wanted, refs(revision))
	rows := max(0, strings.Count(strings.TrimSpace(out), "\n"))
	differ := len(change.Changed) + len(change.Added) + len(change.Pruned)
	d.claim(rows <= differ && (rows > 0) == (differ > 0),
		fmt.Sprintf("%s in the table; of the other %d objects of %s the digest is the same", tableOf(change, rows), len(change.Same), revision.Name),
		text.Count(differ, "row")+" at most", text.Count(rows, "row"))
	now := get(d.cluster.read(ctx, append(refs(revision), d.wanted...)))
	var written []string
	for id, object := range now {
		before := then[id]
		if (before == nil) != (object == nil) || object != nil && *before != *object {
			written = append(written, id.String())
		}
	}
	slices.Sort(written)
	d.claim(len(written) == 0, fmt.Sprintf("nothing of %s is in the cluster: it is paused", revision.Name),
		"objects as they were", "written: "+strings.Join(written, ", "))
}

// tableOf formats the number of rows in a table of changes. Removed objects are not among the
// revision's objects.
func tableOf(found changes, rows int) string {
	said := text.Count(rows, "object")
	if gone := len(found.Pruned); gone > 0 {
		said += fmt.Sprintf(", %d of them only in the version before,", gone)
	}
	return said
}
