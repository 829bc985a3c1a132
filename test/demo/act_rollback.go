package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// rollback leaves a stuck revision behind: the next one has the content of the one
// that worked.
func rollback(ctx context.Context, d *demo) error {
	stuck, worked := fmt.Sprintf("%s-%d", d.Name, d.number), d.current
	given, err := d.cluster.revision(ctx, stuck)
	if err != nil {
		return fmt.Errorf("reading revision %s: %w", stuck, err)
	}
	name := d.next()
	began := time.Now()
	out, err := d.show(ctx, fmt.Sprintf("kubectl penstock rollback %s --cause \"%s cannot get its image\" --stat --yes", d.Name, stuck))
	if err != nil {
		return err
	}
	if err := d.claim(strings.HasPrefix(out, stuck+" → "+name+": "), fmt.Sprintf("the rollback is a revision of its own, %s; what it changes was shown before", name), name, out); err != nil {
		return err
	}
	revision, err := d.take(ctx, name)
	if err != nil {
		return err
	}
	if err := d.sameContent(ctx, worked, revision); err != nil {
		return err
	}
	if err := d.follow(ctx, name, name+" is rolled out", newProgress(began, nil), rolledOut); err != nil {
		return err
	}
	d.ok("%s is rolled out and available after %s", name, seconds(time.Since(began)))
	if err := d.untilArchived(ctx, stuck); err != nil {
		return err
	}
	if err := d.holds(ctx, revision); err != nil {
		return err
	}
	if err := d.pruned(ctx, refs(given), compareRevisions(refs(given), d.wanted).Pruned); err != nil {
		return err
	}
	if _, err := d.show(ctx, d.getDeployments("-o custom-columns=NAME:.metadata.name,IMAGE:..image")); err != nil {
		return err
	}
	_, err = d.show(ctx, "kubectl get revisionhistory "+d.Name)
	return err
}

// sameContent checks that a revision has the objects of another one, by digest.
func (d *demo) sameContent(ctx context.Context, name string, revision *v1alpha1.ClusterExtensionRevision) error {
	other, err := d.cluster.revision(ctx, name)
	if err != nil {
		return fmt.Errorf("reading revision %s: %w", name, err)
	}
	change := compareRevisions(refs(other), refs(revision))
	return d.claim(len(change.Same) == len(refs(other)) && len(change.Added) == 0,
		fmt.Sprintf("%s has the content of %s, by digest; no manifest travelled", revision.Name, name),
		"the same objects", fmt.Sprintf("%d the same, %d changed, %d added, %d missing",
			len(change.Same), len(change.Changed), len(change.Added), len(change.Pruned)))
}

// getDeployments is the command that lists the Deployments of the extension.
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
