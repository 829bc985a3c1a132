// Package pack stores the manifests of a revision: immutable, compressed together, and named by
// their digests. So a revision contains only identities, and equal content is stored once.
//
// A pack is stored whole, or as a delta: compressed with the content of its base, the pack of an
// earlier revision of the same chain. A base is whole and one record, so a read needs at most two
// records. Only the record of a delta names the base; ParseRecord returns the references of a
// record.
//
// A base must not be deleted while a delta names it; Rebase first makes the delta whole. Put writes
// a delta in a transaction that compares the base's key with the value that it read. So if the base
// was deleted meanwhile, no delta is written. A process that deletes a base must compare, in the
// same transaction, the deltas that it has read. A pack that several chains share is whole, or its
// base is a pack of each of them at the time of the write: see PutInChain.
//
// Bytes that do not match their digest never leave this package. They are a *CorruptError; a
// missing pack is a *MissingError. Both are faults of the store, and neither means that the
// revision does not exist.
package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
)

const (
	// DefaultMaxBytes bounds the canonical JSON of all objects of one pack.
	DefaultMaxBytes = 16 << 20
	// ChunkBytes is the size of the parts of a pack that does not fit into one record. etcd accepts
	// requests of 1.5 MiB.
	ChunkBytes = 1 << 20
	// maxChunks bounds the chunks of a pack. The transaction that completes a pack names every
	// chunk, and etcd allows 128 operations.
	maxChunks = 120
	// putAttempts bounds the attempts of Put when other writers change the same pack. Each of these
	// writes makes progress.
	putAttempts = 5
)

// Store reads and writes packs.
type Store struct {
	kv         clientv3.KV
	keys       store.Keys
	digester   manifest.Digester
	maxBytes   int
	chunkBytes int
}

// Option changes a Store.
type Option func(*Store)

// MaxBytes sets the limit of canonical JSON in one pack, in place of DefaultMaxBytes. It bounds
// writes, and the memory of a read.
func MaxBytes(n int) Option {
	return func(s *Store) { s.maxBytes = n }
}

// New returns the packs below an etcd prefix. The digester must have the key of the digests of
// their Secrets.
func New(kv clientv3.KV, prefix string, digester manifest.Digester, options ...Option) *Store {
	s := &Store{
		kv:         kv,
		keys:       store.NewKeys(prefix),
		digester:   digester,
		maxBytes:   DefaultMaxBytes,
		chunkBytes: ChunkBytes,
	}
	for _, option := range options {
		option(s)
	}
	return s
}

// Put stores the objects and returns the root of their pack (see Root). After success, Read returns
// exactly their bytes. The pack is whole.
//
// Putting the same objects again writes nothing. A pack that lacks a part is completed. A pack
// whose bytes do not match their digests is refused with a *CorruptError, and left unchanged for an
// investigation.
//
// The pack may be collected until a record refers to it. Write that record with the conditions of
// store.Referable, and Put the objects again if they fail.
func (s *Store) Put(ctx context.Context, objects []manifest.Object) (string, error) {
	return s.PutInChain(ctx, objects, nil)
}

// PutInChain works like Put, for a revision of a chain. chain lists the packs of the chain's other
// revisions, newest first. The pack may become a delta against one of them. An existing delta
// against a pack that is not in chain is made whole.
func (s *Store) PutInChain(ctx context.Context, objects []manifest.Object, chain []string) (string, error) {
	root, content, err := s.encode(objects)
	if err != nil {
		return "", err
	}
	whole, err := seal(content, s.chunkBytes)
	if err != nil {
		return "", fmt.Errorf("packing %s: %w", root, err)
	}
	if err := s.reserve(ctx, root); err != nil {
		return "", err
	}
	for range putAttempts {
		done, err := s.put(ctx, root, content, whole, chain)
		if err != nil {
			return "", fmt.Errorf("storing pack %s: %w", root, err)
		}
		if done {
			return root, nil
		}
	}
	return "", fmt.Errorf("storing pack %s: other processes changed it %d times meanwhile; try again", root, putAttempts)
}

// put makes one attempt. It returns false if another writer changed the pack meanwhile.
func (s *Store) put(ctx context.Context, root string, content []byte, whole sealed, chain []string) (bool, error) {
	// 1. Keep an existing pack if this chain can read it without other chains.
	stored, err := store.Get(ctx, s.kv, s.keys.Pack(root))
	if err != nil {
		return false, err
	}
	if stored.Exists() {
		present, err := s.content(ctx, root, stored.Bytes)
		if err == nil {
			_, err = s.decode(root, present.content)
		}
		var missing *MissingError
		switch {
		case err == nil && (present.base == "" || slices.Contains(chain, root) || slices.Contains(chain, present.base)):
			return s.keep(ctx, root, stored.ModRevision)
		case err == nil || errors.As(err, &missing):
			// The next attempt checks the written pack.
			_, err := s.write(ctx, root, whole, stored.ModRevision)
			return false, err
		}
		return false, err
	}

	// 2. Write a delta, if that saves enough.
	return s.writeNew(ctx, root, content, whole, chain)
}

// write writes a pack if the last write of its record was at modRevision and the conditions hold.
// It reports whether it did.
func (s *Store) write(ctx context.Context, root string, sealed sealed, modRevision int64, conditions ...clientv3.Cmp) (bool, error) {
	// 1. Write the chunks: without the pack's own key they have no effect.
	for _, chunk := range sealed.chunks {
		key := s.keys.Chunk(root, chunk.digest.String())
		if err := s.putChunk(ctx, root, key, chunk.data); err != nil {
			return false, err
		}
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(key), ">", 0))
	}

	// 2. Write the key of the pack, if the chunks exist.
	_, done, err := store.Swap(ctx, s.kv, s.keys.Pack(root), sealed.record, modRevision, conditions...)
	return done, err
}

// putChunk creates a chunk. The key contains the chunk's digest. So writers with different
// compressors use different keys, and other bytes under the key are damage.
func (s *Store) putChunk(ctx context.Context, root, key string, data []byte) error {
	_, created, err := store.Swap(ctx, s.kv, key, data, 0)
	if err != nil || created {
		return err
	}
	stored, err := store.Get(ctx, s.kv, key)
	if err != nil {
		return err
	}
	// If the chunk is deleted again, the following transaction finds it missing.
	if stored.Exists() && !bytes.Equal(stored.Bytes, data) {
		return &CorruptError{Root: root, Err: fmt.Errorf("%s has other bytes than its name says", key)}
	}
	return nil
}

// Size returns the stored bytes of a pack, without its base. It returns 0 for a pack that does not
// exist.
func (s *Store) Size(ctx context.Context, root string) (int64, error) {
	key := s.keys.Pack(root)
	found, err := store.Get(ctx, s.kv, key)
	if err != nil || !found.Exists() {
		return 0, err
	}
	record, err := ParseRecord(key, found.Bytes)
	if err != nil {
		return 0, err
	}
	if len(record.Chunks) > 0 {
		return int64(len(found.Bytes) + record.StoredBytes), nil
	}
	return int64(len(found.Bytes)), nil
}

// Read returns the bodies of a pack by digest, all verified. They share memory; callers must not
// change them.
func (s *Store) Read(ctx context.Context, root string) (map[manifest.Digest][]byte, error) {
	objects, err := s.Objects(ctx, root)
	if err != nil {
		return nil, err
	}
	bodies := make(map[manifest.Digest][]byte, len(objects))
	for _, object := range objects {
		bodies[object.Digest] = object.JSON
	}
	return bodies, nil
}

// Objects returns the objects of a pack in their order, each content once and verified. They share
// memory; callers must not change them.
func (s *Store) Objects(ctx context.Context, root string) ([]manifest.Object, error) {
	if err := validateRoot(root); err != nil {
		return nil, err
	}
	stored, err := store.Get(ctx, s.kv, s.keys.Pack(root))
	if err != nil {
		return nil, err
	}
	for range putAttempts {
		if !stored.Exists() {
			return nil, &MissingError{Root: root}
		}
		objects, failed := s.open(ctx, root, stored.Bytes)
		if failed == nil || !isDamage(failed) {
			return objects, failed
		}
		// The pack may have been written again since its record was read. Its old base or chunks
		// may have been collected. This is no damage.
		again, err := store.Get(ctx, s.kv, s.keys.Pack(root))
		if err != nil {
			return nil, err
		}
		if again.ModRevision == stored.ModRevision {
			return nil, failed
		}
		stored = again
	}
	return nil, fmt.Errorf("reading pack %s: other processes changed it %d times meanwhile; try again", root, putAttempts)
}

// open reads the other records of a pack and verifies the whole pack.
func (s *Store) open(ctx context.Context, root string, record []byte) ([]manifest.Object, error) {
	read, err := s.content(ctx, root, record)
	if err != nil {
		return nil, err
	}
	return s.decode(root, read.content)
}

// opened is the content of a pack, and the root of its base.
type opened struct {
	content []byte
	base    string
}

// content decompresses a pack. The content is not verified yet.
func (s *Store) content(ctx context.Context, root string, record []byte) (opened, error) {
	header, frame, err := parseRecord(s.keys.Pack(root), record)
	if err != nil {
		return opened{}, corrupt(root, err)
	}
	if header.base != nil {
		content, err := s.openDelta(ctx, root, header, frame)
		return opened{content: content, base: header.base.name()}, err
	}
	if len(header.chunks) > 0 {
		if frame, err = s.chunks(ctx, root, header); err != nil {
			return opened{}, err
		}
	}
	content, err := header.open(frame, nil, s.maxContentBytes())
	if err != nil {
		return opened{}, corrupt(root, err)
	}
	return opened{content: content}, nil
}

// chunks reads and joins the chunks of a pack.
func (s *Store) chunks(ctx context.Context, root string, header header) ([]byte, error) {
	var frame []byte
	for _, digest := range header.chunks {
		key := s.keys.Chunk(root, digest.String())
		chunk, err := store.Get(ctx, s.kv, key)
		switch {
		case err != nil:
			return nil, err
		case !chunk.Exists():
			return nil, &MissingError{Root: root, Key: key}
		case sum(chunk.Bytes) != digest:
			return nil, corrupt(root, fmt.Errorf("%s has other bytes than its name says", key))
		}
		frame = append(frame, chunk.Bytes...)
	}
	return frame, nil
}

// Roots lists all packs, sorted. It does not read them.
func (s *Store) Roots(ctx context.Context) ([]string, error) {
	response, err := s.kv.Get(ctx, s.keys.Packs(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, fmt.Errorf("listing packs: %w", err)
	}
	var roots []string
	for _, kv := range response.Kvs {
		if root, ok := s.keys.PackRoot(string(kv.Key)); ok {
			roots = append(roots, root)
		}
	}
	slices.Sort(roots)
	return roots, nil
}
