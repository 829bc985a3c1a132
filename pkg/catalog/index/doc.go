// Package index keeps the data that the resolver needs of catalogs on disk, by package. A catalog
// of 70 MB becomes an index of a few MB. It is built once per digest, and a package is read in
// milliseconds. In memory is a table with one row per package.
//
// For clients that read a catalog's content, the index has only the icons.
package index
