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

// conform validates the custom resources of a layer against definitions in the same layer, before
// the first write. The server cannot do it: it gets the definitions only when half of the layer is
// written. Findings are cached until the layer is reached, or an object is created or deleted.
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

// conformity holds the faults of custom resources, and whether each checked object existed then:
// existing objects need fewer checks.
type conformity struct {
	found   []Failure
	existed map[manifest.ID]bool
}

// otherwise reports whether the findings are outdated.
func (p *pass) otherwise(judged conformity) bool {
	for id, existed := range judged.existed {
		if existed != p.exists(id) {
			return true
		}
	}
	return false
}

// exists reports whether the inventory has an object that was written.
func (p *pass) exists(id manifest.ID) bool {
	memo := p.inventory.Entry(id)
	return memo != nil && !memo.Intent()
}

// judgeInstances returns the faults, and whether all manifests could be read.
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

// definitions returns the readable CustomResourceDefinitions of a layer. An invalid definition is
// reported when it is applied.
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

// instantiates reports whether the layer has objects in the API group of the definition with this
// name. Other definitions need not be read.
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

// judgeInstance validates a custom resource as the server will do. An error means that its manifest
// could not be read.
func (p *pass) judgeInstance(ctx context.Context, d *definition.Definition, ref manifest.Ref) (*Failure, error) {
	raw, err := p.Bodies.Body(ctx, ref)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil { // keeps integers as integers
		return Classify(ref, &bodyError{ref, err}), nil
	}
	findings, err := d.Validate(ctx, ref.Version, object, p.exists(ref.ID))
	if err != nil || len(findings) == 0 {
		return nil, nil // the server will refuse an invalid definition
	}
	invalid := p.engine.Redactor.Error(ref.ID, apierrors.NewInvalid(ref.GroupKind(), ref.Name, findings), object)
	failure := Classify(ref, invalid)
	failure.Message = "by the definition in the same revision: " + failure.Message
	return failure, nil
}
