// Package bychain is how controllers look at revisions: by chain. What they
// reconcile is a chain, whichever of its revisions changed.
package bychain

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Request asks for a chain to be reconciled; its name is the chain.
func Request(chain string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: chain}}
}

// Requests maps a revision to its chain.
func Requests(_ context.Context, revision client.Object) []reconcile.Request {
	if chain := revision.GetLabels()[olmv1alpha1.ChainLabel]; chain != "" {
		return []reconcile.Request{Request(chain)}
	}
	return nil
}

// List returns the revisions of a chain, newest first.
func List(ctx context.Context, from client.Reader, chain string) ([]olmv1alpha1.ClusterExtensionRevision, error) {
	var list olmv1alpha1.ClusterExtensionRevisionList
	if err := from.List(ctx, &list, client.MatchingLabels{olmv1alpha1.ChainLabel: chain}); err != nil {
		return nil, err
	}
	NewestFirst(list.Items)
	return list.Items, nil
}

// NewestFirst sorts revisions of one chain by number.
func NewestFirst(revisions []olmv1alpha1.ClusterExtensionRevision) {
	slices.SortFunc(revisions, func(a, b olmv1alpha1.ClusterExtensionRevision) int {
		return cmp.Compare(b.Spec.Revision, a.Spec.Revision)
	})
}
