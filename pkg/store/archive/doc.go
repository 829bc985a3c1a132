// Package archive is the file in which chains travel from one store to another:
// revisions with their manifests, and the history. It knows the form and nothing
// else: neither the API, nor who may read or write what, nor a store.
//
// An archive is a tar file in one zstd frame, so that a person can look into it
// with ordinary tools. Its entries are, in this order and no other:
//
//	penstock.json                            which format this is
//	chains/<chain>/chain.json                a Chain; chains by name
//	chains/<chain>/<number>/revision.json    a Revision; the newest first
//	chains/<chain>/<number>/manifests.jsonl  its manifests, one a line
//	SHA256SUMS                               a checksum of every entry before it
//
// The same content gives the same bytes. Both directions are streams that hold
// one revision in memory at a time.
//
// Readers do not trust an archive: nothing of it is written to a file
// system, every size is bounded before it is allocated, names must be exactly
// those above, and manifests must have their digests. The last entry comes last
// for a reason: what was read is complete and undamaged only when Next has
// returned io.EOF.
package archive
