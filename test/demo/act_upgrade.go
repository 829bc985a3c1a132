package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

// listed limits the objects of a list that are named; the others are counted.
const listed = 4

// upgrade rolls out the second version, whose revision is paused.
func upgrade(ctx context.Context, d *demo) {
	before, former := d.wanted, d.current
	name := fmt.Sprintf("%s-%d", d.Name, d.number)
	d.show(ctx, setState(name, v1alpha1.LifecycleStateActive))
	revision := d.take(ctx, name)
	d.rollOut(ctx, revision)
	d.holds(ctx, revision)
	d.untilArchived(ctx, former)
	d.ok("%s is archived", former)
	change := compareRevisions(before, d.wanted)
	for _, part := range []struct {
		what string
		ids  []manifest.ID
	}{{"changed", change.Changed}, {"added", change.Added}, {"pruned", change.Pruned}} {
		if len(part.ids) > 0 {
			line := fmt.Sprintf("%-7s %3d  ", part.what, len(part.ids))
			d.item(line+some(shorts(part.ids), listed), strings.Repeat(" ", len(line)))
		}
	}
	d.pruned(ctx, before, change.Pruned)
	d.showEvents(ctx, name, "Succeeded")
	d.show(ctx, "kubectl get cer")
	d.show(ctx, "kubectl get revisionhistories")
}

// showEvents waits for a revision's events of some reasons, and shows them. Penstock writes events
// asynchronously.
func (d *demo) showEvents(ctx context.Context, name string, reasons ...string) {
	command := fmt.Sprintf("kubectl events --for cer/%s -o jsonpath='{range .items[*]}{.reason}: {.message}{\"\\n\"}{end}'", name)
	for began := time.Now(); ; {
		out := get(d.shell.run(ctx, command))
		missing := missingFrom(out.Stdout, reasons...)
		if len(missing) == 0 {
			d.show(ctx, command)
			return
		}
		if time.Since(began) > patience {
			panic(stop{&failure{claim: "events say how the rollout of " + name + " went on", want: strings.Join(reasons, ", "), got: "without " + strings.Join(missing, ", ")}})
		}
		select {
		case <-ctx.Done():
			panic(stop{context.Cause(ctx)})
		case <-time.After(again):
		}
	}
}

// setState returns the command that sets the lifecycle state of a revision.
func setState(name string, state v1alpha1.LifecycleState) string {
	return fmt.Sprintf("kubectl patch cer %s --type=merge -p '{\"spec\":{\"lifecycleState\":\"%s\"}}'", name, state)
}

func (d *demo) pruned(ctx context.Context, before []manifest.Ref, ids []manifest.ID) {
	if len(ids) == 0 {
		return
	}
	found := get(d.cluster.read(ctx, before))
	var left []string
	for _, id := range ids {
		if found[id] != nil {
			left = append(left, id.String())
		}
	}
	d.claim(len(left) == 0, fmt.Sprintf("%s pruned: %s", text.Count(len(ids), "object"), some(shorts(ids), listed)),
		"none of them left", strings.Join(left, ", "))
}
