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

// A protected namespace (Names.ProtectLabel) keeps the objects of a chain from all other writers. A
// webhook checks the writes of users, but the API server does not call it for the engine's writes.
// So the engine takes no object from another chain, and deletes no namespace with objects of
// another chain, unless the revision is allowed to (Work.TakesFrom).

// protected returns the reason why an object must not be taken from its chain, or "" if it may be
// taken.
func (o *object) protected(ctx context.Context, seen Seen) (string, error) {
	chain := seen.Chain
	if _, applied := seen.Entry(o.who.managerOf(chain)); chain == "" || chain == o.who.Chain || !applied || o.mayTake(chain) {
		return "", nil
	}
	namespace := o.step.Namespace
	if isNamespace(o.step.ID) {
		namespace = o.step.Name
	}
	is, err := o.isProtected(ctx, namespace)
	if err != nil || !is {
		return "", err
	}
	return fmt.Sprintf("exists already and belongs to the extension %[1]q, and its namespace protects objects of extensions (label %[2]s): "+
		"a revision that names %[1]q in the annotation %[3]s takes it over",
		chain, o.engine.Names.ProtectLabel, o.engine.Names.TakeOverAnnotation), nil
}

// mayTake reports whether an authorised user allowed the revision to take protected objects from a
// chain.
func (o *object) mayTake(chain string) bool { return o.TakesFrom[o.revision][chain] }

// isProtected reports whether a namespace has the protect label. It is false for the empty
// namespace of cluster-scoped objects.
func (s *setting) isProtected(ctx context.Context, namespace string) (bool, error) {
	if namespace == "" || s.engine.Names.ProtectLabel == "" {
		return false, nil
	}
	live, err := s.engine.Reader.ReadMetadata(ctx, manifest.Ref{ID: manifest.ID{Kind: "Namespace", Name: namespace}, Version: "v1"})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && live.Labels[s.engine.Names.ProtectLabel] == "true", err
}

// holdsOthers returns the reason why a namespace with objects of other chains must not be deleted,
// or "" if it may be deleted.
func (o *object) holdsOthers(ctx context.Context) (string, error) {
	if !isNamespace(o.step.ID) || o.engine.NamespaceContents == nil {
		return "", nil
	}
	if is, err := o.isProtected(ctx, o.step.Name); err != nil || !is {
		return "", err
	}
	bounded, cancel := context.WithTimeout(ctx, insideTimeout)
	defer cancel()
	label := o.engine.Names.ChainLabel
	found, err := o.engine.NamespaceContents.InNamespace(bounded, o.step.Name, fmt.Sprintf("%s,%s!=%s", label, label, o.who.Chain))
	if err != nil {
		return "", err
	}
	var chains []string
	for i := range found {
		if chain := found[i].Labels[label]; chain != "" && chain != o.who.Chain && !o.mayTake(chain) && !slices.Contains(chains, chain) {
			chains = append(chains, chain)
		}
	}
	if len(chains) == 0 {
		return "", nil
	}
	slices.Sort(chains)
	listed := strings.Join(chains[:min(maxNamed, len(chains))], ", ")
	return fmt.Sprintf("protects objects of %s (label %s), which would be deleted with it: %s. Name them in the annotation %s of the revision, or remove the label",
		text.Count(len(chains), "other extension"), o.engine.Names.ProtectLabel, listed, o.engine.Names.TakeOverAnnotation), nil
}
