package references

import (
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

const (
	// page is how many records are read at a time at most, keyPage how many keys. A client
	// of the database takes messages of 64 MiB, and a record may have 1.5 MiB.
	page    = 40
	keyPage = 5000
	// firstPage is how many are read first. Pages grow up to pageBytes each, so that a
	// store of small records is read fast, and one of large records in little memory.
	firstPage = 8
	pageBytes = 4 << 20
)

// Source reads the records of a store, as they were at one of etcd's revisions. At revision
// 0 each page is as it is when it is read: then a record is seen when it was there all the
// time, whatever etcd forgets meanwhile.
type Source struct {
	kv       clientv3.KV
	keys     store.Keys
	decoders Decoders
}

// NewSource returns the records below an etcd prefix.
func NewSource(kv clientv3.KV, prefix string, decoders Decoders) *Source {
	return &Source{kv: kv, keys: store.NewKeys(prefix), decoders: decoders}
}

// Keys is the layout of the store.
func (s *Source) Keys() store.Keys { return s.keys }

// Revision is the one that etcd is at, after all writes that were acknowledged before.
func (s *Source) Revision(ctx context.Context) (int64, error) {
	found, err := s.kv.Get(ctx, s.keys.Identity(), clientv3.WithKeysOnly())
	if err != nil {
		return 0, fmt.Errorf("reading the revision of etcd: %w", err)
	}
	return found.Header.Revision, nil
}

// Referred returns what all records refer to, at a revision. A record that cannot be read
// is an error: what it refers to is not known.
func (s *Source) Referred(ctx context.Context, revision int64) (Set, error) {
	referred := Set{}
	err := s.Each(ctx, revision, func(kv *mvccpb.KeyValue) error {
		roots, err := s.Decode(string(kv.Key), kv.Value)
		if err != nil {
			return err
		}
		referred.Add(string(kv.Key), roots...)
		return nil
	})
	return referred, err
}

// Decode returns what one record refers to.
func (s *Source) Decode(key string, record []byte) ([]string, error) {
	return s.decoders.Of(s.keys, key, record)
}

// Each calls a function with every record but those of packs, at a revision, in the order
// of their keys. It ends at the first error.
func (s *Source) Each(ctx context.Context, revision int64, do func(*mvccpb.KeyValue) error) error {
	packs, all := s.keys.Packs(), s.keys.All()
	if err := s.between(ctx, all, packs, revision, page, do); err != nil {
		return err
	}
	return s.between(ctx, clientv3.GetPrefixRangeEnd(packs), clientv3.GetPrefixRangeEnd(all), revision, page, do)
}

// EachPackRecord calls a function with every record of a pack and every part of one, at a
// revision, in the order of their keys. It ends at the first error.
func (s *Source) EachPackRecord(ctx context.Context, revision int64, do func(*mvccpb.KeyValue) error) error {
	return s.between(ctx, s.keys.Packs(), clientv3.GetPrefixRangeEnd(s.keys.Packs()), revision, page, do)
}

// EachPackKey is EachPackRecord without values.
func (s *Source) EachPackKey(ctx context.Context, revision int64, do func(*mvccpb.KeyValue) error) error {
	return s.between(ctx, s.keys.Packs(), clientv3.GetPrefixRangeEnd(s.keys.Packs()), revision, keyPage, do, clientv3.WithKeysOnly())
}

// EachPack calls a function with the records of packs, as they are now, in the order of the
// roots. It reads no other parts of them, and leaves out what is not there. It ends at the
// first error.
func (s *Source) EachPack(ctx context.Context, roots []string, do func(root string, kv *mvccpb.KeyValue) error) error {
	limit := firstPage
	for len(roots) > 0 {
		some := roots[:min(limit, len(roots))]
		roots = roots[len(some):]
		var gets []clientv3.Op
		for _, root := range some {
			gets = append(gets, clientv3.OpGet(s.keys.Pack(root)))
		}
		found, err := s.kv.Txn(ctx).Then(gets...).Commit()
		if err != nil {
			return fmt.Errorf("reading the records of %d packs from %s on: %w", len(some), some[0], err)
		}
		bytes := 0
		for i, root := range some {
			for _, kv := range found.Responses[i].GetResponseRange().Kvs {
				if err := do(root, kv); err != nil {
					return err
				}
				bytes += len(kv.Value)
			}
		}
		limit = nextPage(limit, page, bytes)
	}
	return nil
}

// nextPage is how many records are read next, when so many had so many bytes.
func nextPage[N int | int64](limit, most N, bytes int) N {
	switch {
	case bytes > pageBytes:
		return max(1, limit/2)
	case bytes < pageBytes/4:
		return min(most, limit*4)
	default:
		return limit
	}
}

func (s *Source) between(ctx context.Context, from, end string, revision, most int64, do func(*mvccpb.KeyValue) error, options ...clientv3.OpOption) error {
	limit := min(most, firstPage)
	for {
		found, err := s.kv.Get(ctx, from, append(slices.Clone(options), clientv3.WithRange(end), clientv3.WithRev(revision), clientv3.WithLimit(limit))...)
		if err != nil {
			if revision == 0 {
				return fmt.Errorf("reading records from %s on: %w", from, err)
			}
			return fmt.Errorf("reading records from %s on, as they were at etcd revision %d: %w", from, revision, err)
		}
		bytes := 0
		for _, kv := range found.Kvs {
			if err := do(kv); err != nil {
				return err
			}
			bytes += len(kv.Value)
			from = string(kv.Key) + "\x00"
		}
		if !found.More || len(found.Kvs) == 0 {
			return nil
		}
		limit = nextPage(limit, most, bytes)
	}
}
