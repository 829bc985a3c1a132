package revisionimport

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/registry/olm/access"
	"github.com/penstock-project/penstock/pkg/store/archive"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// mayBegin returns nil if the caller may use up the numbers in the archive. If the archive has
// revisions and only small gaps, the rights to create the revisions suffice. Otherwise no other
// right would be checked, so the caller needs the right to begin an extension.
func (in *incoming) mayBegin(ctx context.Context) error {
	if in.chain.Highest > chain.MaxNumber {
		return apierrors.NewBadRequest(fmt.Sprintf("extension %s of the archive: highest is %d, %d is allowed", in.name, in.chain.Highest, chain.MaxNumber))
	}
	if len(in.chain.Revisions) > 0 && largestGap(in.chain) <= chain.MaxGap {
		return nil
	}
	return access.New(in.deps.Authorizer).NeedBegin(ctx, in.name)
}

// largestGap returns the length of the longest run of unused revision numbers.
func largestGap(from archive.Chain) int64 {
	used := append([]int64{0, from.Highest}, from.Revisions...)
	for _, row := range from.History {
		used = append(used, row.Revision)
	}
	slices.Sort(used)
	largest := int64(0)
	for i := 1; i < len(used); i++ {
		largest = max(largest, used[i]-used[i-1]-1)
	}
	return largest
}
