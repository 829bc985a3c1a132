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

// guard returns failures for CustomResourceDefinitions with instances that are not among leaving,
// because their deletion would delete these instances. It adds the checked definitions to guarded.
func (p *pass) guard(ctx context.Context, next, leaving []*object, guarded map[manifest.ID]bool) ([]Failure, error) {
	var held []Failure
	for _, o := range next {
		id := o.step.ID
		if !id.IsDefinition() || o.AllowCRDDeletion[id.Name] || o.Orphan[o.revision] || o.leaves() || o.deleted.UID != "" || guarded[id] {
			continue
		}
		guarded[id] = true
		instances, err := o.instances(ctx, leaving)
		switch {
		case ctx.Err() != nil:
			return held, fmt.Errorf("looking for instances of %s: %w", id.Name, ctx.Err())
		case err != nil:
			held = append(held, o.unread("could not list instances: %s%s", err, conversionAdvice(id.Name, err)))
		case len(instances) > 0:
			held = append(held, o.leave(ReasonCRDInstances, true, fmt.Sprintf(
				"still has instances (%s), which would be deleted with it: delete them, or acknowledge their deletion", strings.Join(instances, ", "))))
		}
	}
	if len(held) > 0 {
		p.again(p.engine.Jitter(settleFallback))
	}
	return held, nil
}

// conversionAdvice returns advice for instances that cannot be read because their conversion
// webhook does not answer. Often the webhook was deleted or never existed; only a user can decide
// that.
func conversionAdvice(definition string, err error) string {
	if !strings.Contains(err.Error(), "conversion webhook") {
		return ""
	}
	return fmt.Sprintf("; repair the conversion webhook, or, if it is gone for good, switch conversion off: kubectl patch crd %s --type=merge -p '{\"spec\":{\"conversion\":{\"strategy\":\"None\",\"webhook\":null}}}'", definition)
}

// instances returns the names of up to three instances of a CustomResourceDefinition that are not
// among leaving.
func (o *object) instances(ctx context.Context, leaving []*object) ([]string, error) {
	crd, err := o.engine.Reader.Read(ctx, o.step.Ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !o.isDeletable(o.engine.Names.Observe(crd)) {
		return nil, nil // it will not be deleted
	}
	kind, served := servedKind(crd.Object)
	if !served {
		return nil, errors.New("none of its versions is served")
	}
	also := 0
	for _, other := range leaving {
		if other.step.GroupKind() == kind.GroupKind() {
			also++
		}
	}
	found, err := o.engine.Reader.Instances(ctx, kind, int64(also+3))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, instance := range found {
		other := manifest.ID{Group: kind.Group, Kind: kind.Kind, Namespace: instance.Namespace, Name: instance.Name}
		if !slices.ContainsFunc(leaving, func(o *object) bool { return o.step.ID == other }) && len(names) < 3 {
			name := strings.TrimPrefix(instance.Namespace+"/"+instance.Name, "/")
			if instance.DeletionTimestamp != nil {
				name += ", which " + Terminating(instance.Finalizers)
			}
			names = append(names, name)
		}
	}
	return names, nil
}

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
