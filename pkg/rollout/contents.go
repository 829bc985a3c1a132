package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// insideTimeout bounds a look into a namespace: a pass waits for it.
	insideTimeout = 30 * time.Second
	// longestInside is the longest time between two looks into a namespace; the first one
	// is settleFallback.
	longestInside = 5 * time.Minute
	// maxNamed bounds the objects that a question names.
	maxNamed = 3
	// copiedByOLM is the label of ClusterServiceVersions that OLM puts into every namespace.
	copiedByOLM = "olm.copiedFrom"
)

// NamespaceContents returns the content of a namespace that is deleted with it: workloads, claims,
// custom resources, and of other kinds the objects that a label selector selects.
type NamespaceContents interface {
	InNamespace(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error)
}

// inside has the findings about an object that contains other objects, or data.
type inside struct {
	// full says what would go with it, empty for nothing.
	full string
	// next is the time of the next look, and wait the duration until then.
	next time.Time
	wait time.Duration
}

// isVolumeClaim is true for what has data of its own.
func isVolumeClaim(id manifest.ID) bool { return id.Group == "" && id.Kind == "PersistentVolumeClaim" }

func isNamespace(id manifest.ID) bool { return id.Group == "" && id.Kind == "Namespace" }

// again is a look that found the same: the longer that is so, the more rarely it is looked.
func (i inside) again(full string, now time.Time, jitter func(time.Duration) time.Duration) inside {
	wait := min(longestInside, max(settleFallback, 2*i.wait))
	return inside{full: full, next: now.Add(jitter(wait)), wait: wait}
}

// holdNonEmpty holds back, of the objects that go because somebody deletes their revision, the
// claims that are bound and the namespaces with things of others in them. A user who deletes a
// revision wants its objects gone, and need not know that more goes with them.
func (p *pass) holdNonEmpty(ctx context.Context, objects []*object, kind func(manifest.ID) bool) ([]Failure, error) {
	var asking []*object
	var held []Failure
	for _, o := range objects {
		if !kind(o.step.ID) || !o.takesAlong() {
			continue
		}
		full, err := p.goesWith(ctx, o)
		switch {
		case ctx.Err() != nil:
			return held, fmt.Errorf("looking for what goes with %s: %w", o.step.ID, ctx.Err())
		case err != nil:
			held = append(held, o.unread("could not find out what would be deleted with it: %s", err))
			p.again(p.engine.Jitter(settleFallback))
		case full:
			asking = append(asking, o)
		}
	}
	if len(asking) == 0 {
		return held, nil
	}
	token := tokenOf(asking)
	if p.Budget.Acknowledged[token] {
		p.acknowledge(asking[0], text.Count(len(asking), "object"), token)
		p.doom(asking)
		for _, o := range asking {
			delete(p.memory.inside, o.step.ID)
		}
		return held, p.save(ctx)
	}
	for _, o := range asking {
		known := p.memory.inside[o.step.ID]
		held = append(held, o.question(ReasonNotEmpty, known.full, token))
		p.again(known.next.Sub(p.engine.Clock.Now()))
	}
	return held, nil
}

// takesAlong is true for an object that somebody deletes with its revision, and that nobody
// has answered for yet.
func (o *object) takesAlong() bool {
	return o.Budget != nil && o.Budget.Explicit[o.revision] && !o.memo.Doomed && !o.memo.Intent() &&
		!o.Orphan[o.revision] && !o.leaves() && o.deleted.UID == ""
}

// unread reports an object of which the server did not say what it was asked.
func (o *object) unread(format string, err error, args ...any) Failure {
	failure := o.leave(ReasonUnreachable, false, fmt.Sprintf(format, append([]any{Explain(o.step.Ref, err)}, args...)...))
	failure.Refused = isRefusal(err)
	return failure
}

// goesWith reports whether something goes with an object, as it was found lately. Nothing is
// remembered of an object with which nothing goes, because it is deleted now.
func (p *pass) goesWith(ctx context.Context, o *object) (bool, error) {
	now, known := p.engine.Clock.Now(), p.memory.inside[o.step.ID]
	if known.full != "" && now.Before(known.next) {
		return true, nil
	}
	full, err := o.lookInto(ctx, p.inventory)
	if err != nil {
		return false, err
	}
	if full == "" {
		delete(p.memory.inside, o.step.ID)
		return false, nil
	}
	p.memory.inside[o.step.ID] = known.again(full, now, p.engine.Jitter)
	return true, nil
}

// lookInto reads the object, and what is in it where it is a namespace.
func (o *object) lookInto(ctx context.Context, inventory Inventory) (string, error) {
	live, err := o.engine.Reader.Read(ctx, o.step.Ref)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if seen := o.engine.Names.Observe(live); !o.isDeletable(seen) || seen.Deleting {
		return "", nil // it will not be deleted, or is so already
	}
	if isVolumeClaim(o.step.ID) {
		if volume, _, _ := unstructured.NestedString(live.Object, "spec", "volumeName"); volume != "" {
			return fmt.Sprintf("is bound to volume %s, whose data is deleted with it unless its reclaim policy is Retain", volume), nil
		}
		return "", nil
	}
	return o.lookIntoNamespace(ctx, inventory)
}

// isDeletable is true for a live object that is the chain's, and that nobody wants to keep.
func (o *object) isDeletable(seen observe.Observation) bool {
	ours, _ := o.who.MayRemove(*o.memo, seen)
	return ours && !seen.Keep
}

// lookIntoNamespace says what others have in the namespace, empty for nothing.
func (o *object) lookIntoNamespace(ctx context.Context, inventory Inventory) (string, error) {
	if o.engine.NamespaceContents == nil {
		return "", nil
	}
	bounded, cancel := context.WithTimeout(ctx, insideTimeout)
	defer cancel()
	label := o.engine.Names.ChainLabel
	all, err := o.engine.NamespaceContents.InNamespace(bounded, o.step.Name, fmt.Sprintf("%s,%s!=%s", label, label, o.who.Chain))
	if apierrors.IsForbidden(err) {
		return "could not be inspected, and everything in it is deleted with it: " + text.Clip(forbidden(err), maxDeniedBytes), nil
	}
	if err != nil {
		return "", err
	}
	if others := ofOthers(inventory, all); len(others) > 0 {
		return "has objects of others, which are deleted with it: " + enumerate(others), nil
	}
	return "", nil
}

// ofOthers are the objects that are in no inventory of this chain, and that nobody generates:
// what has an owner is made anew with the owner, and goes with it.
func ofOthers(inventory Inventory, all []metav1.PartialObjectMetadata) []manifest.ID {
	var others []manifest.ID
	for i := range all {
		object := &all[i]
		kind := object.GroupVersionKind()
		id := manifest.ID{Group: kind.Group, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name}
		_, copied := object.Labels[copiedByOLM]
		if inventory.Entry(id) == nil && len(object.OwnerReferences) == 0 && object.DeletionTimestamp == nil && !copied {
			others = append(others, id)
		}
	}
	slices.SortFunc(others, manifest.ID.Compare)
	return others
}

// enumerate names the first objects, and counts the others by kind.
func enumerate(ids []manifest.ID) string {
	var parts []string
	for _, id := range ids[:min(maxNamed, len(ids))] {
		parts = append(parts, fmt.Sprintf("%s %s", id.GroupKind(), id.Name))
	}
	more := map[string]int{}
	for _, id := range ids[len(parts):] {
		more[id.GroupKind().String()]++
	}
	for _, kind := range slices.Sorted(maps.Keys(more)) {
		parts = append(parts, fmt.Sprintf("%d more %s", more[kind], kind))
	}
	return strings.Join(parts, ", ")
}
