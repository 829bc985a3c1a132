// Package archive defines the file that moves chains from one store to another: revisions with
// their manifests, and the history. It knows only the format. It knows neither the API, nor rights,
// nor a store.
//
// An archive is a tar file in one zstd frame, so ordinary tools can read it. Its entries are, in
// exactly this order:
//
//	penstock.json                            the format of the archive
//	chains/<chain>/chain.json                a Chain; chains by name
//	chains/<chain>/<number>/revision.json    a Revision; newest first
//	chains/<chain>/<number>/manifests.jsonl  its manifests, one on each line
//	SHA256SUMS                               a checksum of every entry before it
//
// Equal content gives equal bytes. Reading and writing are streams that hold one revision in memory
// at a time.
//
// Readers do not trust an archive. They write nothing of it to a file system, and bound every size
// before they allocate memory. They require exactly these names, and manifests that match their
// digests. The data is complete and undamaged only after Next has returned io.EOF, after the last
// entry.
package archive
