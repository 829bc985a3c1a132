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
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// insideTimeout bounds a look into a namespace: a pass waits for it.
	insideTimeout = 30 * time.Second
	// longestInside is the longest time between two looks into a namespace; the first one
	// is settleFallback.
	longestInside = 5 * time.Minute
	// mostNamed is how many objects a question names.
	mostNamed = 3
	// copiedByOLM is the label of ClusterServiceVersions that OLM puts into every namespace.
	copiedByOLM = "olm.copiedFrom"
)

// Insider says what is in a namespace that goes with it: workloads, claims, custom resources,
// and of other kinds what a label selector selects.
type Insider interface {
	InNamespace(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error)
}

// inside is what was found about an object that keeps others, or data.
type inside struct {
	// full says what would go with it, empty for nothing.
	full string
	// next is when to look again, and wait the time until then.
	next time.Time
	wait time.Duration
}

// isClaim is true for what has data of its own.
func isClaim(id manifest.ID) bool { return id.Group == "" && id.Kind == "PersistentVolumeClaim" }

func isNamespace(id manifest.ID) bool { return id.Group == "" && id.Kind == "Namespace" }

// holdFull holds back, of the objects that go because somebody deletes their revision, the
// claims that are bound and the namespaces with things of others in them. Whoever deletes a
// revision wants its objects gone; that more goes with them they need not know. It is true
// when nothing is held back.
func (r *removal) holdFull(ctx context.Context, ids []manifest.ID, kind func(manifest.ID) bool) (bool, error) {
	var asking []manifest.ID
	found, free := map[manifest.ID]string{}, true
	for _, id := range ids {
		if !kind(id) || !r.takesAlong(id) {
			continue
		}
		full, err := r.goesWith(ctx, id)
		switch {
		case ctx.Err() != nil:
			return false, fmt.Errorf("looking for what goes with %s: %w", id, ctx.Err())
		case err != nil:
			r.leave(id, ReasonUnreachable, false, fmt.Sprintf("could not find out what would be deleted with it: %s", Explain(r.inventory.Ref(id), err)))
			r.found.failures[len(r.found.failures)-1].Refused = isRefusal(err)
			r.again(r.engine.Jitter(settleFallback))
			free = false
		case full != "":
			asking, found[id] = append(asking, id), full
		}
	}
	if len(asking) == 0 {
		return free, nil
	}
	token := DeletionToken(asking, r.mark)
	if r.Budget.Acknowledged[token] {
		return free, r.acknowledged(ctx, asking, token)
	}
	for _, id := range asking {
		r.leave(id, ReasonNotEmpty, true, fmt.Sprintf("%s: acknowledge it as %s", found[id], token))
		r.found.failures[len(r.found.failures)-1].Acknowledge = token
		r.again(r.memory.inside[id].next.Sub(r.engine.Clock.Now()))
	}
	return false, nil
}

// takesAlong is true for an object that somebody deletes with its revision, and that nobody
// has answered for yet.
func (r *removal) takesAlong(id manifest.ID) bool {
	entry := r.inventory.Entries[id]
	return r.Budget != nil && r.Budget.Explicit[entry.Revision] && !entry.Doomed && !entry.Intent() &&
		!r.Orphan[entry.Revision] && !r.leaves(entry) && r.memory.deleted[id].UID == ""
}

// acknowledged notes that objects may go, before any of them does.
func (r *removal) acknowledged(ctx context.Context, ids []manifest.ID, token string) error {
	r.events = append(r.events, Event{
		Revision: r.inventory.Entries[ids[0]].Revision, Warning: true, Reason: "Acknowledged",
		Message: fmt.Sprintf("the deletion of %s was acknowledged as %s", text.Count(len(ids), "object"), token),
	})
	for _, id := range ids {
		entry := r.inventory.Entries[id]
		entry.Doomed = true
		r.inventory.Entries[id] = entry
		delete(r.memory.inside, id)
	}
	return r.save(ctx)
}

// goesWith says what goes with an object, as it was found lately: the longer the answer is the
// same, the more rarely it is asked for. Nothing is remembered of an object with which
// nothing goes, because it is deleted now.
func (r *removal) goesWith(ctx context.Context, id manifest.ID) (string, error) {
	now := r.engine.Clock.Now()
	known := r.memory.inside[id]
	if known.full != "" && now.Before(known.next) {
		return known.full, nil
	}
	full, err := r.lookInto(ctx, id)
	if err != nil {
		return "", err
	}
	if full == "" {
		delete(r.memory.inside, id)
		return "", nil
	}
	known.wait = min(longestInside, max(settleFallback, 2*known.wait))
	known.full, known.next = full, now.Add(r.engine.Jitter(known.wait))
	r.memory.inside[id] = known
	return full, nil
}

// lookInto reads an object, and what is in it where it is a namespace.
func (r *removal) lookInto(ctx context.Context, id manifest.ID) (string, error) {
	live, err := r.engine.Reader.Read(ctx, r.inventory.Ref(id))
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	seen := r.engine.Names.Observe(live)
	if ours, _ := r.who.MayRemove(r.inventory.Entries[id], seen); !ours || seen.Keep || seen.Deleting {
		return "", nil // it will not be deleted, or is so already
	}
	if isClaim(id) {
		if volume, _, _ := unstructured.NestedString(live.Object, "spec", "volumeName"); volume != "" {
			return fmt.Sprintf("is bound to volume %s, whose data is deleted with it unless its reclaim policy is Retain", volume), nil
		}
		return "", nil
	}
	return r.lookIntoNamespace(ctx, id.Name)
}

// lookIntoNamespace says what others have in a namespace, empty for nothing.
func (r *removal) lookIntoNamespace(ctx context.Context, namespace string) (string, error) {
	if r.engine.Insider == nil {
		return "", nil
	}
	bounded, cancel := context.WithTimeout(ctx, insideTimeout)
	defer cancel()
	label := r.engine.Names.ChainLabel
	all, err := r.engine.Insider.InNamespace(bounded, namespace, fmt.Sprintf("%s,%s!=%s", label, label, r.who.Chain))
	if apierrors.IsForbidden(err) {
		return "could not be inspected, and everything in it is deleted with it: " + text.Clip(forbidden(err), maxDeniedBytes), nil
	}
	if err != nil {
		return "", err
	}
	if others := r.ofOthers(all); len(others) > 0 {
		return "has objects of others, which are deleted with it: " + enumerate(others), nil
	}
	return "", nil
}

// ofOthers are the objects that are in no inventory of this chain, and that nobody generates:
// what has an owner is made anew with the owner, and goes with it.
func (r *removal) ofOthers(all []metav1.PartialObjectMetadata) []manifest.ID {
	var others []manifest.ID
	for i := range all {
		object := &all[i]
		kind := object.GroupVersionKind()
		id := manifest.ID{Group: kind.Group, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name}
		_, copied := object.Labels[copiedByOLM]
		if r.inventory.Entry(id) == nil && len(object.OwnerReferences) == 0 && object.DeletionTimestamp == nil && !copied {
			others = append(others, id)
		}
	}
	slices.SortFunc(others, compareIDs)
	return others
}

// enumerate names the first objects, and counts the others by kind.
func enumerate(ids []manifest.ID) string {
	var parts []string
	for _, id := range ids[:min(mostNamed, len(ids))] {
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
