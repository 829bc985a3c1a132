// Package chunked is the format in which OLM's operator-controller stores Helm releases: an index
// Secret for each revision, with the first piece of the release and the names of the Secrets with
// the other pieces. It has the names, labels and pieces, for readers and writers of such Secrets.
// It is pure: callers access the cluster.
//
// The joined pieces are the gzipped JSON of one release. Unlike Helm's own Secrets, they have no
// base64 inside.
package chunked

import (
	"encoding/base32"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
)

const (
	// IndexType and ChunkType are the types of the two kinds of Secrets.
	IndexType corev1.SecretType = "operatorframework.io/index.v1"
	ChunkType corev1.SecretType = "operatorframework.io/chunk.v1"
	// Owner is the value of LabelOwner on all these Secrets. Helm's own Secrets have "helm".
	Owner = "operator-controller"
	// DataKey is the key of a Secret's data that holds its chunk. NamesKey is the key of an index's
	// data with the names of the other Secrets: a JSON list, in order.
	DataKey  = "chunk"
	NamesKey = "extraChunks"
	// PieceBytes is the size of a written chunk. MostPieces bounds the chunks of a release,
	// including the chunk in the index.
	PieceBytes = 1016 << 10
	MostPieces = 11
)

// Labels of the Secrets. An index has all of them; a chunk has LabelOwner, LabelKey,
// LabelType, and mostly LabelCreatedAt.
const (
	LabelOwner = "owner"
	// LabelKey is Key of the release, in all its Secrets.
	LabelKey = "key"
	// LabelType is TypeIndex or TypeChunk.
	LabelType = "type"
	// LabelName, LabelVersion and LabelStatus hold the release's name, version and status.
	LabelName    = "name"
	LabelVersion = "version"
	LabelStatus  = "status"
	// LabelCreatedAt and LabelModifiedAt are in Unix seconds.
	LabelCreatedAt  = "createdAt"
	LabelModifiedAt = "modifiedAt"

	TypeIndex = "index"
	TypeChunk = "chunk"
)

// Labels of a release, in its JSON, by which operator-controller knows what it installed.
const (
	BundleNameLabel      = "olm.operatorframework.io/bundle-name"
	PackageNameLabel     = "olm.operatorframework.io/package-name"
	BundleVersionLabel   = "olm.operatorframework.io/bundle-version"
	BundleReferenceLabel = "olm.operatorframework.io/bundle-reference"
	// BundleReleaseLabel is there when the bundle has a release.
	BundleReleaseLabel = "olm.operatorframework.io/bundle-release"
)

// Labels of every object of a release, by which it belongs to a ClusterExtension.
const (
	OwnerKindLabel = "olm.operatorframework.io/owner-kind"
	OwnerNameLabel = "olm.operatorframework.io/owner-name"
)

// Key is the name of the index Secret of one revision of a release.
func Key(release string, version int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, version)
}

// Selector finds the index Secrets of a release by their labels, or of all releases when the
// name is empty.
func Selector(release string) string {
	selector := LabelOwner + "=" + Owner + "," + LabelType + "=" + TypeIndex
	if release != "" {
		selector += "," + LabelName + "=" + release
	}
	return selector
}

// ChunkSelector returns the selector of all Secrets of a revision except its index, including
// Secrets that no index names.
func ChunkSelector(key string) string {
	return LabelOwner + "=" + Owner + "," + LabelType + "=" + TypeChunk + "," + LabelKey + "=" + key
}

// alphabet makes names that Kubernetes accepts.
var alphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz123456").WithPadding(base32.NoPadding)

// chunkName is the name of the Secret of a piece: by its content.
func chunkName(key string, piece []byte) string {
	sum := fnv.New64a()
	_, _ = sum.Write(piece) // which never fails
	return key + "-" + alphabet.EncodeToString(sum.Sum(nil))
}
