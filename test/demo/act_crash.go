package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

// crash rolls back to the first version by hand, kills Penstock during the rollback, and starts it
// again.
func crash(ctx context.Context, d *demo) {
	before, former := d.wanted, d.current
	then := get(d.cluster.read(ctx, before))
	d.onNodes(ctx, "cordon")
	d.note("new Pods must wait, so that the rollout does not end before the kill")
	name := d.killInTheMiddle(ctx, before)
	d.withoutPenstock(ctx)
	d.onNodes(ctx, "uncordon")
	d.startPenstock(ctx)
	revision := d.take(ctx, name)
	d.rollOut(ctx, revision)
	d.untilArchived(ctx, former)
	d.holds(ctx, revision)
	d.pruned(ctx, before, compareRevisions(before, d.wanted).Pruned)
	d.writtenOnce(ctx, before, then)
	d.show(ctx, "kubectl get cer")
}

// onNodes cordons or uncordons every node.
func (d *demo) onNodes(ctx context.Context, verb string) {
	nodes, err := d.cluster.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		panic(stop{fmt.Errorf("listing nodes: %w", err)})
	}
	command := "kubectl " + verb
	for _, node := range nodes.Items {
		command += " " + node.Name
	}
	d.show(ctx, command)
}

// killInTheMiddle creates the next revision and kills Penstock at the object that middle returns.
// It returns the name of the revision.
func (d *demo) killInTheMiddle(ctx context.Context, before []manifest.Ref) string {
	first, err := d.cluster.revision(ctx, d.Name+"-1")
	if err != nil {
		panic(stop{fmt.Errorf("reading the first revision: %w", err)})
	}
	again := refs(first)
	writes := writes(before, again)
	if len(writes) == 0 {
		panic(stop{&failure{claim: "there is something to roll back", want: "two versions that differ", got: "the same objects"}})
	}
	trigger := middle(writes)
	pid := d.server.pid()
	// Penstock must answer kubectl before it is killed.
	sent := make(chan struct{})
	killed := make(chan error, 1)
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		killed <- d.cluster.followApplied(waiting, trigger, func() {
			select {
			case <-sent:
				_ = syscall.Kill(pid, syscall.SIGKILL)
			case <-waiting.Done():
			}
		})
	}()
	name := d.send(ctx, rendering{dir: d.From})
	close(sent)
	if err := <-killed; err != nil {
		panic(stop{&failure{claim: trigger.ID.String() + " is written again", want: "that within " + patience.String(), got: err.Error()}})
	}
	d.command(fmt.Sprintf("kill -9 %d", pid))
	must(d.server.gone(ctx))
	d.inTheMiddle(ctx, name, again, writes)
	return name
}

// writes returns the objects whose content differs from before, in order.
func writes(before, after []manifest.Ref) []manifest.Ref {
	written := compareRevisions(before, after).written()
	return slices.DeleteFunc(slices.Clone(after), func(ref manifest.Ref) bool { return !written[ref.ID] })
}

// middle returns the object after whose write Penstock is killed: half-way to the first Deployment,
// so that the rollout has begun and not ended.
func middle(writes []manifest.Ref) manifest.Ref {
	early := 0
	for early < len(writes) && writes[early].Kind != "Deployment" {
		early++
	}
	return writes[early/2]
}

func (d *demo) inTheMiddle(ctx context.Context, name string, wanted, writes []manifest.Ref) {
	found := get(d.cluster.read(ctx, writes))
	left := len(strangers(d.Name, writes, found))
	rolling := 0
	for _, ref := range deployments(wanted) {
		deployment, err := d.cluster.deployment(ctx, ref.ID)
		if err != nil || !complete(deployment) {
			rolling++
		}
	}
	claim := fmt.Sprintf("dead in the middle of %s: %d of %d changes written", name, len(writes)-left, len(writes))
	if left == 0 {
		claim += fmt.Sprintf(", %s not finished", text.Count(rolling, "Deployment"))
	}
	d.claim(left+rolling > 0, claim, "something to be left to do", "nothing")
}

// withoutPenstock shows which commands work while Penstock is dead.
func (d *demo) withoutPenstock(ctx context.Context) {
	const command = "kubectl get cer"
	d.command(command)
	out := get(d.shell.run(ctx, command))
	d.output(out.Stderr + out.Stdout)
	d.claim(out.ExitCode != 0, "kubectl reports that the API is unavailable, not that there are no revisions",
		"an error", out.Stdout)
	d.show(ctx, d.getDeployments(""))
	d.serves(ctx, "still available, without Penstock")
}

// writtenOnce checks that no existing object was replaced, and that each was changed at most once,
// and only if needed.
func (d *demo) writtenOnce(ctx context.Context, before []manifest.Ref, then map[manifest.ID]*live) {
	now := get(d.cluster.read(ctx, d.wanted))
	change := compareRevisions(before, d.wanted)
	wrong := rewritten(change.Changed, 1, then, now)
	wrong = append(wrong, rewritten(change.Same, 0, then, now)...)
	n := len(change.Changed) + len(change.Same)
	d.claim(len(wrong) == 0, fmt.Sprintf("the same %s as before (uid), none changed more than once (generation)", text.Count(n, "object")),
		"that of all", strings.Join(wrong, "; "))
}

// rewritten returns the objects that were replaced, or whose generation grew by more than growth.
func rewritten(ids []manifest.ID, growth int64, then, now map[manifest.ID]*live) []string {
	var wrong []string
	for _, id := range ids {
		old, present := then[id], now[id]
		switch {
		case old == nil || present == nil:
			wrong = append(wrong, id.String()+" was or is not there")
		case old.UID != present.UID:
			wrong = append(wrong, fmt.Sprintf("%s is another object: uid %s was %s", id, present.UID, old.UID))
		case present.Generation > old.Generation+growth:
			wrong = append(wrong, fmt.Sprintf("%s has generation %d, was %d", id, present.Generation, old.Generation))
		}
	}
	return wrong
}

// followApplied calls then as soon as an object has the wanted content.
func (c *cluster) followApplied(ctx context.Context, ref manifest.Ref, then func()) error {
	resource, err := c.resource(ref)
	if err != nil {
		return err
	}
	return follow(ctx, resource, named(ref.Name), func() error { return nil },
		func(list *metav1.PartialObjectMetadataList) []*metav1.PartialObjectMetadata {
			return pointers(list.Items)
		},
		func(object *metav1.PartialObjectMetadata) bool {
			if object.Annotations[olmv1alpha1.AppliedAnnotation] != string(ref.Digest) {
				return false
			}
			then()
			return true
		})
}
