// Package content keeps the whole content of catalogs on disk, as clients of OLM's catalogd read
// it: all documents as JSON lines, plain and compressed, and a table of their positions. In memory
// it has only open files.
//
// Package index has the part of a catalog that the resolver needs.
package content
