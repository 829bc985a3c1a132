package pack

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

const (
	// maxDeltaContent bounds the content of a delta, and of its base, in bytes. Both fit into one
	// window of the compressor. Reading them takes less memory than the largest whole pack.
	maxDeltaContent = 4 << 20
	// maxDistance is the number of consecutive deltas against one base. Deltas grow with the
	// distance from their base. A chain keeps the same number of archived revisions, so an old base
	// is deleted soon after the next base is stored.
	maxDistance = 5
	// maxLooked bounds the packs of a chain that are examined to find a base.
	maxLooked = 3
)

// found is a base that was read: whole, verified, and in one record.
type found struct {
	base
	content []byte
	// modRevision is that of the record when it was read.
	modRevision int64
}

// findBase returns the base for a new pack of a chain: the nearest pack of the chain, or the base
// of that pack, so that a base is always whole. It returns nil if there is no base: then the pack
// is stored whole. Unreadable packs are skipped.
func (s *Store) findBase(ctx context.Context, root string, chain []string) (*found, error) {
	looked := 0
	for _, earlier := range chain {
		if earlier == root || looked == maxLooked {
			continue
		}
		looked++
		candidate, distance := earlier, 1
		stored, err := store.Get(ctx, s.kv, s.keys.Pack(candidate))
		if err != nil {
			return nil, err
		}
		record, err := ParseRecord(s.keys.Pack(candidate), stored.Bytes)
		if err == nil && record.Base != "" {
			candidate, distance = record.Base, record.Distance+1
		}
		if err != nil || candidate == root {
			continue
		}
		if distance > maxDistance {
			return nil, nil
		}
		b, err := s.readBase(ctx, candidate)
		if err == nil {
			// Skip a damaged base: a delta against it could never be repaired.
			_, err = s.decode(candidate, b.content)
		}
		if isDamage(err) || errors.Is(err, errNoBase) {
			continue
		}
		if err != nil {
			return nil, err
		}
		b.distance = distance
		return b, nil
	}
	return nil, nil
}

// errNoBase reports that a pack is too large to be a base, or is itself a delta.
var errNoBase = errors.New("it is not whole in one record")

// readBase reads a pack that may be a base.
func (s *Store) readBase(ctx context.Context, root string) (*found, error) {
	stored, err := store.Get(ctx, s.kv, s.keys.Pack(root))
	if err != nil {
		return nil, err
	}
	if !stored.Exists() {
		return nil, &MissingError{Root: root}
	}
	h, frame, err := parseRecord(s.keys.Pack(root), stored.Bytes)
	if err != nil {
		return nil, corrupt(root, err)
	}
	if h.base != nil || len(h.chunks) > 0 || h.contentLen > maxDeltaContent {
		return nil, errNoBase
	}
	content, err := h.open(frame, nil, maxDeltaContent)
	if err != nil {
		return nil, corrupt(root, err)
	}
	if _, err := splitOf(root, content); err != nil {
		return nil, err
	}
	name, err := rootSum(root)
	if err != nil {
		return nil, err
	}
	return &found{base: base{root: name, content: sum(content)}, content: content, modRevision: stored.ModRevision}, nil
}

// openDelta returns the content of a delta.
func (s *Store) openDelta(ctx context.Context, root string, h header, frame []byte) ([]byte, error) {
	if h.contentLen > maxDeltaContent {
		return nil, corrupt(root, fmt.Errorf("its header says %d bytes of content: %w", h.contentLen, store.ErrTooLarge))
	}
	b, err := s.readBase(ctx, h.base.name())
	var missing *MissingError
	switch {
	case errors.As(err, &missing):
		return nil, &MissingError{Root: root, Base: h.base.name()}
	case errors.As(err, new(*CorruptError)) || errors.Is(err, errNoBase):
		return nil, &CorruptError{Root: root, Base: h.base.name(), Err: err}
	case err != nil:
		return nil, err
	case b.base.content != h.base.content:
		return nil, &CorruptError{Root: root, Base: h.base.name(), Err: fmt.Errorf("its content has checksum %s, want %s", b.base.content, h.base.content)}
	}
	content, err := h.open(frame, b.content, maxDeltaContent)
	if err != nil {
		return nil, corrupt(root, err)
	}
	return content, nil
}

// sealDelta returns the record of a delta of content, or nil if a delta saves too little.
func sealDelta(content []byte, b *found, whole sealed) ([]byte, error) {
	if b == nil || len(content) > maxDeltaContent {
		return nil, nil
	}
	frame, err := store.CompressWith(b.content, content)
	if err != nil {
		return nil, err
	}
	h := header{frame: sum(frame), contentLen: len(content), compLen: len(frame), base: &b.base}
	body := append(h.encode(), frame...)
	// A delta must be one record; a whole pack may have several.
	if len(body) > packFormat().Limit {
		return nil, nil
	}
	record, err := packFormat().Wrap(body)
	if err != nil {
		return nil, err
	}
	size := len(whole.record)
	for _, c := range whole.chunks {
		size += len(c.data)
	}
	// A delta that saves less than a third is not worth reading a second record.
	if len(record)*3 > size*2 {
		return nil, nil
	}
	return record, nil
}

// Rebase makes a delta whole, so that it no longer needs its base. Its content stays the same.
// Rebase reports whether it wrote; a whole pack stays unchanged. It reads again if another process
// writes the pack meanwhile.
//
// The errors are the same as those of Objects: without its base, a delta cannot be made whole.
func (s *Store) Rebase(ctx context.Context, root string) (bool, error) {
	return s.rebase(ctx, root, func(read opened, modRevision int64) (bool, error) {
		whole, err := seal(read.content, s.chunkBytes)
		if err != nil {
			return false, err
		}
		return s.write(ctx, root, whole, modRevision)
	})
}

// RebaseOnto encodes a delta again, against the pack onto. Every chain that has the delta must also
// have onto. It returns true if the delta no longer needs its old base. If the new delta would save
// less than a third, or if onto cannot be a base, it writes nothing and returns false. Otherwise it
// works like Rebase.
func (s *Store) RebaseOnto(ctx context.Context, root, onto string) (bool, error) {
	return s.rebase(ctx, root, func(read opened, modRevision int64) (bool, error) {
		if onto == root || onto == read.base {
			return false, errLeft
		}
		whole, err := seal(read.content, s.chunkBytes)
		if err != nil {
			return false, err
		}
		b, err := s.readBase(ctx, onto)
		if err == nil {
			_, err = s.decode(onto, b.content)
		}
		if isDamage(err) || errors.Is(err, errNoBase) {
			return false, errLeft
		}
		if err != nil {
			return false, err
		}
		b.distance = 1
		delta, err := sealDelta(read.content, b, whole)
		if err == nil && delta == nil {
			err = errLeft
		}
		if err != nil {
			return false, err
		}
		return s.writeDelta(ctx, root, delta, modRevision, b)
	})
}

// errLeft reports that a pack is better left unchanged.
var errLeft = errors.New("the pack stays as it is")

// rebase reads a delta, and calls write with it. It reads again if the delta has changed meanwhile.
func (s *Store) rebase(ctx context.Context, root string, write func(read opened, modRevision int64) (bool, error)) (bool, error) {
	if err := validateRoot(root); err != nil {
		return false, err
	}
	for range putAttempts {
		stored, err := store.Get(ctx, s.kv, s.keys.Pack(root))
		if err != nil {
			return false, err
		}
		if !stored.Exists() {
			return false, &MissingError{Root: root}
		}
		read, err := s.content(ctx, root, stored.Bytes)
		if err != nil || read.base == "" {
			return false, err
		}
		if _, err := s.decode(root, read.content); err != nil {
			return false, err
		}
		switch done, err := write(read, stored.ModRevision); {
		case errors.Is(err, errLeft):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("rebasing pack %s: %w", root, err)
		case done:
			return true, nil
		}
	}
	return false, fmt.Errorf("rebasing pack %s: other processes changed it %d times meanwhile; try again", root, putAttempts)
}

// writeNew writes a new pack: as a delta if that saves enough, and whole otherwise.
func (s *Store) writeNew(ctx context.Context, root string, content []byte, whole sealed, chain []string) (bool, error) {
	b, err := s.findBase(ctx, root, chain)
	if err != nil {
		return false, err
	}
	delta, err := sealDelta(content, b, whole)
	if err != nil {
		return false, err
	}
	if delta == nil {
		return s.write(ctx, root, whole, 0)
	}
	return s.writeDelta(ctx, root, delta, 0, b)
}

// writeDelta writes a delta if its base is unchanged since it was read. It also removes the base's
// candidate key.
func (s *Store) writeDelta(ctx context.Context, root string, delta []byte, modRevision int64, b *found) (bool, error) {
	if kept, err := s.keep(ctx, b.name(), b.modRevision); !kept {
		return false, err
	}
	return s.write(ctx, root, sealed{record: delta}, modRevision, append(store.Referable(s.keys, b.name()), s.unchanged(b))...)
}

// unchanged returns the condition that a base is unchanged since it was read.
func (s *Store) unchanged(b *found) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(s.keys.Pack(b.name())), "=", b.modRevision)
}

const rootPrefix = "sha256:"

// rootSum returns the checksum in the name of a pack.
func rootSum(root string) (checksum, error) {
	var c checksum
	if err := validateRoot(root); err != nil {
		return c, err
	}
	_, err := hex.Decode(c[:], []byte(strings.TrimPrefix(root, rootPrefix)))
	return c, err
}

// isDamage reports whether an error is about unreadable stored data.
func isDamage(err error) bool {
	return errors.As(err, new(*CorruptError)) || errors.As(err, new(*MissingError)) || errors.As(err, new(*store.FormatError))
}
