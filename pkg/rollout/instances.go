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
// got them, and when it has, half of the layer is written. What was found is kept as
// long as the layer is not reached: its content never changes.
func (p *pass) conform(ctx context.Context, li int) (bool, error) {
	layer := p.Layers[li]
	if p.inventory.Reached[layer.Key] > 0 {
		delete(p.memory.judged, layer.Key)
		return true, nil
	}
	found, known := p.memory.judged[layer.Key]
	if !known {
		var complete bool
		if found, complete = p.judgeInstances(ctx, layer); ctx.Err() != nil {
			return false, fmt.Errorf("rolling out %s: %w", p.Owner, ctx.Err())
		}
		if complete {
			p.memory.judged[layer.Key] = found
		}
	}
	for _, failure := range found {
		p.refused[failure.ID] = failure
	}
	return len(found) == 0, nil
}

// judgeInstances returns what is wrong, and whether all could be read that it takes.
func (p *pass) judgeInstances(ctx context.Context, layer Layer) ([]Failure, bool) {
	definitions, complete := p.definitions(ctx, layer)
	if len(definitions) == 0 {
		return nil, complete
	}
	var found []Failure
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
				found = append(found, *failure)
			}
		}
	}
	return found, complete
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
			if isCRDOf(step.Group)(manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name}) {
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
		return classify(ref, &bodyError{ref, err}), nil
	}
	memo := p.memo(ref.ID)
	findings, err := d.Validate(ctx, ref.Version, object, memo != nil && !memo.Intent())
	if err != nil || len(findings) == 0 {
		return nil, nil // a definition that is no good is refused by the server
	}
	invalid := p.engine.Redactor.Error(ref.ID, apierrors.NewInvalid(ref.GroupKind(), ref.Name, findings), object)
	failure := classify(ref, invalid)
	failure.Message = "by the definition in the same revision: " + failure.Message
	return failure, nil
}
