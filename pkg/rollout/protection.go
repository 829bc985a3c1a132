package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

// A namespace that is protected (Names.ProtectLabel) keeps the objects of a chain from everybody
// but that chain. The API server asks a webhook about the writes of people, and not about those
// of the engine. So the engine must not do for somebody what the webhook refuses: it takes no
// object from another chain, and deletes no namespace with objects of another chain, unless the
// revision may (Work.TakesFrom).

// protected says why an object must not be taken from the chain that has it, empty when nothing
// protects it from that.
func (p *pass) protected(ctx context.Context, t task, seen Seen) (string, error) {
	chain := seen.Chain
	if _, applied := seen.Entry(p.who.managerOf(chain)); chain == "" || chain == p.who.Chain || !applied || p.mayTake(t, chain) {
		return "", nil
	}
	namespace := t.step.Namespace
	if isNamespace(t.step.ID) {
		namespace = t.step.Name
	}
	is, err := p.isProtected(ctx, namespace)
	if err != nil || !is {
		return "", err
	}
	return fmt.Sprintf("exists already and belongs to the extension %[1]q, and its namespace protects objects of extensions (label %[2]s): "+
		"a revision that names %[1]q in the annotation %[3]s takes it over",
		chain, p.engine.Names.ProtectLabel, p.engine.Names.TakeOverAnnotation), nil
}

// mayTake tells whether somebody who may has let a layer take what is protected.
func (p *pass) mayTake(t task, chain string) bool {
	return p.TakesFrom[p.Layers[t.layer].Revision][chain]
}

// isProtected reads a namespace. An object of the whole cluster has none.
func (p *pass) isProtected(ctx context.Context, namespace string) (bool, error) {
	if namespace == "" || p.engine.Names.ProtectLabel == "" {
		return false, nil
	}
	live, err := p.engine.Reader.ReadMetadata(ctx, manifest.Ref{ID: manifest.ID{Kind: "Namespace", Name: namespace}, Version: "v1"})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && live.Labels[p.engine.Names.ProtectLabel] == "true", err
}

// holdsOthers says why a namespace must not be deleted because of the objects that other chains
// have in it, empty when nothing protects these.
func (r *removal) holdsOthers(ctx context.Context, id manifest.ID, revision int64) (string, error) {
	if !isNamespace(id) || r.engine.Insider == nil {
		return "", nil
	}
	if is, err := r.isProtected(ctx, id.Name); err != nil || !is {
		return "", err
	}
	bounded, cancel := context.WithTimeout(ctx, insideTimeout)
	defer cancel()
	label := r.engine.Names.ChainLabel
	found, err := r.engine.Insider.InNamespace(bounded, id.Name, fmt.Sprintf("%s,%s!=%s", label, label, r.who.Chain))
	if err != nil {
		return "", err
	}
	var chains []string
	for i := range found {
		if chain := found[i].Labels[label]; chain != "" && chain != r.who.Chain && !r.TakesFrom[revision][chain] && !slices.Contains(chains, chain) {
			chains = append(chains, chain)
		}
	}
	if len(chains) == 0 {
		return "", nil
	}
	slices.Sort(chains)
	listed := strings.Join(chains[:min(mostNamed, len(chains))], ", ")
	return fmt.Sprintf("protects objects of %s (label %s), which would be deleted with it: %s. Name them in the annotation %s of the revision, or remove the label",
		text.Count(len(chains), "other extension"), r.engine.Names.ProtectLabel, listed, r.engine.Names.TakeOverAnnotation), nil
}
