package revisionhistory

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/printing"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// NewList returns an empty list.
func (*REST) NewList() runtime.Object { return &v1alpha1.RevisionHistoryList{} }

// List returns the histories of all extensions with revisions, in one page. The history of an
// uninstalled extension is available only by name.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	chains, err := r.revisions.All(ctx)
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(chains)), func(name string) bool { return !selected(name, options) })
	list := &v1alpha1.RevisionHistoryList{Items: make([]v1alpha1.RevisionHistory, len(names))}
	// Unpacked revisions are several times larger. So only one extension is unpacked at a time.
	join := func(name string, head chain.Head) *v1alpha1.RevisionHistory {
		revisions := chains[name]
		delete(chains, name)
		for i := range revisions {
			revisions[i].Unpack()
		}
		return history(head, revisions)
	}
	if len(names) > 0 {
		err = r.heads.Each(ctx, func(head chain.Head, inventory chain.Inventory) error {
			if n, is := slices.BinarySearch(names, head.Name); is {
				one := join(head.Name, head)
				one.Repairs = repairs(head.Name, inventory)
				list.Items[n] = *one
			}
			return nil
		})
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	}
	for n, name := range names {
		if list.Items[n].Name == "" { // without a head
			list.Items[n] = *join(name, chain.Head{Name: name})
		}
	}
	return list, nil
}

// selected reports whether the selectors of a list match an extension. A history has no labels.
func selected(name string, options *metainternalversion.ListOptions) bool {
	if options == nil {
		return true
	}
	return (options.FieldSelector == nil || options.FieldSelector.Matches(fields.Set{"metadata.name": name})) &&
		(options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set{}))
}

func extensionColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the extension."},
		{Name: "Revision", Type: "integer", Description: "Number of its newest revision."},
		{Name: "Version", Type: "string", Description: "Version that the newest revision installs."},
		{Name: "State", Type: "string", Description: "Active, Paused, Archived or Deleting: of the newest revision."},
		{Name: "Result", Type: "string", Description: "Result of the rollout of the newest revision."},
		{Name: "Succeeded", Type: "string", Description: "Version, or number, of the newest revision that has succeeded."},
		{Name: "Objects", Type: "string", Description: "Number of objects of the newest revision."},
		{Name: "Updated", Type: "string", Description: "When the newest revision was created."},
		{Name: "By", Type: "string", Priority: 1, Description: "User who created it."},
	}
}

// extensions prints one row for each extension with its current state.
func extensions(list *v1alpha1.RevisionHistoryList, options runtime.Object) *metav1.Table {
	out := &metav1.Table{}
	for i := range list.Items {
		found := &list.Items[i]
		newest, succeeded := newestOf(found)
		out.Rows = append(out.Rows, printing.Row([]any{
			found.Name, newest.Revision, newest.Version, newest.State, newest.Result, succeeded, objectsOf(&newest), clock(newest.CreatedAt), newest.RequestedBy,
		}, found))
	}
	return printing.Headed(out, options, extensionColumns())
}
