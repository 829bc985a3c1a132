// Package planwork turns the items of a plan into work for the engine. The controller executes the
// work. Endpoints preview it.
package planwork

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// Names returns the marks of targets. Targets have no label: they have other owners and are watched
// by name.
func Names() observe.Names {
	return observe.Names{AppliedAnnotation: v1alpha1.AppliedHashAnnotation, ManagerPrefix: v1alpha1.FieldManagerPrefix}
}

// Ref returns the reference of a target with its desired content.
func Ref(target v1alpha1.TargetRef, digest string) manifest.Ref {
	kind := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind)
	return manifest.Ref{
		ID:      manifest.ID{Group: kind.Group, Kind: kind.Kind, Namespace: target.Namespace, Name: target.Name},
		Version: kind.Version, Digest: manifest.Digest(digest),
	}
}

// Goes reports whether an item deletes its target. The target may be absent already.
func Goes(item v1alpha1.PlanItem) bool {
	return item.Action == v1alpha1.ItemDelete || item.Action == v1alpha1.ItemNone && item.Fingerprint == rollout.FingerprintAbsent
}

// Bodies holds manifests in memory.
type Bodies map[manifest.Digest][]byte

// Body implements rollout.Bodies.
func (b Bodies) Body(_ context.Context, ref manifest.Ref) ([]byte, error) {
	body, found := b[ref.Digest]
	if !found {
		return nil, fmt.Errorf("there is no manifest %s", ref.Digest)
	}
	return body, nil
}

// PreviewWork returns the work of a single item, for a preview. key distinguishes its layer from
// the layers of other previews. With remove, the work deletes the target.
func PreviewWork(profile v1alpha1.ProfileName, key, item string, ref manifest.Ref, remove bool, bodies Bodies) rollout.Work {
	step := stage.Step{Ref: ref, Policy: stage.Policy{Own: stage.Shared, Delete: remove}}
	return rollout.Work{
		Owner: string(profile), Bodies: bodies,
		Layers: []rollout.Layer{{Key: key, Revision: 1, Stages: []stage.Stage{{Phase: item, Steps: []stage.Step{step}}}}},
	}
}
