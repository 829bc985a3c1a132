// Package chunked implements the format in which OLM's operator-controller stores Helm releases.
// Each revision has an index Secret with the first chunk of the release and the names of the
// Secrets with the other chunks. The package encodes and decodes such Secrets. It is pure: callers
// access the cluster.
//
// The joined chunks are the gzipped JSON of one release. Unlike Helm's own Secrets, they contain no
// base64.
package chunked

import (
	"encoding/base32"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
)

const (
	// IndexType and ChunkType are the types of index and chunk Secrets.
	IndexType corev1.SecretType = "operatorframework.io/index.v1"
	ChunkType corev1.SecretType = "operatorframework.io/chunk.v1"
	// Owner is the value of LabelOwner on these Secrets. Helm's own Secrets have "helm".
	Owner = "operator-controller"
	// DataKey is the key of a Secret's data that holds its chunk. NamesKey is the key of an index's
	// data with the names of the other Secrets: a JSON list, in order.
	DataKey  = "chunk"
	NamesKey = "extraChunks"
	// PieceBytes is the size of a written chunk. MostPieces limits the chunks of a release,
	// including the chunk in the index.
	PieceBytes = 1016 << 10
	MostPieces = 11
)

// Labels of the Secrets. An index has all of them. A chunk has LabelOwner, LabelKey, LabelType, and
// usually LabelCreatedAt.
const (
	LabelOwner = "owner"
	// LabelKey has the value Key of the release in all its Secrets.
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

// Labels in a release's JSON that identify the bundle operator-controller installed.
const (
	BundleNameLabel      = "olm.operatorframework.io/bundle-name"
	PackageNameLabel     = "olm.operatorframework.io/package-name"
	BundleVersionLabel   = "olm.operatorframework.io/bundle-version"
	BundleReferenceLabel = "olm.operatorframework.io/bundle-reference"
	// BundleReleaseLabel exists only if the bundle has a release.
	BundleReleaseLabel = "olm.operatorframework.io/bundle-release"
)

// Labels on every object of a release that name its ClusterExtension.
const (
	OwnerKindLabel = "olm.operatorframework.io/owner-kind"
	OwnerNameLabel = "olm.operatorframework.io/owner-name"
)

// Key returns the name of the index Secret of a revision.
func Key(release string, version int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, version)
}

// Selector selects the index Secrets of a release, or of all releases if the name is empty.
func Selector(release string) string {
	selector := LabelOwner + "=" + Owner + "," + LabelType + "=" + TypeIndex
	if release != "" {
		selector += "," + LabelName + "=" + release
	}
	return selector
}

// ChunkSelector selects all Secrets of a revision except its index, including Secrets that no index
// names.
func ChunkSelector(key string) string {
	return LabelOwner + "=" + Owner + "," + LabelType + "=" + TypeChunk + "," + LabelKey + "=" + key
}

// alphabet has only characters that Kubernetes allows in names.
var alphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz123456").WithPadding(base32.NoPadding)

// chunkName returns the name of a chunk's Secret, which depends on its content.
func chunkName(key string, piece []byte) string {
	sum := fnv.New64a()
	_, _ = sum.Write(piece) // never fails
	return key + "-" + alphabet.EncodeToString(sum.Sum(nil))
}
