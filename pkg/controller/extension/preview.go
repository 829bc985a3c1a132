package extension

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// approvedContent refuses content that differs from the approved content of a ClusterExtensionSet's
// child.
func (m making) approvedContent(made *content) *maker.Outcome {
	approved := m.extension.Annotations[extension.ContentAnnotation]
	if approved == "" {
		return nil
	}
	found, err := contentOf(m.object, made)
	if err != nil {
		return retry(status.Failed, err)
	}
	if found == approved {
		return nil
	}
	return stop(status.ChangedSinceReview, fmt.Sprintf("rollout %s approved the content %s, and the image becomes %s: change the ClusterExtensionSet, or retry the cluster",
		m.extension.Annotations[extension.RolloutAnnotation], approved, found), "")
}

// contentOf returns the digest of a pinned child's content: its settings and rendered objects.
func contentOf(child *unstructured.Unstructured, made *content) (string, error) {
	common, err := extension.ChildWithoutCluster(child)
	if err != nil {
		return "", fmt.Errorf("encoding ClusterExtension %s: %w", child.GetName(), err)
	}
	return extension.ContentDigest(common, made.digest()), nil
}

// Preview is the change that a child of a ClusterExtensionSet would see.
type Preview struct {
	// Child has its image by digest.
	Child *unstructured.Unstructured
	// Version is the version of the content, or else its image.
	Version string
	// After is the digest of the content.
	After string

	making  making
	content *content
}

// Find returns an extension, or nil if it does not exist. known is false while the answer is
// unknown.
func (c *Controller) Find(name string) (object *unstructured.Unstructured, known bool) {
	return c.find(name)
}

// Children returns the extensions of a ClusterExtensionSet, in no particular order. known is false
// while the answer is unknown.
func (c *Controller) Children(set string) (children []*unstructured.Unstructured, known bool) {
	informer := c.informer()
	if informer == nil || !informer.HasSynced() {
		return nil, false
	}
	for _, one := range c.all() {
		if one.GetAnnotations()[extension.SetAnnotation] == set {
			children = append(children, one)
		}
	}
	return children, true
}

// Preview resolves, pulls and renders a child for its author, and stores nothing. It blocks for the
// time of a pull.
func (c *Controller) Preview(ctx context.Context, wanted *unstructured.Unstructured, who user.Info) (*Preview, *maker.Outcome) {
	live, known := c.find(wanted.GetName())
	if !known || c.measured == nil {
		return nil, stop(status.Pending, "the ClusterExtensions are not known yet", "").Later()
	}
	child := wanted.DeepCopy()
	if live != nil {
		if live.GetAnnotations()[extension.SetAnnotation] != child.GetAnnotations()[extension.SetAnnotation] {
			return nil, stop(status.NameTaken, fmt.Sprintf("ClusterExtension %s exists, and is no child of this set: delete it, or rename the set", live.GetName()), "")
		}
		child.SetUID(live.GetUID())
		child.SetGeneration(live.GetGeneration())
	}
	asked, err := extension.From(child)
	if err != nil {
		return nil, stop(status.Invalid, err.Error(), "")
	}
	s := &scope{Controller: c, Chain: maker.Chain{Store: c.Store, Rules: rules(), Name: asked.Name}, object: child, extension: asked, catalogs: c.Inventory.Snapshot()}
	s.cluster = s.clusterVersion(ctx)
	if stopped := s.findRevisions(ctx); stopped != nil {
		return nil, stopped
	}
	desired, stopped := s.choose()
	if desired == nil {
		return nil, stopped
	}
	s.resolved = desired.bundle
	identity := maker.Identity{As: who, Author: who}
	if stopped := s.mayUse(ctx, who); stopped != nil {
		return nil, stopped
	}
	if stopped := s.mayPull(ctx, identity); stopped != nil {
		return nil, stopped
	}
	made, stopped := s.pull(ctx, identity, desired)
	if stopped != nil {
		return nil, stopped
	}
	if err := extension.Pin(child, made.reference); err != nil {
		return nil, stop(status.Invalid, err.Error(), "")
	}
	if catalog := desired.catalog(); catalog != "" {
		annotations := child.GetAnnotations()
		annotations[extension.CatalogAnnotation] = catalog
		child.SetAnnotations(annotations)
	}
	out := &Preview{Child: child, Version: cmp.Or(desired.of(made).bundle.Version, made.reference), making: making{s, desired}, content: made}
	if out.After, err = contentOf(child, made); err != nil {
		return nil, stop(status.Invalid, err.Error(), "")
	}
	return out, nil
}

// Diff returns the changes that the next revision of a child would make.
func (*Controller) Diff(ctx context.Context, p *Preview) (*olmv1alpha1.RevisionDiff, *maker.Outcome) {
	revision, stopped := p.making.Next(ctx, p.content.Phases)
	if stopped != nil {
		return nil, stopped
	}
	p.making.describe(revision, maker.Identity{Approval: "compared for a rollout"}, p.content)
	if p.making.extension.UID == "" {
		revision.OwnerReferences = []metav1.OwnerReference{}
	}
	return p.making.Compare(ctx, revision)
}
