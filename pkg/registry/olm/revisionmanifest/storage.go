package revisionmanifest

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/access"
	"github.com/penstock-project/penstock/pkg/registry/printing"
)

// separator separates the parts of a name. Names of objects may contain it (RBAC allows it), so
// they come last.
const separator = ":"

// Revisions reads revisions. *clusterextensionrevision.REST implements it.
type Revisions interface {
	// Stored returns a stored revision.
	Stored(ctx context.Context, name string) (*olm.ClusterExtensionRevision, error)
	// Contents returns the manifests of a revision, in rollout order.
	Contents(ctx context.Context, revision *olm.ClusterExtensionRevision) ([]manifest.Object, error)
}

// REST serves the virtual resource revisionmanifests: single manifests by name. They cannot be
// listed or watched. The subresource manifests of a revision returns all of them.
type REST struct {
	revisions  Revisions
	authorizer authorizer.UnconditionalAuthorizer
}

var (
	_ rest.Getter               = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.TableConvertor       = &REST{}
)

// NewREST returns the resource. authorizer checks the rights of callers.
func NewREST(revisions Revisions, authorizer authorizer.UnconditionalAuthorizer) *REST {
	return &REST{revisions: revisions, authorizer: authorizer}
}

// New returns an empty manifest.
func (*REST) New() runtime.Object { return &v1alpha1.RevisionManifest{} }

// Destroy does nothing.
func (*REST) Destroy() {}

// NamespaceScoped is false, as for revisions; the namespace of the object is in
// the name.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName returns the singular name for kubectl.
func (*REST) GetSingularName() string { return "revisionmanifest" }

// address identifies the object in a name.
type address struct {
	revision        string
	kind            schema.GroupKind
	namespace, name string
}

func parse(name string) (address, error) {
	parts := strings.SplitN(name, separator, 4)
	if len(parts) != 4 || parts[0] == "" || parts[1] == "" || parts[3] == "" {
		return address{}, apierrors.NewBadRequest(fmt.Sprintf(
			"%q is not the name of a revisionmanifest: want <revision>:<kind>.<group>:<namespace>:<name>, with an empty group for the core group and an empty namespace for objects without one", name))
	}
	return address{revision: parts[0], kind: schema.ParseGroupKind(parts[1]), namespace: parts[2], name: parts[3]}, nil
}

// Get returns a manifest. The caller needs the right to the manifests of the revision. For a
// Secret, the caller also needs the right to get the object itself.
func (r *REST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	asked, err := parse(name)
	if err != nil {
		return nil, err
	}
	caller := access.New(r.authorizer)
	if err := caller.NeedSubresource(ctx, asked.revision, "manifests"); err != nil {
		return nil, err
	}
	if err := mayGet(ctx, caller, asked); err != nil {
		return nil, err
	}
	revision, err := r.revisions.Stored(ctx, asked.revision)
	if err != nil {
		return nil, err
	}
	index, err := asked.find(revision, name)
	if err != nil {
		return nil, err
	}
	objects, err := r.revisions.Contents(ctx, revision)
	if err != nil {
		return nil, err
	}
	return manifestOf(revision, index, objects[index]), nil
}

// mayGet checks the rights before anything is read, so that the answer does not reveal whether the
// Secret exists. A kind without a group may be a Secret too.
func mayGet(ctx context.Context, caller *access.Caller, asked address) error {
	if asked.kind.Group != "" || !strings.EqualFold(asked.kind.Kind, "Secret") {
		return nil
	}
	allowed, err := caller.MayGetSecret(ctx, asked.namespace, asked.name)
	if err == nil && !allowed {
		err = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, asked.name, fmt.Errorf("this needs the right to get the Secret"))
	}
	return err
}

// find returns the index of the object in a revision, counted over all phases.
func (a address) find(revision *olm.ClusterExtensionRevision, name string) (int, error) {
	selection := olm.SelectObjects(a.kind.String(), a.namespace, a.name)
	found, next := []int{}, 0
	var kinds []string
	for _, phase := range revision.Spec.Phases {
		for i := range phase.Objects {
			entry := &phase.Objects[i]
			kind := kindOf(entry)
			// An empty namespace means cluster-scoped objects.
			if entry.Namespace == a.namespace && selection.Matches(kind, entry.Namespace, entry.Name) {
				found, kinds = append(found, next), append(kinds, kind.String())
			}
			next++
		}
	}
	switch {
	case len(found) == 0:
		return 0, apierrors.NewNotFound(v1alpha1.Resource("revisionmanifests"), name)
	case len(found) == 1:
		return found[0], nil
	}
	// The core group adds no name.
	for i, kind := range kinds {
		if !strings.Contains(kind, ".") {
			return found[i], nil
		}
	}
	return 0, apierrors.NewBadRequest(fmt.Sprintf("%q could be any of %s: add the group to the kind", name, strings.Join(kinds, ", ")))
}

func kindOf(entry *olm.RevisionObject) schema.GroupKind {
	// Stored objects were validated.
	version, _ := schema.ParseGroupVersion(entry.APIVersion)
	return schema.GroupKind{Group: version.Group, Kind: entry.Kind}
}

func manifestOf(revision *olm.ClusterExtensionRevision, index int, object manifest.Object) *v1alpha1.RevisionManifest {
	out := &v1alpha1.RevisionManifest{
		ObjectMeta: metav1.ObjectMeta{Name: strings.Join([]string{revision.Name, object.GroupKind().String(), object.Namespace, object.ID.Name}, separator)},
		Revision:   revision.Name,
		Digest:     string(object.Digest),
		Size:       int64(len(object.JSON)),
		Object:     v1alpha1.Manifest{Raw: object.JSON},
	}
	for _, phase := range revision.Spec.Phases {
		if index < len(phase.Objects) {
			out.Phase = phase.Name
			break
		}
		index -= len(phase.Objects)
	}
	return out
}

// ConvertToTable prints the revision and identity of a manifest; -o yaml prints the manifest.
func (*REST) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	found, ok := object.(*v1alpha1.RevisionManifest)
	if !ok {
		return nil, fmt.Errorf("printing a manifest: got a %T", object)
	}
	cells := []any{found.Name, found.Phase, found.Digest, found.Size}
	out := &metav1.Table{Rows: []metav1.TableRow{printing.Row(cells, &v1alpha1.RevisionManifest{ObjectMeta: metav1.ObjectMeta{Name: found.Name}})}}
	return printing.Headed(out, options, []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "<revision>:<kind>.<group>:<namespace>:<name>."},
		{Name: "Phase", Type: "string", Description: "Phase that the object is in."},
		{Name: "Digest", Type: "string", Description: "Digest of the manifest."},
		{Name: "Size", Type: "integer", Description: "Size of the manifest in bytes."},
	}), nil
}
