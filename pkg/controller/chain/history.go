package chain

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	rev "github.com/penstock-project/penstock/pkg/revision"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

// Heads keeps the numbers and history of chains.
type Heads interface {
	// Get returns the head of a chain, and whether it exists.
	Get(ctx context.Context, chain string) (store.Head, bool, error)
	// Confirm records that a revision exists, with its row of history.
	Confirm(ctx context.Context, chain string, number int64, uid types.UID, row store.Row) error
	// Release ends the hold that a revision caused.
	Release(ctx context.Context, chain string, revision types.UID) error
	// Succeed is Confirm for a revision that succeeded. The success outlives the revision and its
	// row.
	Succeed(ctx context.Context, chain string, number int64, uid types.UID, row store.Row) error
}

// number makes sure that the head records the numbers of all revisions as used, as it usually does.
// A missing row of a revision without a result is written later, with its first result.
func (s *scope) number(ctx context.Context) error {
	for i := range s.revisions {
		revision := &s.revisions[i]
		known := s.known[revision.UID]
		row := rev.Row(revision, known.root)
		if row.Result != "" || !rev.IsLayer(revision) {
			if err := s.note(ctx, i, row); err != nil {
				return err
			}
			continue
		}
		if known.numbered {
			continue
		}
		if err := s.Heads.Confirm(ctx, s.chain, revision.Spec.Revision, revision.UID, row); err != nil {
			return err
		}
		known.numbered = true
	}
	return nil
}

// confirm makes sure that history has the present result of each revision. The API writes a row
// with each new result, and when a revision ends. Rows are missing only if an older Penstock wrote
// the revision.
func (s *scope) confirm(ctx context.Context) error {
	for i := range s.revisions {
		if err := s.note(ctx, i, rev.Row(&s.revisions[i], s.known[s.revisions[i].UID].root)); err != nil {
			return err
		}
	}
	return nil
}

// note writes the row of the i-th revision, unless it equals the last written row.
func (s *scope) note(ctx context.Context, i int, row store.Row) error {
	revision := &s.revisions[i]
	known := s.known[revision.UID]
	if known.written == row {
		return nil
	}
	complete, write := row, s.Heads.Confirm
	complete.Counts = rev.Counts(s.revisions[i:])
	if row.Result == olmv1alpha1.ResultSucceeded {
		write = s.Heads.Succeed
	}
	if err := write(ctx, s.chain, revision.Spec.Revision, revision.UID, complete); err != nil {
		return err
	}
	known.written = row
	return nil
}
