package chunked

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/source/helm"
)

// MissingError reports that an index names a Secret that does not exist, because an update of the
// release was interrupted. The release itself exists.
type MissingError struct {
	// Namespace and Index name the index Secret. Chunk is the missing Secret.
	Namespace, Index, Chunk string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("Secret %[1]s/%[2]s has a part of its release in Secret %[1]s/%[3]s, which does not exist: writing it was interrupted", e.Namespace, e.Index, e.Chunk)
}

// ErrNoIndex reports that a Secret is not the index of a release.
var ErrNoIndex = errors.New("it is not an index of a release")

// Names returns the names of the index's other Secrets, in order.
func Names(index *corev1.Secret) ([]string, error) {
	if index.Type != IndexType {
		return nil, fmt.Errorf("reading the Secret %s/%s of type %q: %w: want type %s", index.Namespace, index.Name, index.Type, ErrNoIndex, IndexType)
	}
	var names []string
	if raw := index.Data[NamesKey]; len(raw) > 0 {
		if err := json.Unmarshal(raw, &names); err != nil {
			return nil, fmt.Errorf("reading %s of the Secret %s/%s: want a list of names: %w", NamesKey, index.Namespace, index.Name, err)
		}
	}
	if len(names) >= MostPieces {
		return nil, fmt.Errorf("the Secret %s/%s names %d other Secrets, and at most %d are allowed", index.Namespace, index.Name, len(names), MostPieces-1)
	}
	return names, nil
}

// Decode decodes the release of an index. find returns a Secret of the same namespace by its name;
// nil if it does not exist.
func Decode(index *corev1.Secret, find func(name string) (*corev1.Secret, error)) (helm.Release, error) {
	packed, err := Packed(index, find)
	if err != nil {
		return helm.Release{}, err
	}
	release, err := helm.DecodeJSON(packed)
	if err != nil {
		return helm.Release{}, fmt.Errorf("the Secret %s/%s: %w", index.Namespace, index.Name, err)
	}
	return release, nil
}

// Packed returns the joined chunks of a release, still compressed. find is the same as for Decode.
func Packed(index *corev1.Secret, find func(name string) (*corev1.Secret, error)) ([]byte, error) {
	names, err := Names(index)
	if err != nil {
		return nil, err
	}
	packed := append([]byte(nil), index.Data[DataKey]...)
	for _, name := range names {
		chunk, err := find(name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading the Secret %s/%s: %w", index.Namespace, name, err)
		case chunk == nil:
			return nil, &MissingError{Namespace: index.Namespace, Index: index.Name, Chunk: name}
		case chunk.Type != ChunkType:
			return nil, fmt.Errorf("the Secret %s/%s has type %q, want %s", index.Namespace, name, chunk.Type, ChunkType)
		}
		packed = append(packed, chunk.Data[DataKey]...)
	}
	return packed, nil
}
