package archive

// Limits bound the cost of reading an archive.
type Limits struct {
	// Bytes bounds the decompressed size of all entries together.
	Bytes int64
	// Chains bounds the chains of an archive.
	Chains int
	// Revisions bounds the revisions of a chain.
	Revisions int
	// Rows bounds the rows of a chain's history.
	Rows int
	// RecordBytes bounds a chain, or a revision without its manifests.
	RecordBytes int64
	// ManifestBytes bounds the manifests file of a revision.
	ManifestBytes int64
}

// DefaultLimits returns limits far above the content of real stores, and far below the memory of a
// process.
func DefaultLimits() Limits {
	return Limits{
		Bytes:         64 << 30,
		Chains:        10000,
		Revisions:     500,
		Rows:          200,
		RecordBytes:   2 << 20,
		ManifestBytes: 20 << 20,
	}
}

const (
	// maxNameLength bounds the name of a chain. Up to this length, the name of every entry fits
	// into the plain header of a tar file.
	maxNameLength = 52
	// maxHeaderBytes bounds the header of an entry in a tar file, with the rest of the previous
	// block. Headers of Penstock's archives have 512 bytes. In other archives, any number of
	// extended headers, of a MiB each, may precede it.
	maxHeaderBytes = 16 << 10
	// maxWindow bounds the memory of the decompressor. Penstock's archives need 8 MiB.
	maxWindow = 32 << 20
	// maxValues bounds the memory for decoding one manifest. It depends on the number of values
	// more than on the length: about 128 bytes for each value. The largest real manifests,
	// CustomResourceDefinitions, have 50,000.
	maxValues = 1 << 20
)

// maxSumsBytes returns the limit for the checksums: a line of about 140 bytes for every entry.
func (l Limits) maxSumsBytes() int64 {
	const entries, lineBytes = 1 << 17, 160
	return entries * lineBytes
}
