package privilege

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/helmrelease"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// demand has the rights that a change needs.
type demand struct {
	change change
	// asks are rights that the change needs regardless of the objects.
	asks []ask
	// effects are the effects on objects, in the order of the checks.
	effects []effect
	// kinds maps kinds of objects to resources, as far as discovered.
	kinds  *kinds
	grants grants
}

// effect is the effect on one object: it is written, deleted or released.
type effect struct {
	manifest.Ref
	// write is the applied object; nil for a deletion or release.
	write *written
	// verb for a deletion or release, and the right to read the object's name.
	verb    string
	shownTo authz.Right
}

// written is an object that is applied.
type written struct {
	manifest.Object
	// brought is true if the requester sent the content or named it by digest. Otherwise of names
	// the revision with the content.
	brought bool
	of      string
	// borrowed is the revision that has the content, if the requester named it by digest only.
	borrowed string
	// createOnly objects are created and never patched.
	createOnly bool
}

// demandOf returns the rights that a change needs. For a cluster other than the host, that is the
// right to use it. Otherwise it computes
//
//  1. the effects of the change, from the state of the chain,
//  2. the content of the written objects.
//
// search discovers kinds and computes the rights for objects later, in batches, because a denied
// request needs few of them.
func (p *Plugin) demandOf(ctx context.Context, c change, who user.Info) (*demand, error) {
	if target := cmp.Or(c.revision.Target(), p.deps.Target); target != "" {
		if c.collects(who) {
			return &demand{}, nil
		}
		return &demand{asks: []ask{{Right: authz.Use(target)}}}, nil
	}
	d := &demand{change: c, kinds: newKinds()}
	d.acknowledge(c.acknowledged)
	if c.kind == acknowledge && !c.answers && c.helm == (helmrelease.Release{}) {
		return d, nil
	}
	now, err := p.chainState(ctx, c)
	if err != nil {
		return nil, err
	}
	if d.follow(c, now); c.kind == acknowledge && !c.answers {
		return d, nil
	}
	if c.begins(now) {
		d.asks = append(d.asks, ask{Right: authz.Begin(c.chain), because: "for a first revision without objects"})
	}
	intended := planOf(c, now)
	objects, err := p.contents(ctx, c, intended.writes)
	if err != nil {
		return nil, err
	}
	for i := range objects {
		if objects[i].IsDefinition() {
			if err := d.kinds.bring(objects[i].Object); err != nil {
				return nil, err
			}
		}
		d.effects = append(d.effects, effect{Ref: objects[i].Ref, write: &objects[i]})
	}
	for _, object := range intended.deletes {
		d.effects = append(d.effects, effect{Ref: object.Ref, verb: "delete", shownTo: reading(olm.RevisionName(c.chain, object.revision), "")})
	}
	for _, object := range intended.releases {
		d.effects = append(d.effects, effect{Ref: object.Ref, verb: "patch", shownTo: reading(olm.RevisionName(c.chain, object.revision), "")})
	}
	return d, nil
}

// reading returns the right to read a revision or a subresource of it.
func reading(revision, subresource string) authz.Right {
	return authz.Right{Verb: "get", Group: olm.GroupName, Resource: "clusterextensionrevisions", Subresource: subresource, Name: revision}
}

func (p *Plugin) chainState(ctx context.Context, c change) (chainState, error) {
	revisions, err := p.deps.Chains.Revisions(ctx, c.chain)
	if err != nil {
		return chainState{}, fmt.Errorf("reading the revisions of %s: %w", c.chain, err)
	}
	inventory, err := p.deps.Chains.Inventory(ctx, c.chain)
	if err != nil {
		return chainState{}, fmt.Errorf("reading what %s has in the cluster: %w", c.chain, err)
	}
	var now chainState
	for _, revision := range revisions {
		if revision.Name != c.revision.Name {
			now.others = append(now.others, revision)
		}
	}
	for _, revision := range request.BesideFrom(ctx) {
		now.others = append(now.others, *revision)
	}
	for _, entry := range inventory.Entries {
		now.inventory = append(now.inventory, ownedObject{
			Ref:      manifest.Ref{ID: entry.ID(), Version: entry.Version, Digest: entry.Digest},
			revision: entry.Revision,
		})
	}
	return now, nil
}

// contents returns the manifests of the written objects. The manifests of a new revision are in the
// context of the request. All others are stored.
func (p *Plugin) contents(ctx context.Context, c change, writes []wanted) ([]written, error) {
	var objects []written
	for _, w := range writes {
		found, err := p.contentsOf(ctx, c, w.revision)
		if err != nil {
			return nil, fmt.Errorf("reading the manifests of %s: %w", w.revision.Name, err)
		}
		byID := make(map[manifest.ID]manifest.Object, len(found))
		for _, object := range found {
			byID[object.ID] = object
		}
		createOnly := createOnlyIn(w.revision)
		for _, ref := range w.refs {
			object, ok := byID[ref.ID]
			if !ok || object.Digest != ref.Digest {
				return nil, fmt.Errorf("reading the manifests of %s: %s is not among them", w.revision.Name, ref.ID)
			}
			found := written{Object: object, brought: c.brings(w.revision), of: c.source(w.revision), createOnly: createOnly[ref.ID]}
			if found.brought {
				found.borrowed = request.BorrowedFrom(ctx, ref.Digest)
			}
			objects = append(objects, found)
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
		return nil, errors.New("the endpoint did not pass them on")
	}
	return objects, nil
}

const definitionGroup = "apiextensions.k8s.io"

// rightsFor returns the rights that effects need. Their kinds must be discovered.
func (d *demand) rightsFor(effects []effect) ([]ask, error) {
	var asks []ask
	for _, e := range effects {
		if e.write == nil {
			asks = append(asks, ask{Right: d.kinds.right(e.verb, e.Ref), shownTo: e.shownTo})
			continue
		}
		more, err := d.write(*e.write)
		if err != nil {
			return nil, err
		}
		asks = append(asks, more...)
	}
	return asks, nil
}

// write returns the rights for applying an object. The engine creates the object if it is absent,
// and patches it otherwise, also for adoption and repair. So both rights are needed, both for this
// name. A create-only object is never patched. Rights that the object grants are added to the
// grants.
func (d *demand) write(object written) ([]ask, error) {
	var named, read authz.Right
	switch {
	case !object.brought:
		named, read = reading(object.of, ""), reading(object.of, "manifests")
	case object.borrowed != "":
		read = reading(object.borrowed, "manifests")
	}
	asks := []ask{{Right: d.kinds.right("create", object.Ref), shownTo: named}}
	if !object.createOnly {
		asks = append(asks, ask{Right: d.kinds.right("patch", object.Ref), shownTo: named})
	}
	more, err := beyondOf(object.Object, d.kinds)
	if err != nil {
		return nil, err
	}
	for _, needed := range more.rights {
		asks = append(asks, ask{Right: needed, because: "for " + object.Kind + " " + object.Name, shownTo: read})
	}
	if more.refusal != "" {
		asks = append(asks, ask{refusal: fmt.Sprintf("have %s written by Penstock: %s", object.ID, more.refusal), shownTo: named})
	}
	return asks, d.grants.add(object.Object, read)
}

// acknowledge adds the right to delete definitions with their instances.
func (d *demand) acknowledge(definitions []string) {
	for _, name := range definitions {
		d.asks = append(d.asks, ask{Right: authz.Right{Verb: "delete", Group: definitionGroup, Resource: "customresourcedefinitions", Name: name}})
	}
}

func rightsOf(asks []ask) []authz.Right {
	var rights []authz.Right
	for _, a := range asks {
		if a.refusal == "" {
			rights = append(rights, a.Right)
		}
	}
	return rights
}

// inWords returns asks as text. Asks that differ only in the verb are joined.
func inWords(asks []ask) []string {
	verbs := map[ask][]string{}
	var order []ask
	for _, a := range asks {
		verb := a.Verb
		a.Verb, a.shownTo = "", authz.Right{}
		if _, known := verbs[a]; !known {
			order = append(order, a)
		}
		verbs[a] = append(verbs[a], newly([]string{verb}, verbs[a])...)
	}
	var out []string
	for _, a := range order {
		a.Verb = strings.Join(verbs[a], ",")
		out = append(out, a.String())
	}
	return out
}
