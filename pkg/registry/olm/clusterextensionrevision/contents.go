package clusterextensionrevision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/store/pack"
)

// Bodies stores manifests. *pack.Store implements it.
type Bodies interface {
	// PutInChain stores the manifests of a revision, in order, and returns the root that names them
	// together. Storing the same manifests again writes nothing. The stored form may depend on
	// earlier packs of the chain, whose roots are in chain, nearest first.
	PutInChain(ctx context.Context, objects []manifest.Object, chain []string) (root string, err error)
	// Read returns verified manifests by digest.
	Read(ctx context.Context, root string) (map[manifest.Digest][]byte, error)
}

// contents finds the manifests that revisions name.
type contents struct {
	digester manifest.Digester
	bodies   Bodies
}

func (k entryKey) ref() manifest.Ref {
	return references.To(v1alpha1.RevisionObject{APIVersion: k.apiVersion, Kind: k.kind, Namespace: k.namespace, Name: k.name, Digest: k.digest})
}

// Refs returns the references of a revision's objects, in rollout order.
func Refs(revision *olm.ClusterExtensionRevision) []manifest.Ref {
	var refs []manifest.Ref
	eachObject(revision, func(_, _ int, entry *olm.RevisionObject) {
		refs = append(refs, keyOf(entry).ref())
	})
	return refs
}

func rootOf(revision *olm.ClusterExtensionRevision) string { return pack.Root(Refs(revision)) }

// read returns manifests of a stored revision. It returns all of them, or an error that names the
// first unavailable digest.
func (c *contents) read(ctx context.Context, revision *olm.ClusterExtensionRevision, entries []entryKey) ([]manifest.Object, error) {
	bodies, err := c.bodies.Read(ctx, rootOf(revision))
	if err != nil {
		return nil, fmt.Errorf("%s, digest %s: %w", entries[0], entries[0].digest, err)
	}
	objects := make([]manifest.Object, 0, len(entries))
	for _, entry := range entries {
		body, ok := bodies[manifest.Digest(entry.digest)]
		if !ok {
			return nil, fmt.Errorf("%s: the pack of %s has no digest %s", entry, revision.Name, entry.digest)
		}
		objects = append(objects, manifest.Object{Ref: entry.ref(), JSON: body})
	}
	return objects, nil
}

// collect returns all manifests of a new revision, in order. It takes missing manifests from other
// revisions of the chain. A digest that no revision has is the client's mistake, 422 Invalid. A
// read failure is an internal error.
func (c *contents) collect(ctx context.Context, revision *olm.ClusterExtensionRevision, held *staged) ([]manifest.Object, error) {
	if err := c.borrow(ctx, revision, held); err != nil {
		return nil, err
	}
	var objects []manifest.Object
	var errs field.ErrorList
	total := 0
	eachObject(revision, func(p, e int, entry *olm.RevisionObject) {
		object, ok := held.find(keyOf(entry))
		if !ok {
			path := objectPath(p, e).Child("digest")
			errs = append(errs, field.Invalid(path, entry.Digest, fmt.Sprintf(
				"no revision of this extension holds %s with this digest: give its manifest in object; a revision from kubectl get -o yaml has only digests, and penstock export and snapshots have the manifests", keyOf(entry))))
			return
		}
		total += len(object.JSON)
		objects = append(objects, object)
	})
	if total > v1alpha1.MaxManifestBytes {
		errs = append(errs, tooLarge(held, "manifests", total, v1alpha1.MaxManifestBytes))
	}
	if len(errs) > 0 {
		return nil, invalid(revision, errs[:min(len(errs), maxManifestErrors)])
	}
	return objects, nil
}

// borrow reads missing manifests from other revisions of the chain into held. It reads each
// revision at most once.
func (c *contents) borrow(ctx context.Context, revision *olm.ClusterExtensionRevision, held *staged) error {
	missing := map[entryKey]bool{}
	for _, entry := range notHeld(revision, held) {
		missing[entry] = true
	}
	revisions := held.chain()
	for r := 0; r < len(revisions) && len(missing) > 0; r++ {
		var found []entryKey
		eachObject(&revisions[r], func(_, _ int, entry *olm.RevisionObject) {
			if key := keyOf(entry); missing[key] {
				delete(missing, key)
				found = append(found, key)
				if key.ref().IsSecret() {
					held.hideSizes()
				}
			}
		})
		if len(found) == 0 {
			continue
		}
		objects, err := c.read(ctx, &revisions[r], found)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("reading manifests that %s holds: %w", revisions[r].Name, err))
		}
		for _, object := range objects {
			held.lend(object, revisions[r].Name)
		}
	}
	return nil
}

// put stores the manifests of a revision. chain holds the roots that its pack may depend on.
func (c *contents) put(ctx context.Context, revision *olm.ClusterExtensionRevision, held *staged, objects []manifest.Object, chain []string) (root string, err error) {
	root, err = c.bodies.PutInChain(ctx, objects, chain)
	var large *pack.TooLargeError
	if errors.As(err, &large) {
		return "", invalid(revision, field.ErrorList{tooLarge(held, large.What, large.Bytes, large.Max)})
	}
	if err != nil {
		return "", asStatus(fmt.Errorf("storing the manifests of %s: %w", revision.Name, err))
	}
	return root, nil
}

// rootsOf returns the roots of a chain's revisions, those nearest to a number first. Neighbouring
// revisions differ little.
func rootsOf(revisions []olm.ClusterExtensionRevision, number int64) []string {
	revisions = slices.Clone(revisions)
	slices.SortStableFunc(revisions, func(a, b olm.ClusterExtensionRevision) int {
		return cmp.Compare(max(number-a.Spec.Revision, a.Spec.Revision-number), max(number-b.Spec.Revision, b.Spec.Revision-number))
	})
	roots := make([]string, len(revisions))
	for i := range revisions {
		roots[i] = rootOf(&revisions[i])
	}
	return roots
}

// maxAdmissionBytes bounds the manifests that validating admission sees inline. kube-apiserver
// sends no more to webhooks, and computes the cost of policies for this size.
const maxAdmissionBytes = 3 << 20

// inlineForAdmission puts the manifests back into a copy of the revision, so that the cluster's
// policies and webhooks can judge the applied content. Above the limit, policies see only
// identities and digests. A policy can refuse such entries: they have no object.
func inlineForAdmission(revision *olm.ClusterExtensionRevision, objects []manifest.Object) {
	total := 0
	for _, object := range objects {
		total += len(object.JSON)
	}
	if total > maxAdmissionBytes {
		return
	}
	next := 0
	eachObject(revision, func(_, _ int, entry *olm.RevisionObject) {
		entry.Object = &olm.Manifest{Raw: objects[next].JSON}
		next++
	})
}

// tooLarge returns the error about too many bytes. If a Secret was borrowed, it omits the number: a
// user who knows the sizes of the other manifests could compute the Secret's size.
func tooLarge(held *staged, what string, found, allowed int) *field.Error {
	detail := fmt.Sprintf("the %s of a revision have %d bytes, %d are allowed", what, found, allowed)
	if held.hidesSizes() {
		detail = fmt.Sprintf("the %s of a revision have more bytes than the %d that are allowed", what, allowed)
	}
	return field.Invalid(field.NewPath("spec", "phases"), field.OmitValueType{}, detail)
}

func invalid(revision *olm.ClusterExtensionRevision, errs field.ErrorList) error {
	return apierrors.NewInvalid(olm.Kind("ClusterExtensionRevision"), revision.Name, errs)
}
