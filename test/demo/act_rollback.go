package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// rollback leaves a stuck revision: the next revision has the content of the last working revision.
func rollback(ctx context.Context, d *demo) {
	stuck, worked := fmt.Sprintf("%s-%d", d.Name, d.number), d.current
	given, err := d.cluster.revision(ctx, stuck)
	if err != nil {
		panic(stop{fmt.Errorf("reading revision %s: %w", stuck, err)})
	}
	name := d.next()
	began := time.Now()
	out := d.show(ctx, fmt.Sprintf("kubectl penstock rollback %s --cause \"%s cannot get its image\" --stat --yes", d.Name, stuck))
	d.claim(strings.HasPrefix(out, stuck+" → "+name+": "), fmt.Sprintf("the rollback is a new revision, %s; its changes were shown before", name), name, out)
	revision := d.take(ctx, name)
	d.sameContent(ctx, worked, revision)
	d.follow(ctx, name, name+" is rolled out", newProgress(began, nil), rolledOut)
	d.ok("%s is rolled out and available after %s", name, seconds(time.Since(began)))
	d.untilArchived(ctx, stuck)
	d.holds(ctx, revision)
	d.pruned(ctx, refs(given), compareRevisions(refs(given), d.wanted).Pruned)
	d.show(ctx, d.getDeployments("-o custom-columns=NAME:.metadata.name,IMAGE:..image"))
	d.show(ctx, "kubectl get revisionhistory "+d.Name)
}

// sameContent checks that two revisions have the same objects, by digest.
func (d *demo) sameContent(ctx context.Context, name string, revision *v1alpha1.ClusterExtensionRevision) {
	other, err := d.cluster.revision(ctx, name)
	if err != nil {
		panic(stop{fmt.Errorf("reading revision %s: %w", name, err)})
	}
	change := compareRevisions(refs(other), refs(revision))
	d.claim(len(change.Same) == len(refs(other)) && len(change.Added) == 0,
		fmt.Sprintf("%s has the content of %s, by digest; no manifest travelled", revision.Name, name),
		"the same objects", fmt.Sprintf("%d the same, %d changed, %d added, %d missing",
			len(change.Same), len(change.Changed), len(change.Added), len(change.Pruned)))
}

// getDeployments returns the command that lists the extension's Deployments.
func (d *demo) getDeployments(options string) string {
	var namespace string
	for _, ref := range deployments(d.wanted) {
		switch {
		case namespace == "":
			namespace = ref.Namespace
		case namespace != ref.Namespace:
			return strings.TrimSpace("kubectl get deployments -A -l penstock.dev/chain=" + d.Name + " " + options)
		}
	}
	return strings.TrimSpace("kubectl get deployments -n " + namespace + " " + options)
}
