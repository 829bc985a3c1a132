// Package bychain reads revisions by chain for the controllers: they reconcile a chain,
// whichever of its revisions changed.
package bychain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Request asks for a chain to be reconciled; its name is the chain.
func Request(chain string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: chain}}
}

// Requests maps a revision to its chain.
func Requests(_ context.Context, revision client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, chain := range Of(revision) {
		requests = append(requests, Request(chain))
	}
	return requests
}

// UnreadableError says that the record of a revision cannot be read from the store. Its
// chain is left as it is: nobody knows what that revision asks for. A change of the
// record is an event of the revision.
type UnreadableError struct {
	Revision, Why string
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("the record of %s cannot be read from the store, so nothing is done for its extension: %s", e.Revision, e.Why)
}

// Field is the name of the index of revisions by chain, and Of its values for a revision.
const Field = "chain"

// Of returns the chain of a revision, or nothing.
func Of(revision client.Object) []string {
	if chain := revision.GetLabels()[olmv1alpha1.ChainLabel]; chain != "" {
		return []string{chain}
	}
	return nil
}

// Index makes a cache find the revisions of a chain without looking at all others, which
// may be thousands. It is called before the first Cached.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &olmv1alpha1.ClusterExtensionRevision{}, Field, Of); err != nil {
		return fmt.Errorf("indexing revisions by extension: %w", err)
	}
	return nil
}

// Cached is List from a cache that has the Index.
func Cached(ctx context.Context, from client.Reader, chain string) ([]olmv1alpha1.ClusterExtensionRevision, error) {
	return list(ctx, from, client.MatchingFields{Field: chain})
}

// List returns the revisions of a chain as the API server knows them, newest first. When the
// record of one of them cannot be read, the error is an *UnreadableError, and the others are
// returned to be told of it.
func List(ctx context.Context, from client.Reader, chain string) ([]olmv1alpha1.ClusterExtensionRevision, error) {
	return list(ctx, from, client.MatchingLabels{olmv1alpha1.ChainLabel: chain})
}

func list(ctx context.Context, from client.Reader, which client.ListOption) ([]olmv1alpha1.ClusterExtensionRevision, error) {
	var list olmv1alpha1.ClusterExtensionRevisionList
	if err := from.List(ctx, &list, which); err != nil {
		return nil, err
	}
	var err error
	readable := slices.DeleteFunc(list.Items, func(revision olmv1alpha1.ClusterExtensionRevision) bool {
		unreadable := objectmeta.IsUnreadable(&revision)
		if unreadable {
			err = &UnreadableError{Revision: revision.Name, Why: revision.Annotations[objectmeta.UnreadableAnnotation]}
		}
		return unreadable
	})
	NewestFirst(readable)
	return readable, err
}

// NewestFirst sorts revisions of one chain by number.
func NewestFirst(revisions []olmv1alpha1.ClusterExtensionRevision) {
	slices.SortFunc(revisions, func(a, b olmv1alpha1.ClusterExtensionRevision) int {
		return cmp.Compare(b.Spec.Revision, a.Spec.Revision)
	})
}
