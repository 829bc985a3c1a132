// Package index keeps the data that the resolver needs of catalogs on disk, package by package. A
// catalog of 70 MB becomes an index of a few MB. It is parsed once for each digest, and a package
// is read in milliseconds. In memory is a table with one row for each package.
//
// The index has no documents for clients of a catalog's content, except icons.
package index
