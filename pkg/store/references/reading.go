package references

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

const (
	// packPage bounds the pack records in one read, like the default of a store.Range.
	packPage = 40
	// keyPage bounds the keys in one read.
	keyPage = 5000
)

// Source reads the records of a store at one revision of etcd. At revision 0, each page is read at
// the current revision. The result then includes every record that exists during the whole read,
// even if etcd compacts meanwhile.
type Source struct {
	kv       clientv3.KV
	keys     store.Keys
	decoders Decoders
}

// NewSource returns a source of the records below an etcd prefix.
func NewSource(kv clientv3.KV, prefix string, decoders Decoders) *Source {
	return &Source{kv: kv, keys: store.NewKeys(prefix), decoders: decoders}
}

// Keys returns the layout of the store.
func (s *Source) Keys() store.Keys { return s.keys }

// Revision returns the current revision of etcd, after all acknowledged writes.
func (s *Source) Revision(ctx context.Context) (int64, error) {
	found, err := s.kv.Get(ctx, s.keys.Identity(), clientv3.WithKeysOnly())
	if err != nil {
		return 0, fmt.Errorf("reading the revision of etcd: %w", err)
	}
	return found.Header.Revision, nil
}

// Referred returns the packs that records refer to, at a revision. An unreadable record is an
// error, because its references are unknown.
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

// Decode returns the references of one record.
func (s *Source) Decode(key string, record []byte) ([]string, error) {
	return s.decoders.Of(s.keys, key, record)
}

// Each calls a function with every record except packs, at a revision, sorted by key. It ends at
// the first error.
func (s *Source) Each(ctx context.Context, revision int64, do func(*mvccpb.KeyValue) error) error {
	all, packs := store.Below(s.keys.All()), store.Below(s.keys.Packs())
	if err := (store.Range{From: all.From, End: packs.From, Revision: revision}).Each(ctx, s.kv, do); err != nil {
		return err
	}
	return store.Range{From: packs.End, End: all.End, Revision: revision}.Each(ctx, s.kv, do)
}

// EachPackRecord calls a function with every record of a pack or of its parts, at a revision,
// sorted by key. It ends at the first error.
func (s *Source) EachPackRecord(ctx context.Context, revision int64, do func(*mvccpb.KeyValue) error) error {
	packs := store.Below(s.keys.Packs())
	packs.Revision = revision
	return packs.Each(ctx, s.kv, do)
}

// EachPackKey works like EachPackRecord, without values.
func (s *Source) EachPackKey(ctx context.Context, revision int64, do func(*mvccpb.KeyValue) error) error {
	packs := store.Below(s.keys.Packs())
	packs.Revision, packs.Most, packs.KeysOnly = revision, keyPage, true
	return packs.Each(ctx, s.kv, do)
}

// EachPack calls a function with the current records of packs, sorted by root. It does not read
// their chunks, and skips missing packs. It ends at the first error.
func (s *Source) EachPack(ctx context.Context, roots []string, do func(root string, kv *mvccpb.KeyValue) error) error {
	limit := store.FirstPage
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
		limit = store.NextPage(limit, packPage, bytes)
	}
	return nil
}
