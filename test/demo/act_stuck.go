package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/test/framework/plane"
)

const (
	// screenful limits the lines of a long text that the transcript shows.
	screenful = 24
	// lull is the time during which a stuck upgrade must not change.
	lull = 3 * time.Second
)

func stick(ctx context.Context, d *demo) {
	broken := d.brokenUpgrade(ctx)
	revision := d.apply(ctx, broken)
	d.waitStuck(ctx, revision)
	stuck := d.staysStuck(ctx, revision.Name)
	d.describe(ctx, revision.Name, stuck)
	d.showCause(ctx, revision.Name, stuck)
	d.show(ctx, d.getDeployments(""))
	d.serves(ctx, "still available, in the old version")
}

// brokenUpgrade returns a version that cannot work: a broken one from the settings, or the latest
// one with a broken image.
func (d *demo) brokenUpgrade(ctx context.Context) rendering {
	if d.Stuck != "" {
		return rendering{dir: d.Stuck}
	}
	all := deployments(d.wanted)
	last, err := d.cluster.deployment(ctx, all[len(all)-1].ID)
	if err != nil {
		panic(stop{fmt.Errorf("reading %s: %w", all[len(all)-1].ID, err)})
	}
	return rendering{dir: d.latest(), edit: "sed " + quoted(mistyped(image(last)))}
}

// mistyped returns a sed script that changes the registry of an image to one that does not exist.
func mistyped(image string) string {
	registry, rest := "", image
	if i := strings.LastIndexByte(image, '/'); i >= 0 {
		registry, rest = image[:i+1], image[i+1:]
	}
	name := rest + "$"
	if i := strings.IndexAny(rest, ":@"); i >= 0 {
		name = rest[:i+1]
	}
	return fmt.Sprintf(`s#image: %s\(%s\)#image: %s\1#`, registry, name, plane.UnpullableImages)
}

// waitStuck waits until the rollout only waits for a Deployment whose image cannot be pulled.
func (d *demo) waitStuck(ctx context.Context, revision *v1alpha1.ClusterExtensionRevision) {
	progress := newProgress(time.Now(), compareRevisions(d.wanted, refs(revision)).written())
	d.follow(ctx, revision.Name, revision.Name+" gets stuck", progress, func(revision *v1alpha1.ClusterExtensionRevision) bool {
		found := onlyCulprit(revision)
		if found.phase == "" {
			return false
		}
		deployment, err := d.cluster.deployment(ctx, found.id)
		return err == nil && strings.HasPrefix(image(deployment), plane.UnpullableImages)
	})
}

// culprit is an object that blocks a rollout.
type culprit struct {
	phase   string
	id      manifest.ID
	message string
}

// onlyCulprit returns the Deployment that alone blocks a rollout, if there is exactly one.
func onlyCulprit(revision *v1alpha1.ClusterExtensionRevision) culprit {
	var found []culprit
	for _, phase := range revision.Status.Phases {
		for _, failing := range phase.Failing {
			found = append(found, culprit{
				phase:   phase.Name,
				id:      manifest.ID{Group: "apps", Kind: failing.Kind, Namespace: failing.Namespace, Name: failing.Name},
				message: failing.Message,
			})
		}
	}
	if len(found) != 1 || found[0].id.Kind != "Deployment" {
		return culprit{}
	}
	return found[0]
}

func (d *demo) describe(ctx context.Context, name string, stuck culprit) {
	out := d.show(ctx, fmt.Sprintf("kubectl describe cer %s | head -n %d", name, screenful))
	missing := missingFrom(out, "phase "+stuck.phase, stuck.id.String(), firstClause(stuck.message))
	d.claim(len(missing) == 0,
		fmt.Sprintf("the first screen names phase, object and message: %s, %s, %q", stuck.phase, short(stuck.id), firstClause(stuck.message)),
		"all three", "without "+strings.Join(missing, ", "))
}

func (d *demo) showCause(ctx context.Context, name string, stuck culprit) {
	out := d.show(ctx, fmt.Sprintf("kubectl get cer %s --subresource=objects | grep Unready", name))
	missing := missingFrom(out, stuck.id.Name, "Unready", "ImagePull")
	d.claim(len(missing) == 0, "it names the object and the reason, without a search through Pods: the image cannot be pulled", "both", "without "+strings.Join(missing, ", "))
}

// missingFrom returns the parts that a text lacks. Line breaks do not matter.
func missingFrom(text string, parts ...string) []string {
	text = strings.Join(strings.Fields(text), " ")
	var missing []string
	for _, part := range parts {
		if !strings.Contains(text, strings.Join(strings.Fields(part), " ")) {
			missing = append(missing, fmt.Sprintf("%q", part))
		}
	}
	return missing
}

// firstClause returns a message up to its first comma or semicolon.
func firstClause(message string) string {
	if i := strings.IndexAny(message, ",;"); i > 0 {
		return message[:i]
	}
	return message
}

// staysStuck checks that a revision stays stuck, and returns the blocking object.
func (d *demo) staysStuck(ctx context.Context, name string) culprit {
	waiting, cancel := context.WithTimeout(ctx, lull)
	defer cancel()
	last := &v1alpha1.ClusterExtensionRevision{}
	over := d.cluster.followRevision(waiting, name, func(revision *v1alpha1.ClusterExtensionRevision) bool {
		last = revision
		return !is(revision, v1alpha1.ConditionProgressing, "True")
	}) == nil
	stuck := onlyCulprit(last)
	d.claim(!over && stuck.phase != "", fmt.Sprintf("%s is still Progressing %.0f s later", name, lull.Seconds()),
		"Progressing=True, because of one Deployment", conditions(last))
	d.note("phase %s waits for %s: %s", stuck.phase, short(stuck.id), stuck.message)
	return stuck
}
