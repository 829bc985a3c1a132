package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/store"
)

// Heads reads and changes the heads of chains. Every change is a function of the current head, and
// is repeated if another writer was faster. So of two revisions that want the same number, one gets
// it. Only Forget deletes a head, so a used number stays used after all revisions are deleted.
type Heads struct {
	kv   clientv3.KV
	keys store.Keys
	// unreadable collects unreadable heads; nil collects none.
	unreadable *store.Unreadable
	// known caches the heads last read or written.
	known *store.Known
}

// knownHeads bounds the cached heads, which consecutive writes of a rollout use. A compressed head
// has some hundred bytes, or 10 KB with a long history.
const knownHeads = 256

// NewHeads returns the heads below an etcd prefix.
func NewHeads(kv clientv3.KV, prefix string) *Heads {
	return &Heads{kv: kv, keys: store.NewKeys(prefix), known: store.NewKnown(knownHeads)}
}

// Noting sets the collection of unreadable heads. It returns the same heads.
func (s *Heads) Noting(unreadable *store.Unreadable) *Heads {
	s.unreadable = unreadable
	return s
}

// headFormat returns the written format. Format 1 had no holds, and fewer fields in the rows of
// history. Format 2 had no imports. Format 3 was not compressed. All formats can be read. The next
// change of a head writes format 4.
func headFormat() store.Format {
	return store.Format{Kind: "chain head", Magic: "PKH", Version: 4, Limit: maxHeadJSON}
}

// plainHeads is the last format without compression.
const plainHeads = 3

// maxHeadJSON bounds the JSON of a head, in bytes, and the memory to read it. It is far above the
// size of all rows and texts, with six bytes for each byte of text.
const maxHeadJSON = 4 << 20

// Get returns the head of a chain, and whether there is one.
func (s *Heads) Get(ctx context.Context, name string) (Head, bool, error) {
	head, stored, err := s.get(ctx, name)
	return head, stored.Exists(), err
}

// Create returns the head's part of the transaction that writes a new revision: it takes the number
// and adds the history row. seen is the head that was read before the chain's revisions. The write
// returns the same errors as Advance. hold then holds the chain's owner; nil means no hold.
func (s *Heads) Create(seen Head, row Row, hold *Hold) *store.CompanionWrite {
	return s.beside(seen.Name, func(h *Head) error {
		take := h.advance
		if hold != nil {
			take = func(seen Head, number int64, uid types.UID) error {
				return h.advanceHolding(seen, number, uid, hold.OwnerGeneration)
			}
		}
		if err := take(seen, row.Revision, row.UID); err != nil {
			return err
		}
		return h.confirm(row)
	})
}

// Note returns the head's part of a transaction that changes a revision's history. Like Confirm, it
// marks the number as used; with succeeded it sets Succeeded, like Succeed.
func (s *Heads) Note(name string, row Row, succeeded bool) *store.CompanionWrite {
	return s.beside(name, func(h *Head) error {
		h.Succeeded = h.Succeeded || succeeded
		return h.confirm(row)
	})
}

// beside returns a change of a head in the transaction of another record.
func (s *Heads) beside(name string, apply func(*Head) error) *store.CompanionWrite {
	key := s.keys.Head(name)
	return &store.CompanionWrite{Key: key, Known: s.known, Change: func(found store.Value) ([]byte, error) {
		head, err := s.decode(name, found)
		if err != nil {
			return nil, err
		}
		return changed(head, found, apply)
	}}
}

// Advance takes a number for a revision before the revision is written. An older Penstock uses it;
// Create takes the number together with the revision. seen is the head that was read before the
// chain's revisions. If a number was taken since, the error is an *OvertakenError, and the caller
// must read again. Numbers above the confirmed highest are free. The unconfirmed highest is free
// too, because its create may have failed. Other numbers are a *NumberUsedError or *OpenError, see
// Head.Admits.
//
// Between Advance and Confirm, another create may take the same number. Both then write a revision
// of the same name, and one of the writes fails.
func (s *Heads) Advance(ctx context.Context, seen Head, number int64, uid types.UID) error {
	return s.change(ctx, seen.Name, fmt.Sprintf("taking revision number %d", number), func(h *Head) error {
		return h.advance(seen, number, uid)
	})
}

// AdvanceHolding works like Advance, for a rollback. After its confirmation, the chain's owner is
// held until the owner's generation exceeds ownerGeneration; 0 holds it until a release.
func (s *Heads) AdvanceHolding(ctx context.Context, seen Head, number int64, uid types.UID, ownerGeneration int64) error {
	return s.change(ctx, seen.Name, fmt.Sprintf("taking revision number %d for a rollback", number), func(h *Head) error {
		return h.advanceHolding(seen, number, uid, ownerGeneration)
	})
}

// Release ends the hold that a revision caused. The hold of a newer revision stays.
func (s *Heads) Release(ctx context.Context, name string, revision types.UID) error {
	return s.change(ctx, name, "releasing the hold", func(h *Head) error {
		if h.Hold != nil && h.Hold.UID == revision {
			h.Hold = nil
		}
		return nil
	})
}

// Confirm records that the revision was written, so its number stays used. Any process that saw the
// revision may call it, late and repeatedly, for any number. Confirm sets number and uid of the
// row.
func (s *Heads) Confirm(ctx context.Context, name string, number int64, uid types.UID, row Row) error {
	row.Revision, row.UID = number, uid
	return s.ensure(ctx, name, fmt.Sprintf("confirming revision number %d", number), func(h *Head) error {
		return h.confirm(row)
	})
}

// Record updates the history of a revision with the set fields of row. Like Confirm, it marks the
// number as used.
func (s *Heads) Record(ctx context.Context, name string, row Row) error {
	return s.Confirm(ctx, name, row.Revision, row.UID, row)
}

// Succeed works like Confirm, for a revision that succeeded. It sets the head's Succeeded for ever.
func (s *Heads) Succeed(ctx context.Context, name string, number int64, uid types.UID, row Row) error {
	row.Revision, row.UID = number, uid
	return s.ensure(ctx, name, fmt.Sprintf("noting the success of revision number %d", number), func(h *Head) error {
		h.Succeeded = true
		return h.confirm(row)
	})
}

// SetOwner records the uid of the chain's ClusterExtension, or empty.
func (s *Heads) SetOwner(ctx context.Context, name string, uid types.UID) error {
	return s.change(ctx, name, "setting the owner", func(h *Head) error {
		h.OwnerUID = uid
		return nil
	})
}

// ensure works like change, for facts that stay: that a revision exists, and its history. A head
// keeps them while the revision exists, so if the cached head has them, ensure does not read the
// head again. A revision that was created after Forget has another uid.
func (s *Heads) ensure(ctx context.Context, name, doing string, apply func(*Head) error) error {
	if known, ok := s.known.Get(s.keys.Head(name)); ok {
		if head, err := s.decode(name, known); err == nil {
			if record, err := changed(head, known, apply); err == nil && record == nil {
				return nil
			}
		}
	}
	return s.change(ctx, name, doing, apply)
}

// change writes the result of a function of a head, unless it is equal. doing is for errors.
func (s *Heads) change(ctx context.Context, name, doing string, apply func(*Head) error) error {
	for {
		done, err := s.attempt(ctx, name, apply)
		var used *NumberUsedError
		switch {
		case errors.As(err, &used):
			return err
		case err != nil:
			return fmt.Errorf("%s of extension %q: %w", doing, name, err)
		case done:
			return nil
		}
		// Another writer has changed the head, so some writer makes progress.
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s of extension %q: %w", doing, name, err)
		}
	}
}

func (s *Heads) attempt(ctx context.Context, name string, apply func(*Head) error) (bool, error) {
	head, stored, err := s.get(ctx, name)
	if err != nil {
		return false, err
	}
	record, err := changed(head, stored, apply)
	if err != nil || record == nil {
		return err == nil, err
	}
	revision, done, err := store.Swap(ctx, s.kv, s.keys.Head(name), record, stored.ModRevision)
	if done {
		s.known.Set(s.keys.Head(name), store.Value{Bytes: record, ModRevision: revision})
	}
	return done, err
}

func (s *Heads) get(ctx context.Context, name string) (Head, store.Value, error) {
	if name == "" {
		return Head{}, store.Value{}, errors.New("the extension has no name")
	}
	stored, err := store.Get(ctx, s.kv, s.keys.Head(name))
	if err != nil {
		return Head{Name: name}, store.Value{}, err
	}
	s.known.Set(s.keys.Head(name), stored)
	head, err := s.decode(name, stored)
	if err != nil {
		return Head{}, store.Value{}, err
	}
	return head, stored, nil
}

// decode decodes the record of a head. Without a record, the head has no revisions.
func (s *Heads) decode(name string, stored store.Value) (Head, error) {
	if !stored.Exists() {
		return Head{Name: name}, nil
	}
	key := s.keys.Head(name)
	head, err := DecodeHead(key, stored.Bytes)
	if err == nil && head.Name != name {
		err = headFormat().Damaged(key, fmt.Errorf("it is the head of extension %q", head.Name))
	}
	if err != nil {
		return Head{}, s.unreadable.Told(key, stored.Bytes, err)
	}
	return head, nil
}

// changed returns the record of the changed head, or nil if the function changes nothing.
func changed(head Head, stored store.Value, apply func(*Head) error) ([]byte, error) {
	before, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	if err := apply(&head); err != nil {
		return nil, err
	}
	after, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	// An equal record in an older format stays as it is.
	if stored.Exists() && bytes.Equal(before, after) {
		return nil, nil
	}
	return headFormat().Seal(after)
}

// encodeHead returns the record of a head.
func encodeHead(head Head) ([]byte, error) {
	body, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	return headFormat().Seal(body)
}

// DecodeHead decodes a head. An unknown field is damage. New fields need a new version of the
// format: an older Penstock would drop them when it writes.
func DecodeHead(key string, record []byte) (Head, error) {
	body, err := headFormat().Unwrap(key, record)
	if err != nil {
		return Head{}, err
	}
	// Unwrap has checked that the record has a version.
	if record[len(headFormat().Magic)] > plainHeads {
		if body, err = headFormat().Open(key, record); err != nil {
			return Head{}, err
		}
	}
	var head Head
	if err := decodeJSON(body, &head); err != nil {
		return Head{}, headFormat().Damaged(key, err)
	}
	return head, nil
}

// decodeJSON decodes exactly one JSON value without unknown fields.
func decodeJSON(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if decoder.InputOffset() != int64(len(data)) {
		return errors.New("it continues after its end")
	}
	return nil
}
