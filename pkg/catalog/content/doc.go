// Package content keeps the whole content of catalogs on disk, as clients of OLM's catalogd
// read it: all documents as JSON lines, plain and compressed, and a table of where each is.
// In memory stays nothing but open files.
//
// What the resolver needs of a catalog is in package index.
package content
