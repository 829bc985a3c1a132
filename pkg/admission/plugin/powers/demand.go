package powers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// demand is what a change takes.
type demand struct {
	// asks are rights that are all needed.
	asks []ask
	// refusals are what no right helps with.
	refusals []string
	grants   grants
}

// demandOf works out what a change takes:
//
//  1. how the chain is, and what the change comes to,
//  2. the content of what is written,
//  3. how the kinds of everything are reached,
//  4. the rights.
func (p *Plugin) demandOf(ctx context.Context, c change) (*demand, error) {
	d := &demand{}
	d.acknowledge(c.acknowledged)
	if c.kind == acknowledge {
		return d, nil
	}
	now, err := p.standing(ctx, c)
	if err != nil {
		return nil, err
	}
	intended := planOf(c, now)
	written, err := p.contents(ctx, c, intended.writes)
	if err != nil {
		return nil, err
	}
	k, err := p.kinds(ctx, intended, written)
	if err != nil {
		return nil, err
	}
	for _, object := range written {
		if err := d.write(object, k); err != nil {
			return nil, err
		}
	}
	for _, object := range intended.deletes {
		d.asks = append(d.asks, ask{right: k.right("delete", object)})
	}
	for _, object := range intended.releases {
		d.asks = append(d.asks, ask{right: k.right("patch", object)})
	}
	return d, nil
}

// standing reads how the chain is.
func (p *Plugin) standing(ctx context.Context, c change) (standing, error) {
	revisions, err := p.deps.Chains.Revisions(ctx, c.chain)
	if err != nil {
		return standing{}, fmt.Errorf("reading the revisions of %s: %w", c.chain, err)
	}
	inventory, err := p.deps.Chains.Inventory(ctx, c.chain)
	if err != nil {
		return standing{}, fmt.Errorf("reading what %s has in the cluster: %w", c.chain, err)
	}
	var now standing
	for _, revision := range revisions {
		if revision.Name != c.revision.Name {
			now.others = append(now.others, revision)
		}
	}
	for _, entry := range inventory.Entries {
		now.inventory = append(now.inventory, held{
			Ref:      manifest.Ref{ID: entry.ID(), Version: entry.Version, Digest: entry.Digest},
			revision: entry.Revision,
		})
	}
	return now, nil
}

// contents returns the manifests of what is written: those of a new revision came
// with the request or were found for it, all others are stored.
func (p *Plugin) contents(ctx context.Context, c change, writes []wanted) ([]manifest.Object, error) {
	var objects []manifest.Object
	for _, w := range writes {
		found, err := p.contentsOf(ctx, c, w.revision)
		if err != nil {
			return nil, fmt.Errorf("reading the manifests of %s: %w", w.revision.Name, err)
		}
		byID := make(map[manifest.ID]manifest.Object, len(found))
		for _, object := range found {
			byID[object.ID] = object
		}
		for _, ref := range w.refs {
			object, ok := byID[ref.ID]
			if !ok || object.Digest != ref.Digest {
				return nil, fmt.Errorf("reading the manifests of %s: %s is not among them", w.revision.Name, ref.ID)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}

func (p *Plugin) contentsOf(ctx context.Context, c change, revision *olm.ClusterExtensionRevision) ([]manifest.Object, error) {
	if c.kind != create || revision != c.revision {
		return p.deps.Chains.Contents(ctx, revision)
	}
	objects, ok := request.ManifestsFrom(ctx)
	if !ok {
		return nil, errors.New("the endpoint has not said what they are")
	}
	return objects, nil
}

// kinds finds out how everything in a plan is reached.
func (p *Plugin) kinds(ctx context.Context, intended plan, written []manifest.Object) (*kinds, error) {
	refs := append(append([]manifest.Ref{}, intended.deletes...), intended.releases...)
	for _, object := range written {
		refs = append(refs, object.Ref)
	}
	k, err := discoverKinds(ctx, p.deps.Kinds, refs)
	if err != nil {
		return nil, err
	}
	for _, object := range written {
		if object.Group != definitionGroup || object.Kind != "CustomResourceDefinition" {
			continue
		}
		if err := k.bring(object); err != nil {
			return nil, err
		}
	}
	return k, nil
}

const definitionGroup = "apiextensions.k8s.io"

// write adds what it takes to have an object applied. Applying creates what is
// not there and patches what is, which adoption and the repair of drift do as
// well: so both rights are needed, and both by name.
func (d *demand) write(object manifest.Object, k *kinds) error {
	d.asks = append(d.asks, ask{right: k.right("create", object.Ref)}, ask{right: k.right("patch", object.Ref)})
	more, err := beyondOf(object, k)
	if err != nil {
		return err
	}
	for _, needed := range more.rights {
		d.asks = append(d.asks, ask{needed, "for " + object.Kind + " " + object.Name})
	}
	if more.refusal != "" {
		d.refusals = append(d.refusals, fmt.Sprintf("have %s written by Penstock: %s", object.ID, more.refusal))
	}
	return d.grants.add(object)
}

// acknowledge adds what it takes to let definitions go with their instances.
func (d *demand) acknowledge(definitions []string) {
	for _, name := range definitions {
		d.asks = append(d.asks, ask{right: right{verb: "delete", group: definitionGroup, resource: "customresourcedefinitions", name: name}})
	}
}

// missing returns what the requester lacks, in words: first rights on objects, in
// rollout order, then those that he would hand on.
func (d *demand) missing(ctx context.Context, i *inquiry, roles Roles) ([]string, error) {
	questions := d.grants.unless()
	for _, a := range d.asks {
		questions = append(questions, a.right)
	}
	if err := i.all(ctx, questions); err != nil {
		return nil, err
	}
	atoms, missing, err := d.grants.atoms(ctx, func(r right) bool { return !i.may(r) }, roles)
	if err != nil {
		return nil, err
	}
	questions = nil
	for _, atom := range atoms {
		questions = append(questions, atom.right)
	}
	if err := i.all(ctx, questions); err != nil {
		return nil, err
	}
	lacking := append(lack(d.asks, i), d.refusals...)
	for _, m := range missing {
		lacking = append(lacking, m.String())
	}
	return append(lacking, lack(atoms, i)...), nil
}

// lack returns the asks that are not allowed, each once, those that differ only in
// the verb as one.
func lack(asks []ask, i *inquiry) []string {
	verbs := map[ask][]string{}
	var order []ask
	for _, a := range asks {
		if i.may(a.right) {
			continue
		}
		verb := a.verb
		a.verb = ""
		if _, known := verbs[a]; !known {
			order = append(order, a)
		}
		verbs[a] = append(verbs[a], newly([]string{verb}, verbs[a])...)
	}
	var out []string
	for _, a := range order {
		a.verb = strings.Join(verbs[a], ",")
		out = append(out, a.String())
	}
	return out
}
