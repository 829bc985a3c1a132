package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// maxIndexBytes bounds the index of a pack, in bytes of JSON. An index of 4000 objects with the
// longest names takes half of it.
const maxIndexBytes = 4 << 20

// maxContentBytes returns the largest content that encode returns, and that can be read: the length
// of the index, the index, and the bodies.
func (s *Store) maxContentBytes() int {
	return binary.MaxVarintLen64 + maxIndexBytes + s.maxBytes
}

// Root returns the name of the pack of these objects: the digest over their digests, in order, each
// counted once. It is "sha256:" and 64 hexadecimal digits.
func Root(refs []manifest.Ref) string {
	h := sha256.New()
	// Writing to a hash never fails. The first line prevents a root from equalling any other
	// digest.
	_, _ = io.WriteString(h, "penstock pack\n")
	seen := make(map[manifest.Digest]bool, len(refs))
	for _, ref := range refs {
		if !seen[ref.Digest] {
			seen[ref.Digest] = true
			_, _ = fmt.Fprintf(h, "%d:%s\n", len(ref.Digest), ref.Digest)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func validateRoot(root string) error {
	digest := manifest.Digest(root)
	if err := digest.Validate(); err != nil || digest.Keyed() {
		return fmt.Errorf("%q is not the name of a pack: want sha256: and 64 hexadecimal digits", root)
	}
	return nil
}

// indexEntry is one object in a pack's index. The content of a pack is the length of the index as
// uvarint, the index as a JSON array, and the bodies in the same order without separators.
type indexEntry struct {
	Group     string          `json:"group,omitempty"`
	Version   string          `json:"version"`
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name"`
	Digest    manifest.Digest `json:"digest"`
	Size      int             `json:"size"`
}

func (e indexEntry) ref() manifest.Ref {
	return manifest.Ref{
		ID:      manifest.ID{Group: e.Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name},
		Version: e.Version,
		Digest:  e.Digest,
	}
}

// encode returns root and content of the pack of these objects. It refuses objects whose bytes do
// not match their digests, because they could not be read again.
func (s *Store) encode(objects []manifest.Object) (string, []byte, error) {
	index, bodies := []indexEntry{}, [][]byte{}
	refs, size := make([]manifest.Ref, 0, len(objects)), 0
	seen := make(map[manifest.Digest]bool, len(objects))
	for _, o := range objects {
		if err := s.digester.Check(o.Ref, o.JSON); err != nil {
			return "", nil, fmt.Errorf("packing %s: %w", o.ID, err)
		}
		if seen[o.Digest] {
			continue
		}
		seen[o.Digest] = true
		if size += len(o.JSON); size > s.maxBytes {
			return "", nil, &TooLargeError{What: "manifests", Bytes: size, Max: s.maxBytes}
		}
		refs, bodies = append(refs, o.Ref), append(bodies, o.JSON)
		index = append(index, indexEntry{
			Group: o.Group, Version: o.Version, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name,
			Digest: o.Digest, Size: len(o.JSON),
		})
	}
	head, err := json.Marshal(index)
	if err != nil {
		return "", nil, fmt.Errorf("packing: %w", err)
	}
	if len(head) > maxIndexBytes {
		return "", nil, &TooLargeError{What: "identities", Bytes: len(head), Max: maxIndexBytes}
	}
	content := make([]byte, 0, binary.MaxVarintLen64+len(head)+size)
	content = binary.AppendUvarint(content, uint64(len(head)))
	content = append(content, head...)
	content = append(content, bytes.Join(bodies, nil)...)
	return Root(refs), content, nil
}

// decode returns the objects in a pack's content. The objects must be those of the root, and each
// object must match its digest.
func (s *Store) decode(root string, content []byte) ([]manifest.Object, error) {
	objects, err := splitOf(root, content)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		switch err := s.digester.Check(o.Ref, o.JSON); {
		case errors.Is(err, manifest.ErrNoSecretKey):
			return nil, fmt.Errorf("reading pack %s: %w", root, err)
		case err != nil:
			return nil, &CorruptError{Root: root, Digest: o.Digest, Err: err}
		}
	}
	return objects, nil
}

// splitOf splits content into objects, which must be those of the root. It does not verify their
// bytes.
func splitOf(root string, content []byte) ([]manifest.Object, error) {
	objects, err := split(content)
	if err != nil {
		return nil, &CorruptError{Root: root, Err: err}
	}
	refs := make([]manifest.Ref, len(objects))
	for i, o := range objects {
		refs[i] = o.Ref
	}
	if got := Root(refs); got != root {
		return nil, &CorruptError{Root: root, Err: fmt.Errorf("its objects make up pack %s", got)}
	}
	return objects, nil
}

// split splits content into objects without verifying them.
func split(content []byte) ([]manifest.Object, error) {
	length, n := binary.Uvarint(content)
	if n <= 0 || length > uint64(len(content)-n) || length > maxIndexBytes {
		return nil, errors.New("its content does not begin with the length of an index")
	}
	head, bodies := content[n:n+int(length)], content[n+int(length):]

	decoder := json.NewDecoder(bytes.NewReader(head))
	decoder.DisallowUnknownFields()
	if open, err := decoder.Token(); err != nil || open != json.Delim('[') {
		return nil, errors.New("its index is not a JSON array")
	}
	var objects []manifest.Object
	seen := map[manifest.Digest]bool{}
	// Entries are decoded one by one, so that an index of many empty entries ends at the first.
	for decoder.More() {
		var e indexEntry
		if err := decoder.Decode(&e); err != nil {
			return nil, fmt.Errorf("reading its index: %w", err)
		}
		if err := e.Digest.Validate(); err != nil {
			return nil, fmt.Errorf("reading its index: %w", err)
		}
		if seen[e.Digest] {
			return nil, fmt.Errorf("its index has %s twice", e.Digest)
		}
		seen[e.Digest] = true
		if e.Size < 0 || e.Size > len(bodies) {
			return nil, fmt.Errorf("its index gives %s %d bytes, and %d are left", e.ref(), e.Size, len(bodies))
		}
		objects = append(objects, manifest.Object{Ref: e.ref(), JSON: bodies[:e.Size:e.Size]})
		bodies = bodies[e.Size:]
	}
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("reading its index: %w", err)
	}
	if decoder.InputOffset() != int64(len(head)) || len(bodies) > 0 {
		return nil, errors.New("its content continues after the last object")
	}
	return objects, nil
}
