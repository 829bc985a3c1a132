package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// giveUp archives the stuck revision and checks that the former content is back.
func giveUp(ctx context.Context, d *demo) error {
	stuck := fmt.Sprintf("%s-%d", d.Name, d.number)
	given, err := d.cluster.revision(ctx, stuck)
	if err != nil {
		return fmt.Errorf("reading revision %s: %w", stuck, err)
	}
	if _, err := d.show(ctx, fmt.Sprintf(
		"kubectl patch cer %s --type=merge -p '{\"spec\":{\"lifecycleState\":\"Archived\"}}'", stuck)); err != nil {
		return err
	}
	if err := d.settled(ctx, d.current); err != nil {
		return err
	}
	if err := d.untilArchived(ctx, stuck); err != nil {
		return err
	}
	revision, err := d.cluster.revision(ctx, d.current)
	if err != nil {
		return fmt.Errorf("reading revision %s: %w", d.current, err)
	}
	if err := d.holds(ctx, revision); err != nil {
		return err
	}
	if err := d.pruned(ctx, refs(given), compareRevisions(refs(given), d.wanted).Pruned); err != nil {
		return err
	}
	if _, err := d.show(ctx, "kubectl get cer"); err != nil {
		return err
	}
	_, err = d.show(ctx, d.getDeployments("-o custom-columns=NAME:.metadata.name,IMAGE:..image"))
	return err
}

// settled waits until a revision, which was rolled out before, is so again.
func (d *demo) settled(ctx context.Context, name string) error {
	began := time.Now()
	if err := d.follow(ctx, name, name+" is rolled out again", newProgress(began, nil), rolledOut); err != nil {
		return err
	}
	d.ok("%s is rolled out and available again after %s", name, seconds(time.Since(began)))
	return nil
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
