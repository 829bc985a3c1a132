package clusterextensionrevision

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/access"
	"github.com/penstock-project/penstock/pkg/registry/printing"
)

// maxNamedSecrets bounds the omitted Secrets that a warning names.
const maxNamedSecrets = 3

// ManifestsREST serves the subresource manifests: the objects of a revision in
// full, in rollout order, as one List.
type ManifestsREST struct {
	store      *genericregistry.Store
	contents   *contents
	authorizer authorizer.UnconditionalAuthorizer
}

var (
	_ rest.GetterWithOptions = &ManifestsREST{}
	_ rest.TableConvertor    = &ManifestsREST{}
)

// New returns an empty list.
func (r *ManifestsREST) New() runtime.Object { return &v1alpha1.RevisionManifestList{} }

// Destroy does nothing: the main resource owns the store.
func (r *ManifestsREST) Destroy() {}

// NewGetOptions returns the query parameters; there is no path below the
// subresource.
func (r *ManifestsREST) NewGetOptions() (runtime.Object, bool, string) {
	return &v1alpha1.RevisionManifestsOptions{}, false, ""
}

// Get returns the selected manifests. It leaves out Secrets that the caller cannot read, and adds a
// warning. Manifests that are missing or damaged in the store are an internal error, never a
// shorter list.
func (r *ManifestsREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	query, ok := options.(*v1alpha1.RevisionManifestsOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("reading manifests: options are a %T", options))
	}
	found, err := r.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	revision := found.(*olm.ClusterExtensionRevision)
	selected, err := r.readable(ctx, selectEntries(revision, query))
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.RevisionManifestList{Items: []runtime.RawExtension{}}
	if len(selected) == 0 {
		return list, nil
	}
	objects, err := r.contents.read(ctx, revision, selected)
	if err != nil {
		return nil, notRead(ctx, r.store, name, err)
	}
	for _, object := range objects {
		list.Items = append(list.Items, runtime.RawExtension{Raw: object.JSON})
	}
	return list, nil
}

func selectEntries(revision *olm.ClusterExtensionRevision, query *v1alpha1.RevisionManifestsOptions) []entryKey {
	selection := olm.SelectObjects(query.ObjectKind, query.ObjectNamespace, query.ObjectName)
	var selected []entryKey
	eachObject(revision, func(_, _ int, entry *olm.RevisionObject) {
		if key := keyOf(entry); selection.Matches(key.ref().GroupKind(), entry.Namespace, entry.Name) {
			selected = append(selected, key)
		}
	})
	return selected
}

// readable drops the Secrets that the caller cannot get.
func (r *ManifestsREST) readable(ctx context.Context, entries []entryKey) ([]entryKey, error) {
	caller := access.New(r.authorizer)
	var readable, hidden []entryKey
	for _, entry := range entries {
		if !entry.ref().IsSecret() {
			readable = append(readable, entry)
			continue
		}
		allowed, err := caller.MayGetSecret(ctx, entry.namespace, entry.name)
		switch {
		case err != nil:
			return nil, err
		case allowed:
			readable = append(readable, entry)
		default:
			hidden = append(hidden, entry)
		}
	}
	if len(hidden) > 0 {
		warning.AddWarning(ctx, "", hiddenSecrets(hidden, caller.Exhausted()))
	}
	return readable, nil
}

// hiddenSecrets describes the omitted Secrets. With cut, some Secrets were not checked.
func hiddenSecrets(hidden []entryKey, cut bool) string {
	var names []string
	for _, entry := range hidden[:min(len(hidden), maxNamedSecrets)] {
		names = append(names, entry.namespace+"/"+entry.name)
	}
	if more := len(hidden) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if cut {
		return fmt.Sprintf("%d of the Secrets left out, as you cannot get them, or as they are more than one request checks (%d namespaces, and %d names in namespaces that you cannot read as a whole): %s; select fewer with objectNamespace or objectName",
			len(hidden), access.MaxNamespaces, access.MaxNames, strings.Join(names, ", "))
	}
	return fmt.Sprintf("%d of the Secrets left out, as you cannot get them: %s", len(hidden), strings.Join(names, ", "))
}

// ConvertToTable prints one line for each manifest.
func (r *ManifestsREST) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	list, ok := object.(*v1alpha1.RevisionManifestList)
	if !ok {
		return nil, fmt.Errorf("printing a table of manifests: got a %T", object)
	}
	out := &metav1.Table{}
	for i := range list.Items {
		row, err := manifestRow(r.contents.digester, list.Items[i].Raw)
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, row)
	}
	return printing.Headed(out, options, []metav1.TableColumnDefinition{
		{Name: "Kind", Type: "string", Description: "Kind of the object, with its group."},
		{Name: "Namespace", Type: "string", Description: "Namespace of the object."},
		{Name: "Name", Type: "string", Description: "Name of the object."},
		{Name: "Digest", Type: "string", Description: "Digest of the manifest."},
		{Name: "Size", Type: "integer", Description: "Size of the manifest in bytes."},
	}), nil
}

func manifestRow(digester manifest.Digester, raw []byte) (metav1.TableRow, error) {
	object, err := digester.FromJSON(raw)
	if err != nil {
		return metav1.TableRow{}, fmt.Errorf("printing a manifest: %w", err)
	}
	cells := []any{object.GroupKind().String(), object.Namespace, object.Name, string(object.Digest), int64(len(object.JSON))}
	return printing.Row(cells, &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: object.Name}}), nil
}
