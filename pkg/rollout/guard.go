package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// guard holds objects back while a CustomResourceDefinition among them still has
// instances which are not leaving too: deleting it would delete them.
func (r *removal) guard(ctx context.Context, next, leaving []manifest.ID) (bool, error) {
	free := true
	for _, id := range next {
		entry := r.inventory.Entries[id]
		if !id.IsDefinition() || r.AllowCRDDeletion[id.Name] || r.Orphan[entry.Revision] || r.leaves(entry) {
			continue
		}
		if r.memory.deleted[id].UID != "" || r.guarded[id] {
			continue
		}
		r.guarded[id] = true
		instances, err := r.instances(ctx, id, leaving)
		switch {
		case ctx.Err() != nil:
			return false, fmt.Errorf("looking for instances of %s: %w", id.Name, ctx.Err())
		case err != nil:
			r.leave(id, ReasonUnreachable, false, fmt.Sprintf("could not look for instances: %s%s", Explain(r.inventory.Ref(id), err), conversionAdvice(id.Name, err)))
			r.found.failures[len(r.found.failures)-1].Refused = isRefusal(err)
			free = false
		case len(instances) > 0:
			r.leave(id, ReasonCRDInstances, true, fmt.Sprintf(
				"still has instances (%s), which would be deleted with it: delete them, or acknowledge their deletion", strings.Join(instances, ", ")))
			free = false
		}
	}
	if !free {
		r.again(r.engine.Jitter(settleFallback))
	}
	return free, nil
}

// conversionAdvice says what helps when instances cannot be read because their conversion webhook does not
// answer. Often it is gone, or never was there, and nobody but a person can tell.
func conversionAdvice(definition string, err error) string {
	if !strings.Contains(err.Error(), "conversion webhook") {
		return ""
	}
	return fmt.Sprintf("; repair the conversion webhook, or, if it is gone for good, switch conversion off: kubectl patch crd %s --type=merge -p '{\"spec\":{\"conversion\":{\"strategy\":\"None\",\"webhook\":null}}}'", definition)
}

// instances names up to three instances of a CustomResourceDefinition that are not
// leaving themselves.
func (r *removal) instances(ctx context.Context, id manifest.ID, leaving []manifest.ID) ([]string, error) {
	crd, err := r.engine.Reader.Read(ctx, r.inventory.Ref(id))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	seen := r.engine.Names.Observe(crd)
	if ours, _ := r.who.MayRemove(r.inventory.Entries[id], seen); !ours || seen.Keep {
		return nil, nil // it will not be deleted
	}
	kind, served := servedKind(crd.Object)
	if !served {
		return nil, errors.New("none of its versions is served")
	}
	also := 0
	for _, other := range leaving {
		if other.GroupKind() == kind.GroupKind() {
			also++
		}
	}
	found, err := r.engine.Reader.Instances(ctx, kind, int64(also+3))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, instance := range found {
		other := manifest.ID{Group: kind.Group, Kind: kind.Kind, Namespace: instance.Namespace, Name: instance.Name}
		if !slices.Contains(leaving, other) && len(names) < 3 {
			name := strings.TrimPrefix(instance.Namespace+"/"+instance.Name, "/")
			if instance.DeletionTimestamp != nil {
				name += ", which " + Terminating(instance.Finalizers)
			}
			names = append(names, name)
		}
	}
	return names, nil
}

// servedKind reads from a CustomResourceDefinition which kind it serves.
func servedKind(crd map[string]any) (manifest.Ref, bool) {
	spec, _ := crd["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	var ref manifest.Ref
	ref.Group, _ = spec["group"].(string)
	ref.Kind, _ = names["kind"].(string)
	for _, item := range versions {
		version, _ := item.(map[string]any)
		if served, _ := version["served"].(bool); served {
			ref.Version, _ = version["name"].(string)
		}
	}
	return ref, ref.Kind != "" && ref.Version != ""
}
