package chain

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock-project/penstock/pkg/store"
)

// Import creates the head of another store's chain before any of its revisions is written. Its
// numbers are used from then on, and its rows have the uids of the revisions. Import returns the
// stored head: the given head, or an existing head, which it does not change. Rows and texts have
// the usual limits.
//
// If Importing of the returned head is the caller's own import, the import was interrupted. The
// caller then continues with the uids of the rows.
func (s *Heads) Import(ctx context.Context, head Head) (Head, error) {
	if head.Importing == "" || head.Highest < 1 || head.HighestUID == "" {
		return Head{}, fmt.Errorf("importing extension %q: archive, highest number and its uid must be known", head.Name)
	}
	rows := head.Rows
	head.Rows, head.Confirmed = nil, true
	for _, row := range rows {
		if err := validate(row.Revision, row.UID); err != nil {
			return Head{}, fmt.Errorf("importing extension %q: %w", head.Name, err)
		}
		head.record(row)
	}
	record, err := encodeHead(head)
	if err != nil {
		return Head{}, fmt.Errorf("importing extension %q: %w", head.Name, err)
	}
	if _, _, err := store.Swap(ctx, s.kv, s.keys.Head(head.Name), record, 0); err != nil {
		return Head{}, fmt.Errorf("importing extension %q: %w", head.Name, err)
	}
	// The head is read back, because another import may have written it.
	present, found, err := s.Get(ctx, head.Name)
	if err == nil && !found {
		err = errors.New("it vanished as soon as it was written")
	}
	if err != nil {
		return Head{}, fmt.Errorf("importing extension %q: %w", head.Name, err)
	}
	return present, nil
}

// Imported records that all revisions of an archive have been written.
func (s *Heads) Imported(ctx context.Context, name, importing, archive string) error {
	return s.change(ctx, name, "finishing the import", func(h *Head) error {
		if h.Importing == importing {
			h.Importing, h.ImportedFrom = "", archive
		}
		return nil
	})
}
