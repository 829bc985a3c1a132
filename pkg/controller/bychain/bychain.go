// Package bychain reads revisions by chain for the controllers, which reconcile a whole chain when
// any of its revisions changes.
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

// Request returns the reconcile request of a chain. Its name is the name of the chain.
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

// UnreadableError reports that the record of a revision cannot be read from the store. Controllers
// leave its chain unchanged, because the spec of that revision is unknown. A change of the record is
// an event of the revision.
type UnreadableError struct {
	Revision, Why string
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("the record of %s cannot be read from the store, so nothing is done for its extension: %s", e.Revision, e.Why)
}

// List returns the revisions of a chain, newest first. If a record cannot be read, it returns an
// *UnreadableError with the readable revisions.
func List(ctx context.Context, from client.Reader, chain string) ([]olmv1alpha1.ClusterExtensionRevision, error) {
	var list olmv1alpha1.ClusterExtensionRevisionList
	if err := from.List(ctx, &list, client.MatchingLabels{olmv1alpha1.ChainLabel: chain}); err != nil {
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
