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
	// insideTimeout limits the time for listing a namespace: the pass waits for it.
	insideTimeout = 30 * time.Second
	// longestInside is the longest interval between two checks of a namespace. The first interval
	// is settleFallback.
	longestInside = 5 * time.Minute
	// maxNamed is the largest number of objects that a message names.
	maxNamed = 3
	// copiedByOLM is the label of ClusterServiceVersions that OLM puts into every namespace.
	copiedByOLM = "olm.copiedFrom"
)

// NamespaceContents lists the objects that are deleted with a namespace: workloads, claims, custom
// resources, and the objects of other kinds that a label selector selects.
type NamespaceContents interface {
	InNamespace(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error)
}

// inside describes the content of an object that contains other objects or data.
type inside struct {
	// full describes the content that would be deleted with the object; empty for no content.
	full string
	// next is the time of the next check; wait is the interval before it.
	next time.Time
	wait time.Duration
}

func isVolumeClaim(id manifest.ID) bool { return id.Group == "" && id.Kind == "PersistentVolumeClaim" }

func isNamespace(id manifest.ID) bool { return id.Group == "" && id.Kind == "Namespace" }

// again returns the same finding with a longer interval until the next check.
func (i inside) again(full string, now time.Time, jitter func(time.Duration) time.Duration) inside {
	wait := min(longestInside, max(settleFallback, 2*i.wait))
	return inside{full: full, next: now.Add(jitter(wait)), wait: wait}
}

// holdNonEmpty returns failures for bound claims and namespaces with foreign objects, if a user
// deletes their revision. Users can overlook that their content is deleted too, so Penstock
// asks for an acknowledgement.
func (p *pass) holdNonEmpty(ctx context.Context, objects []*object, kind func(manifest.ID) bool) ([]Failure, error) {
	var asking []*object
	var held []Failure
	for _, o := range objects {
		if !kind(o.step.ID) || !o.isDeletedWithContent() {
			continue
		}
		full, err := p.deletesContent(ctx, o)
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

// isDeletedWithContent reports whether a user deletes the object with its revision, and has not yet
// acknowledged the loss of its content.
func (o *object) isDeletedWithContent() bool {
	return o.Budget != nil && o.Budget.Explicit[o.revision] && !o.memo.Doomed && !o.memo.Intent() &&
		!o.Orphan[o.revision] && !o.leaves() && o.deleted.UID == ""
}

// unread returns the failure for a failed read of an object or of its content.
func (o *object) unread(format string, err error, args ...any) Failure {
	failure := o.leave(ReasonUnreachable, false, fmt.Sprintf(format, append([]any{Explain(o.step.Ref, err)}, args...)...))
	failure.Refused = isRefusal(err)
	return failure
}

// deletesContent reports whether the deletion of an object would delete other content. It caches only
// positive findings: an object without content is deleted at once.
func (p *pass) deletesContent(ctx context.Context, o *object) (bool, error) {
	now, known := p.engine.Clock.Now(), p.memory.inside[o.step.ID]
	if known.full != "" && now.Before(known.next) {
		return true, nil
	}
	full, err := o.describeContent(ctx, p.inventory)
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

// describeContent reads the object and describes its content: the volume of a claim, or the objects of a
// namespace.
func (o *object) describeContent(ctx context.Context, inventory Inventory) (string, error) {
	live, err := o.engine.Reader.Read(ctx, o.step.Ref)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if seen := o.engine.Names.Observe(live); !o.isDeletable(seen) || seen.Deleting {
		return "", nil // it will not be deleted, or is being deleted already
	}
	if isVolumeClaim(o.step.ID) {
		if volume, _, _ := unstructured.NestedString(live.Object, "spec", "volumeName"); volume != "" {
			return fmt.Sprintf("is bound to volume %s, whose data is deleted with it unless its reclaim policy is Retain", volume), nil
		}
		return "", nil
	}
	return o.describeNamespace(ctx, inventory)
}

// isDeletable reports whether a live object belongs to the chain and has no request to keep it.
func (o *object) isDeletable(seen observe.Observation) bool {
	ours, _ := o.who.MayRemove(*o.memo, seen)
	return ours && !seen.Keep
}

// describeNamespace describes the objects of other owners in the namespace; empty for none.
func (o *object) describeNamespace(ctx context.Context, inventory Inventory) (string, error) {
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
		return "has objects of other owners, which are deleted with it: " + enumerate(others), nil
	}
	return "", nil
}

// ofOthers returns the objects of other owners. It omits objects in the chain's inventory, objects
// with an owner, and OLM's copies, because controllers generate the latter two.
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

// enumerate names the first objects, and counts the remaining ones by kind.
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
