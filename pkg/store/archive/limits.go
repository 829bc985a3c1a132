package archive

// Limits bound the cost of reading an archive.
type Limits struct {
	// Bytes of all entries together, decompressed.
	Bytes int64
	// Chains of an archive.
	Chains int
	// Revisions of a chain.
	Revisions int
	// Rows of a chain's history.
	Rows int
	// RecordBytes is for a chain or a revision without its manifests.
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
	// maxNameLength is that of a chain: with it every name of an entry fits into
	// the plain header of a tar file.
	maxNameLength = 52
	// maxHeaderBytes is for the header of an entry in a tar file, with the rest of the
	// block before it. Ours have 512 bytes. Others may say more of an entry before its
	// header, a MiB each time, as often as they like.
	maxHeaderBytes = 16 << 10
	// maxWindow bounds the memory of the decompressor. Our own archives need 8
	// MiB.
	maxWindow = 32 << 20
	// maxValues bounds the memory that decoding one manifest takes, which follows
	// from its values more than from its length: about 128 bytes each. The largest
	// real ones, definitions of custom resources, have 50,000.
	maxValues = 1 << 20
)

// maxSumsBytes returns the limit for the checksums: a line of about 140 bytes for every entry.
func (l Limits) maxSumsBytes() int64 {
	const entries, lineBytes = 1 << 17, 160
	return entries * lineBytes
}
