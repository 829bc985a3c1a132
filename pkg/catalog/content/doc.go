// Package content keeps the whole content of catalogs on disk, for clients of OLM's catalogd: all
// documents as JSON lines, plain and compressed, and a table of their positions. In memory it has
// only open files.
//
// Package index keeps the part of a catalog that the resolver needs.
package content
