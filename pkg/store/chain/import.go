package chain

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock-project/penstock/pkg/store"
)

// Import makes a chain of another store known here, before any of its revisions
// is written: its numbers are used from then on, and its rows name the uids that
// the revisions will have. It returns the head that the chain has now: the given
// one, or what was there already, which it does not change. Rows and texts are
// bounded as everywhere.
//
// A caller who finds their own import in Importing of the returned head was
// interrupted, and continues with the uids of its rows.
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
	// Read back, no matter who wrote it.
	present, found, err := s.Get(ctx, head.Name)
	if err == nil && !found {
		err = errors.New("it vanished as soon as it was written")
	}
	if err != nil {
		return Head{}, fmt.Errorf("importing extension %q: %w", head.Name, err)
	}
	return present, nil
}

// Imported notes that all revisions of an import have been written, which were those
// of an archive.
func (s *Heads) Imported(ctx context.Context, name, importing, archive string) error {
	return s.change(ctx, name, "finishing the import", func(h *Head) error {
		if h.Importing == importing {
			h.Importing, h.ImportedFrom = "", archive
		}
		return nil
	})
}
