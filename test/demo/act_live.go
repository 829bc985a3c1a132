package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/text"
)

// compareLive changes an image while the revision is paused, and shows what a rollout would repair.
func compareLive(ctx context.Context, d *demo) {
	target := deployments(d.wanted)[0].ID
	before, err := d.cluster.deployment(ctx, target)
	if err != nil {
		panic(stop{fmt.Errorf("reading %s: %w", target, err)})
	}
	d.pause(ctx)
	d.show(ctx, setImage(before))
	out := d.show(ctx, fmt.Sprintf("kubectl get revisiondiff %s..live", d.current))
	rows := strings.Count(strings.TrimSpace(out), "\n")
	d.claim(rows == 1 && strings.Contains(out, target.Name),
		fmt.Sprintf("of %s, a rollout would change %s and nothing else", text.Count(len(d.wanted), "object"), short(target)),
		"one row with "+target.Name, text.Count(rows, "row"))
	d.show(ctx, setState(d.current, v1alpha1.LifecycleStateActive))
	began := time.Now()
	good := image(before)
	if err := d.cluster.followDeployment(ctx, target, func(deployment *appsv1.Deployment) bool { return image(deployment) == good }); err != nil {
		panic(stop{&failure{claim: short(target) + " is repaired", want: "image " + good, got: err.Error()}})
	}
	d.ok("%s has its image back %s after the pause", short(target), seconds(time.Since(began)))
	d.calm(ctx, target)
}

// pause pauses the current revision and waits until its controller has observed it.
func (d *demo) pause(ctx context.Context) {
	d.show(ctx, setState(d.current, v1alpha1.LifecycleStatePaused))
	err := d.cluster.followRevision(ctx, d.current, func(revision *v1alpha1.ClusterExtensionRevision) bool {
		return revision.Spec.LifecycleState == v1alpha1.LifecycleStatePaused && revision.Status.ObservedGeneration == revision.Generation
	})
	if err != nil {
		panic(stop{&failure{claim: d.current + " is paused", want: "that within " + patience.String(), got: err.Error()}})
	}
}

func setImage(deployment *appsv1.Deployment) string {
	return fmt.Sprintf("kubectl set image -n %s deployment/%s %s=%s --field-manager=%s",
		deployment.Namespace, deployment.Name, deployment.Spec.Template.Spec.Containers[0].Name, strangerImage, stranger)
}
