package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/definition"
)

// conform judges the custom resources of a layer of which nothing is written yet by
// the definitions that it brings itself. The server cannot do that for us: it has not
// got them, and when it has, half of the layer is written. Findings are kept as long
// as the layer is not reached, for its content never changes, and as long as the same
// of its objects exist.
func (p *pass) conform(ctx context.Context, li int) (refusals, error) {
	layer := p.Layers[li]
	if p.inventory.Reached[layer.Key] > 0 {
		delete(p.memory.judged, layer.Key)
		return nil, nil
	}
	judged, known := p.memory.judged[layer.Key]
	if !known || p.otherwise(judged) {
		var complete bool
		if judged, complete = p.judgeInstances(ctx, layer); ctx.Err() != nil {
			return nil, fmt.Errorf("rolling out %s: %w", p.Owner, ctx.Err())
		}
		if complete {
			p.memory.judged[layer.Key] = judged
		}
	}
	refused := make(refusals, len(judged.found))
	for _, failure := range judged.found {
		refused[failure.ID] = failure
	}
	return refused, nil
}

// conformity has the faults of custom resources, and which of those that were judged existed then:
// fewer checks apply to these.
type conformity struct {
	found   []Failure
	existed map[manifest.ID]bool
}

// otherwise is true when it would be judged otherwise now.
func (p *pass) otherwise(judged conformity) bool {
	for id, existed := range judged.existed {
		if existed != p.exists(id) {
			return true
		}
	}
	return false
}

// exists is true for an object that the inventory has.
func (p *pass) exists(id manifest.ID) bool {
	memo := p.inventory.Entry(id)
	return memo != nil && !memo.Intent()
}

// judgeInstances returns what is wrong, and whether all could be read that it takes.
func (p *pass) judgeInstances(ctx context.Context, layer Layer) (conformity, bool) {
	definitions, complete := p.definitions(ctx, layer)
	if len(definitions) == 0 {
		return conformity{}, complete
	}
	judged := conformity{existed: map[manifest.ID]bool{}}
	for _, stg := range layer.Stages {
		for _, step := range stg.Steps {
			d, defined := definitions[step.GroupKind()]
			if !defined {
				continue
			}
			failure, err := p.judgeInstance(ctx, d, step.Ref)
			if err != nil {
				complete = false
			}
			if failure != nil {
				judged.found = append(judged.found, *failure)
			}
			judged.existed[step.ID] = p.exists(step.ID)
		}
	}
	return judged, complete
}

// definitions are those that a layer brings and that can be read. One that cannot is
// told of when it is applied.
func (p *pass) definitions(ctx context.Context, layer Layer) (map[schema.GroupKind]*definition.Definition, bool) {
	definitions, complete := map[schema.GroupKind]*definition.Definition{}, true
	for _, stg := range layer.Stages {
		for _, step := range stg.Steps {
			if !definition.Is(step.APIVersion(), step.Kind) || !p.instantiates(layer, step.Name) {
				continue
			}
			raw, err := p.Bodies.Body(ctx, step.Ref)
			if err != nil {
				complete = false
				continue
			}
			if d, err := definition.Parse(raw); err == nil {
				definitions[d.Kind()] = d
			}
		}
	}
	return definitions, complete
}

// instantiates is true for a layer with objects of the group of a definition, by its
// name: definitions of nothing that is here need not be read.
func (p *pass) instantiates(layer Layer, name string) bool {
	for _, stg := range layer.Stages {
		for _, step := range stg.Steps {
			if (manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name}).DefinesKindsOf(step.Group) {
				return true
			}
		}
	}
	return false
}

// judgeInstance judges one custom resource as the server will see it. An error means
// that it could not be read.
func (p *pass) judgeInstance(ctx context.Context, d *definition.Definition, ref manifest.Ref) (*Failure, error) {
	raw, err := p.Bodies.Body(ctx, ref)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil { // which keeps whole numbers whole
		return Classify(ref, &bodyError{ref, err}), nil
	}
	findings, err := d.Validate(ctx, ref.Version, object, p.exists(ref.ID))
	if err != nil || len(findings) == 0 {
		return nil, nil // a definition that is no good is refused by the server
	}
	invalid := p.engine.Redactor.Error(ref.ID, apierrors.NewInvalid(ref.GroupKind(), ref.Name, findings), object)
	failure := Classify(ref, invalid)
	failure.Message = "by the definition in the same revision: " + failure.Message
	return failure, nil
}
