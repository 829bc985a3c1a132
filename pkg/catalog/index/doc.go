// Package index keeps what the resolver needs of catalogs on disk, package by package: a
// catalog of 70 MB becomes an index of a few, is parsed once a digest, and a package is read
// in milliseconds. In memory is a table with one row a package.
//
// Documents for clients of a catalog's content are not here, except icons.
package index
