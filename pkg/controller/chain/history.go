package chain

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	rev "github.com/penstock-project/penstock/pkg/revision"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

// Heads keeps the numbers and the history of chains.
type Heads interface {
	// Get returns the head of a chain, and whether there is one.
	Get(ctx context.Context, chain string) (store.Head, bool, error)
	// Confirm notes that a revision exists, and what history keeps of it.
	Confirm(ctx context.Context, chain string, number int64, uid types.UID, row store.Row) error
	// Release lifts the hold that a revision is the reason of.
	Release(ctx context.Context, chain string, revision types.UID) error
	// Succeed is Confirm for a revision that succeeded: for ever, whatever becomes of
	// the revision and its row.
	Succeed(ctx context.Context, chain string, number int64, uid types.UID, row store.Row) error
}

// number makes sure that the numbers of all revisions are known to be used, which
// they are as a rule. Missing history of a revision without a result is written
// with its first result, at the end of the pass.
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

// confirm makes sure that history says of all revisions what is known by now. The API writes
// it with each status that has another result, and with the end of a revision; what is not
// there was written by an older Penstock.
func (s *scope) confirm(ctx context.Context) error {
	for i := range s.revisions {
		if err := s.note(ctx, i, rev.Row(&s.revisions[i], s.known[s.revisions[i].UID].root)); err != nil {
			return err
		}
	}
	return nil
}

// note writes the row of the i-th revision, unless it is what was written last.
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
