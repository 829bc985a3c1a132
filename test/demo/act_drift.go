package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
)

const (
	// stranger is the foreign field manager that changes an image.
	stranger      = "night-shift"
	strangerImage = "registry.example.com/debug"
)

func drift(ctx context.Context, d *demo) {
	target := deployments(d.wanted)[0].ID
	before, err := d.cluster.deployment(ctx, target)
	if err != nil {
		panic(stop{fmt.Errorf("reading %s: %w", target, err)})
	}
	repaired := make(chan repair, 1)
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { repaired <- d.watchRepair(watching, target, image(before)) }()
	d.show(ctx, setImage(before))
	found := <-repaired
	if found.err != nil {
		panic(stop{&failure{claim: short(target) + " is repaired", want: "image " + image(before), got: fmt.Sprintf("image %s (%v)", found.image, found.err)}})
	}
	d.ok("%s has its image back %s after the edit", short(target), seconds(found.took))
	d.told(ctx, target)
	d.calm(ctx, target)
}

type repair struct {
	took  time.Duration
	image string
	err   error
}

// watchRepair waits until the image of a Deployment was changed and repaired.
func (d *demo) watchRepair(ctx context.Context, target manifest.ID, good string) repair {
	var r repair
	var edited time.Time
	r.err = d.cluster.followDeployment(ctx, target, func(deployment *appsv1.Deployment) bool {
		r.image = image(deployment)
		if r.image != good && edited.IsZero() {
			edited = time.Now()
		}
		return r.image == good && !edited.IsZero()
	})
	r.took = time.Since(edited)
	return r
}

// told checks that an event names the manager and the field of the change.
func (d *demo) told(ctx context.Context, target manifest.ID) {
	parts := []string{target.String(), "image", stranger}
	said := "no event"
	err := d.cluster.followEvent(ctx, d.current, "Repaired", func(event *corev1.Event) bool {
		said = event.Message
		return len(missingFrom(said, parts...)) == 0
	})
	if err != nil {
		panic(stop{&failure{claim: "an event names the change and its writer", want: "one with " + strings.Join(parts, ", "), got: said}})
	}
	d.show(ctx, fmt.Sprintf("kubectl get events --field-selector involvedObject.name=%s,reason=Repaired "+
		"-o custom-columns=MESSAGE:.message", d.current))
	d.ok("the event names the object, the field and its writer")
}

// calm waits until the Pods of the edited template are deleted and the revision is settled again.
func (d *demo) calm(ctx context.Context, target manifest.ID) {
	err := d.cluster.followDeployment(ctx, target, complete)
	if err != nil {
		panic(stop{&failure{claim: short(target) + " has its replicas again", want: "that within " + patience.String(), got: err.Error()}})
	}
	d.follow(ctx, d.current, d.current+" is available again", newProgress(time.Now(), nil), rolledOut)
}
