package cel

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/text"
)

// Profile is a compiled definition with its name.
type Profile struct {
	*Definition
	name   string
	digest string
}

var (
	_ profile.Profile = &Profile{}
	_ profile.Waiter  = &Profile{}
)

// New compiles a stored definition.
func New(name string, spec *v1alpha1.ConfigurationProfileDefinitionSpec) (*Profile, error) {
	compiled, err := Compile(spec)
	if err != nil {
		return nil, fmt.Errorf("compiling ConfigurationProfileDefinition %s: %w", name, err)
	}
	return &Profile{Definition: compiled, name: name, digest: Digest(spec)}, nil
}

// Name returns the name of the profile.
func (p *Profile) Name() v1alpha1.ProfileName { return v1alpha1.ProfileName(p.name) }

// Digest returns the digest of the definition.
func (p *Profile) Digest() string { return p.digest }

// Spec returns the spec from which the profile was compiled.
func (p *Profile) Spec() *v1alpha1.ConfigurationProfileDefinitionSpec { return p.spec }

// Description returns the purpose of the profile in one sentence.
func (p *Profile) Description() string { return p.spec.Description }

// Requires returns the definitions that the profile uses.
func (p *Profile) Requires() []profile.Requirement {
	requires := make([]profile.Requirement, len(p.spec.Requirements))
	for i, one := range p.spec.Requirements {
		requires[i] = profile.Requirement{
			Definition: one.Definition, Kind: kindOf(one), Install: one.Install, Optional: one.Optional,
			Objects: one.Access == v1alpha1.AccessRead || one.Access == v1alpha1.AccessWrite,
		}
	}
	return requires
}

// Items returns the targets of the definition.
func (p *Profile) Items(facts profile.Facts, options *v1alpha1.PlanOptions) ([]profile.Item, error) {
	if err := p.lacks(facts); err != nil {
		return nil, err
	}
	e, err := p.evaluate(facts, valuesOf(options), maxUnits)
	if err != nil {
		return nil, err
	}
	for i, check := range p.spec.Prerequisites {
		holds, err := e.value(at("prerequisites", i, "expression"), nil)
		if err != nil {
			return nil, fmt.Errorf("prerequisite %d: %w", i+1, err)
		}
		if holds != true {
			return nil, &profile.MissingError{Message: check.Message}
		}
	}
	var items []profile.Item
	for i := range p.spec.Items {
		item, wanted, err := e.item(i, facts)
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", p.spec.Items[i].Name, err)
		}
		if wanted {
			items = append(items, item)
		}
	}
	return items, nil
}

func valuesOf(options *v1alpha1.PlanOptions) *v1alpha1.JSONObject {
	if options == nil {
		return nil
	}
	return options.Values
}

// lacks returns an error for a required field that a served definition does not have.
func (p *Profile) lacks(facts profile.Facts) error {
	for _, requirement := range p.spec.Requirements {
		definition, served := facts.Definitions[requirement.Definition]
		for _, one := range requirement.Fields {
			if there, _ := fieldOf(definition.Preferred().Schema, one.Path); served && !there && !one.Optional {
				return &profile.MissingError{Message: fmt.Sprintf("%s %s has no field %s: update %s", requirement.Kind, definition.Preferred().Name, one.Path, requirement.Install)}
			}
		}
	}
	return nil
}

// item computes one item. wanted is false if the plan does not have the item with these options.
func (e *evaluation) item(i int, facts profile.Facts) (item profile.Item, wanted bool, err error) {
	spec := e.spec.Items[i]
	requirement := e.requirement(spec.Target.Requirement)
	definition, served := facts.Definitions[requirement.Definition]
	names := map[string]any{"live": liveOf(facts, requirement, spec.Target)}
	if spec.When != "" {
		holds, err := e.value(at("items", i, "when"), names)
		if err != nil {
			return item, false, fmt.Errorf("when: %w", err)
		}
		if holds != true {
			return item, false, nil
		}
	}
	if !served {
		return item, false, &profile.MissingError{Message: fmt.Sprintf("%s (CustomResourceDefinition %s) is not served: install %s", requirement.Kind, requirement.Definition, requirement.Install)}
	}
	item = profile.Item{Name: spec.Name}
	made, err := e.value(at("items", i, "object"), names)
	if err != nil {
		return item, false, fmt.Errorf("object: %w", err)
	}
	if item.Object, err = whole(made, kindOf(requirement).Group+"/"+definition.Preferred().Name, requirement.Kind, spec.Target); err != nil {
		return item, false, fmt.Errorf("object: %w", err)
	}
	if item.Blast, err = e.blast(i, names); err != nil {
		return item, false, fmt.Errorf("blastRadius: %w", err)
	}
	names["blast"] = blastValue(item.Blast)
	if err := e.explain(i, names, &item); err != nil {
		return item, false, err
	}
	item.Waits = e.waits(i)
	return item, true, nil
}

// explain sets the impact, the reason and the notes of an item.
func (e *evaluation) explain(i int, names map[string]any, item *profile.Item) error {
	impact, err := e.value(at("items", i, "impact"), names)
	if err != nil {
		return fmt.Errorf("impact: %w", err)
	}
	text, _ := impact.(string)
	switch item.Impact = v1alpha1.ImpactSeverity(text); item.Impact {
	case v1alpha1.ImpactNone, v1alpha1.ImpactLow, v1alpha1.ImpactMedium, v1alpha1.ImpactHigh:
	default:
		return fmt.Errorf("impact: the expression returns %.64q, must return None, Low, Medium or High", fmt.Sprint(impact))
	}
	reason, err := e.value(at("items", i, "reason"), names)
	if err != nil {
		return fmt.Errorf("reason: %w", err)
	}
	text, ok := reason.(string)
	if !ok {
		return errors.New("reason: the expression must return text")
	}
	item.Reason = clip(text)
	if e.spec.Items[i].Notes == "" {
		return nil
	}
	notes, err := e.value(at("items", i, "notes"), names)
	if err != nil {
		return fmt.Errorf("notes: %w", err)
	}
	list, isList := notes.([]any)
	if !isList || len(list) > maxNotes {
		return fmt.Errorf("notes: the expression must return a list of at most %d texts", maxNotes)
	}
	for _, note := range list {
		text, ok := note.(string)
		if !ok {
			return fmt.Errorf("notes: the expression must return a list of texts")
		}
		item.Notes = append(item.Notes, clip(text))
	}
	return nil
}

// blast returns the blast radius of an item, or nil if it affects no pools.
func (e *evaluation) blast(i int, names map[string]any) (*v1alpha1.BlastRadius, error) {
	spec := e.spec.Items[i].BlastRadius
	if spec == nil {
		return nil, nil
	}
	made, err := e.value(at("items", i, "blastRadius.pools"), names)
	if err != nil {
		return nil, fmt.Errorf("pools: %w", err)
	}
	list, _ := made.([]any)
	var pools []*unstructured.Unstructured
	for _, one := range list {
		object, isObject := one.(map[string]any)
		if !isObject || object["kind"] != profile.MachineConfigPoolKind().Kind {
			return nil, fmt.Errorf("pools: the expression must return a list of MachineConfigPools, as facts have them")
		}
		pools = append(pools, &unstructured.Unstructured{Object: object})
	}
	reboot := false
	if spec.Reboot != "" {
		made, err := e.value(at("items", i, "blastRadius.reboot"), names)
		if err != nil {
			return nil, fmt.Errorf("reboot: %w", err)
		}
		reboot = made == true
	}
	if len(pools) == 0 {
		return nil, nil
	}
	return profile.BlastOf(pools, reboot), nil
}

// blastValue returns the blast radius in the form for expressions.
func blastValue(blast *v1alpha1.BlastRadius) map[string]any {
	if blast == nil {
		blast = &v1alpha1.BlastRadius{}
	}
	pools := []any{}
	for _, name := range blast.Pools {
		pools = append(pools, name)
	}
	return map[string]any{"pools": pools, "nodes": blast.Nodes, "waves": blast.Waves, "reboot": blast.Reboot}
}

func (d *Definition) requirement(name string) v1alpha1.DefinitionRequirement {
	for _, one := range d.spec.Requirements {
		if one.Name == name {
			return one
		}
	}
	return v1alpha1.DefinitionRequirement{}
}

// liveOf returns the present target, or nil.
func liveOf(facts profile.Facts, requirement v1alpha1.DefinitionRequirement, target v1alpha1.DefinitionTarget) any {
	for _, object := range facts.Objects[kindOf(requirement)] {
		if object.GetName() == target.Name && object.GetNamespace() == target.Namespace {
			return object.Object
		}
	}
	return nil
}

// whole returns the result of an expression as an object. Its kind and name must be those that the
// definition declares.
func whole(made any, apiVersion, kind string, target v1alpha1.DefinitionTarget) (map[string]any, error) {
	object, isObject := made.(map[string]any)
	if !isObject {
		return nil, fmt.Errorf("the expression must return an object")
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing it as JSON: %w", err)
	}
	if len(raw) > maxObjectBytes {
		return nil, fmt.Errorf("it is %d bytes as JSON, must be at most %d", len(raw), maxObjectBytes)
	}
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		if object["metadata"] != nil {
			return nil, fmt.Errorf("metadata must be an object")
		}
		metadata = map[string]any{}
	}
	for _, must := range []struct {
		in        map[string]any
		key, want string
	}{{object, "apiVersion", apiVersion}, {object, "kind", kind}, {metadata, "name", target.Name}, {metadata, "namespace", target.Namespace}} {
		switch there := must.in[must.key]; {
		case there == nil && must.want != "":
			must.in[must.key] = must.want
		case there != nil && there != must.want:
			return nil, fmt.Errorf("its %s is %.64q, and the definition declares %s %s, %s/%s: the expression must return that object", must.key, fmt.Sprint(there), apiVersion, kind, target.Namespace, target.Name)
		}
	}
	for key := range metadata {
		switch key {
		case "name", "namespace", "labels", "annotations":
		default:
			return nil, fmt.Errorf("metadata has %s, may have only labels and annotations", key)
		}
	}
	if _, has := object["status"]; has {
		return nil, fmt.Errorf("it has a status, which a profile must not write")
	}
	object["metadata"] = metadata
	return object, nil
}

// clip shortens text that is shown.
func clip(shown string) string { return text.Clip(shown, maxNoteBytes) }
