// Package pack keeps the manifests of a revision: immutable, compressed
// together, and named by their digests, so that a revision needs to carry
// identities only and the same content is stored once.
//
// Bytes that do not match their digest never leave this package. They are a
// *CorruptError; a pack that is not there is a *MissingError. Both are faults of
// the store, and neither means that the revision does not exist.
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
	// ChunkBytes is the size of the parts of a pack that does not fit into one
	// record. etcd takes requests of 1.5 MiB.
	ChunkBytes = 1 << 20
	// maxChunks keeps the transaction that completes a pack, which names every
	// chunk, below the 128 operations that etcd allows.
	maxChunks = 120
	// putAttempts is how often Put starts over because another writer of the
	// same pack came in between. Each of them makes progress.
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

// MaxBytes sets how many bytes of canonical JSON one pack may hold, in place of
// DefaultMaxBytes. It bounds writes, and the memory that a read needs.
func MaxBytes(n int) Option {
	return func(s *Store) { s.maxBytes = n }
}

// New returns the packs below an etcd prefix. The digester must have the key
// that the Secrets in them were digested with.
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

// Put stores the objects and returns the root of their pack (see Root). When it
// returns without an error, Read returns exactly their bytes.
//
// The same objects again write nothing. A pack that lacks a part is completed. A
// pack whose bytes do not match their digests is refused with a *CorruptError
// and left as it is, for somebody to see what happened to it.
func (s *Store) Put(ctx context.Context, objects []manifest.Object) (string, error) {
	root, content, err := s.encode(objects)
	if err != nil {
		return "", err
	}
	sealed, err := seal(content, s.chunkBytes)
	if err != nil {
		return "", fmt.Errorf("packing %s: %w", root, err)
	}
	for range putAttempts {
		done, err := s.put(ctx, root, sealed)
		if err != nil {
			return "", fmt.Errorf("storing pack %s: %w", root, err)
		}
		if done {
			return root, nil
		}
	}
	return "", fmt.Errorf("storing pack %s: others changed it %d times meanwhile; try again", root, putAttempts)
}

// put makes one attempt. It returns false when another writer came in between.
func (s *Store) put(ctx context.Context, root string, sealed sealed) (bool, error) {
	// 1. What is there is kept when it is whole.
	stored, err := store.Get(ctx, s.kv, s.keys.Pack(root))
	if err != nil {
		return false, err
	}
	if stored.Exists() {
		var missing *MissingError
		if _, err := s.open(ctx, root, stored.Bytes); err == nil {
			return true, nil
		} else if !errors.As(err, &missing) {
			return false, err
		}
	}

	// 2. Chunks first: without the pack's own key they are nothing.
	var present []clientv3.Cmp
	for _, chunk := range sealed.chunks {
		key := s.keys.Chunk(root, chunk.digest.String())
		if err := s.putChunk(ctx, root, key, chunk.data); err != nil {
			return false, err
		}
		present = append(present, clientv3.Compare(clientv3.CreateRevision(key), ">", 0))
	}

	// 3. The key that makes the pack exist, on condition that the chunks do.
	_, done, err := store.Swap(ctx, s.kv, s.keys.Pack(root), sealed.record, stored.ModRevision, present...)
	return done, err
}

// putChunk creates a chunk. The key is named by the chunk's digest, so writers
// whose compressors differ do not meet, and other bytes below it are damage.
func (s *Store) putChunk(ctx context.Context, root, key string, data []byte) error {
	_, created, err := store.Swap(ctx, s.kv, key, data, 0)
	if err != nil || created {
		return err
	}
	stored, err := store.Get(ctx, s.kv, key)
	if err != nil {
		return err
	}
	// One that vanished again is found missing by the transaction behind this.
	if stored.Exists() && !bytes.Equal(stored.Bytes, data) {
		return &CorruptError{Root: root, Err: fmt.Errorf("%s does not have the bytes that it is named by", key)}
	}
	return nil
}

// Read returns the bodies of a pack by digest, every one verified. They share
// memory and must not be changed.
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

// Objects returns the objects of a pack in their order, each content once and
// verified. They share memory and must not be changed.
func (s *Store) Objects(ctx context.Context, root string) ([]manifest.Object, error) {
	if err := validateRoot(root); err != nil {
		return nil, err
	}
	stored, err := store.Get(ctx, s.kv, s.keys.Pack(root))
	if err != nil {
		return nil, err
	}
	if !stored.Exists() {
		return nil, &MissingError{Root: root}
	}
	return s.open(ctx, root, stored.Bytes)
}

// open reads what else belongs to a pack's record and verifies all of it.
func (s *Store) open(ctx context.Context, root string, record []byte) ([]manifest.Object, error) {
	header, frame, err := parseRecord(s.keys.Pack(root), record)
	if err != nil {
		return nil, corrupt(root, err)
	}
	if len(header.chunks) > 0 {
		if frame, err = s.chunks(ctx, root, header); err != nil {
			return nil, err
		}
	}
	content, err := header.open(frame, s.maxContentBytes())
	if err != nil {
		return nil, corrupt(root, err)
	}
	return s.decode(root, content)
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
			return nil, corrupt(root, fmt.Errorf("%s does not have the bytes that it is named by", key))
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
