package chunked

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Options are the properties of the Secrets, without the release.
type Options struct {
	// Namespace is the namespace of the Secrets: operator-controller's, not the release's.
	Namespace string
	// Name, Version and Status are the release's.
	Name    string
	Version int
	Status  string
	// Owners are the owners of the index: the ClusterExtension, as controller.
	Owners []metav1.OwnerReference
	// CreatedAt is the time of the first write. ModifiedAt is the time of an update; zero if there
	// was none.
	CreatedAt, ModifiedAt time.Time
	// PieceBytes is the size of a chunk; 0 uses the constant PieceBytes. Readers accept any size.
	PieceBytes int
}

// Encode returns the Secrets for a release's JSON. Chunks have no owner yet, because the uid of the
// index is unknown before its write (see OwnedBy). A caller that replaces a release deletes its
// chunks by ChunkSelector, then writes the index, and then the new chunks.
func Encode(release []byte, options Options) (index *corev1.Secret, chunks []*corev1.Secret, err error) {
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, nil, err
	}
	if _, err := writer.Write(append(bytes.TrimRight(release, "\n"), '\n')); err != nil {
		return nil, nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, nil, err
	}
	size := options.PieceBytes
	if size == 0 {
		size = PieceBytes
	}
	key := Key(options.Name, options.Version)
	if most := size * MostPieces; packed.Len() > most {
		return nil, nil, fmt.Errorf("the release %s has %d bytes when it is compressed, and at most %d are allowed", key, packed.Len(), most)
	}
	first := packed.Next(size)
	names := []string{}
	for packed.Len() > 0 {
		piece := bytes.Clone(packed.Next(size))
		chunk := options.chunk(key, piece)
		names, chunks = append(names, chunk.Name), append(chunks, chunk)
	}
	listed, err := json.Marshal(names)
	if err != nil {
		return nil, nil, err
	}
	index = options.index(key)
	index.Data = map[string][]byte{DataKey: bytes.Clone(first), NamesKey: listed}
	return index, chunks, nil
}

func (o Options) index(key string) *corev1.Secret {
	index := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: key, Namespace: o.Namespace, OwnerReferences: o.Owners, Labels: map[string]string{
			LabelOwner: Owner, LabelKey: key, LabelType: TypeIndex, LabelName: o.Name, LabelVersion: strconv.Itoa(o.Version), LabelStatus: o.Status,
		}},
		Immutable: ptr.To(false), Type: IndexType,
	}
	stamp(index, LabelCreatedAt, o.CreatedAt)
	stamp(index, LabelModifiedAt, o.ModifiedAt)
	return index
}

func (o Options) chunk(key string, piece []byte) *corev1.Secret {
	chunk := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: chunkName(key, piece), Namespace: o.Namespace, Labels: map[string]string{
			LabelOwner: Owner, LabelKey: key, LabelType: TypeChunk,
		}},
		Immutable: ptr.To(true), Type: ChunkType, Data: map[string][]byte{DataKey: piece},
	}
	if o.ModifiedAt.IsZero() {
		stamp(chunk, LabelCreatedAt, o.CreatedAt)
	}
	return chunk
}

func stamp(secret *corev1.Secret, label string, at time.Time) {
	if !at.IsZero() {
		secret.Labels[label] = strconv.FormatInt(at.Unix(), 10)
	}
}

// OwnedBy makes the index the owner of a chunk. Call it after the write of the index, when its uid
// is known.
func OwnedBy(chunk *corev1.Secret, name string, uid types.UID) {
	chunk.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Secret", Name: name, UID: uid, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(false),
	}}
}
