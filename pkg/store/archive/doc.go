// Package archive is the file that moves chains from one store to another: revisions with their
// manifests, and the history. It knows only the format, and neither the API, nor rights, nor a
// store.
//
// An archive is a tar file in one zstd frame, so ordinary tools can read it. Its entries are, in
// exactly this order:
//
//	penstock.json                            which format this is
//	chains/<chain>/chain.json                a Chain; chains by name
//	chains/<chain>/<number>/revision.json    a Revision; the newest first
//	chains/<chain>/<number>/manifests.jsonl  its manifests, one a line
//	SHA256SUMS                               a checksum of every entry before it
//
// Equal content gives equal bytes. Both directions are streams that hold one revision in memory at
// a time.
//
// Readers do not trust an archive. They write nothing of it to a file system, bound every size
// before they allocate memory, and require exactly these names, and manifests that match their
// digests. The data is complete and undamaged only once Next has returned io.EOF, after the last
// entry.
package archive
