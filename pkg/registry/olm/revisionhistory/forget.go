package revisionhistory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/text"
)

// Forgetting deletes the heads of chains. *chain.Heads implements it.
type Forgetting interface {
	Heads
	// SeenHead returns etcd's revision of the last write of a head, or 0 if there is no head.
	SeenHead(ctx context.Context, name string) (int64, error)
	// Forget deletes the head of a chain if it is unchanged since it was seen, and reports whether
	// it did.
	Forget(ctx context.Context, name string, seen chain.Seen) (bool, error)
}

// ChainVersions returns the versions of chains. *chainversion.ChainVersions implements it.
type ChainVersions interface {
	// Get returns etcd's revision of the last change of a chain's revisions.
	Get(ctx context.Context, name string) (int64, error)
}

var _ rest.GracefulDeleter = &REST{}

// Delete forgets an extension with its numbers, so that it can begin again. It is for
// administrators and for extensions without remaining revisions and objects:
//
//  1. Read all records of the extension, with their versions.
//  2. Check that no revisions or objects are left.
//  3. Admit the request.
//  4. Delete the head if no record has changed.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	seen, left, err := r.see(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if left != "" {
		return nil, false, conflict(name, left)
	}
	if validate != nil {
		if err := validate(ctx, &v1alpha1.RevisionHistory{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return nil, false, err
		}
	}
	if options == nil || !dryrun.IsDryRun(options.DryRun) {
		done, err := r.forgetting.Forget(ctx, name, seen)
		switch {
		case err != nil:
			return nil, false, apierrors.NewInternalError(err)
		case !done:
			return nil, false, conflict(name, "the extension was written meanwhile: review it, then try again")
		}
	}
	return &metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name: name, Group: v1alpha1.GroupName, Kind: "revisionhistories",
	}}, true, nil
}

// see reads the records of an extension. left is the reason why it cannot be forgotten, or "".
func (r *REST) see(ctx context.Context, name string) (seen chain.Seen, left string, err error) {
	// The versions are read before the content, so that no write in between is missed.
	if seen.Version, err = r.chainVersions.Get(ctx, name); err != nil {
		return chain.Seen{}, "", apierrors.NewInternalError(err)
	}
	if seen.Head, err = r.forgetting.SeenHead(ctx, name); err != nil {
		return chain.Seen{}, "", apierrors.NewInternalError(err)
	}
	if seen.Head == 0 {
		return chain.Seen{}, "", apierrors.NewNotFound(v1alpha1.Resource("revisionhistories"), name)
	}
	revisions, err := r.revisions.Chain(ctx, name)
	if err != nil {
		return chain.Seen{}, "", err
	}
	inventory, written, err := r.inventories.Load(ctx, name)
	if err != nil {
		return chain.Seen{}, "", apierrors.NewInternalError(err)
	}
	seen.Inventory = written
	switch {
	case len(revisions) > 0:
		var names []string
		for i := range revisions {
			names = append(names, revisions[i].Name)
		}
		slices.Sort(names)
		return seen, fmt.Sprintf("it still has revisions (%s first): only an extension of which nothing is left can be forgotten", names[0]), nil
	case len(inventory.Entries) > 0:
		return seen, fmt.Sprintf("it still has %s in the cluster, to be deleted: only an extension of which nothing is left can be forgotten", text.Count(len(inventory.Entries), "object")), nil
	}
	return seen, "", nil
}

func conflict(name, detail string) error {
	return apierrors.NewConflict(v1alpha1.Resource("revisionhistories"), name, errors.New(detail))
}
