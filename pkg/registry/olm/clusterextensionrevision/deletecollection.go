package clusterextensionrevision

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// deletePage is the number of revisions per list, as in the library.
const deletePage = 10000

// DeleteCollection deletes all revisions that a list returns. It deletes chains in parallel, and
// the revisions of one chain in order, oldest first. It checks each deletion against the result of
// the previous one. If a revision cannot be deleted, newer revisions of its chain stay. After all
// chains, it returns the first error.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, list *internalversion.ListOptions) (runtime.Object, error) {
	listed, err := r.listed(ctx, list)
	if err != nil {
		return nil, err
	}
	chains := chainsOf(listed.Items)
	errs := make([]error, len(chains))
	var group errgroup.Group
	group.SetLimit(max(1, r.DeleteCollectionWorkers))
	for i, names := range chains {
		group.Go(func() error {
			// A panic in a goroutine would end the process.
			defer func() {
				if panicked := recover(); panicked != nil {
					errs[i] = apierrors.NewInternalError(fmt.Errorf("deleting %v: panic: %v", names, panicked))
				}
			}()
			errs[i] = r.deleteOneByOne(ctx, names, validate, options)
			return nil
		})
	}
	_ = group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return listed, nil
}

// listed returns all pages of a list. It returns one page if the client set a limit.
func (r *REST) listed(ctx context.Context, list *internalversion.ListOptions) (*olm.ClusterExtensionRevisionList, error) {
	options := &internalversion.ListOptions{}
	if list != nil {
		options = list.DeepCopy()
	}
	limited := options.Limit > 0
	if !limited {
		options.Limit = deletePage
	}
	var all *olm.ClusterExtensionRevisionList
	for {
		found, err := r.List(ctx, options)
		if err != nil {
			return nil, err
		}
		page, ok := found.(*olm.ClusterExtensionRevisionList)
		switch {
		case !ok:
			return nil, apierrors.NewInternalError(fmt.Errorf("listing revisions: got a %T", found))
		case limited:
			return page, nil
		case all == nil:
			all = page
		default:
			all.Items = append(slices.Clip(all.Items), page.Items...)
		}
		if page.Continue == "" {
			all.Continue, all.RemainingItemCount = "", nil
			return all, nil
		}
		options.Continue, options.ResourceVersion, options.ResourceVersionMatch = page.Continue, "", ""
	}
}

// chainsOf returns the names of revisions by chain, oldest revision first. The chains have the
// order of the list.
func chainsOf(revisions []olm.ClusterExtensionRevision) [][]string {
	var chains [][]string
	index := map[string]int{}
	for _, revision := range slices.SortedStableFunc(slices.Values(revisions), byNumber) {
		chain, _, _ := olm.ChainOf(revision.Name)
		at, known := index[chain]
		if !known {
			at = len(chains)
			index[chain], chains = at, append(chains, nil)
		}
		chains[at] = append(chains[at], revision.Name)
	}
	return chains
}

func byNumber(a, b olm.ClusterExtensionRevision) int {
	return cmp.Compare(a.Spec.Revision, b.Spec.Revision)
}

func (r *REST) deleteOneByOne(ctx context.Context, names []string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) error {
	// Rights of the caller are checked once for all revisions of a chain.
	ctx = request.WithAnswers(ctx)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Delete may change the options.
		if _, _, err := r.Delete(ctx, name, validate, options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
