// Package fbc reads file-based catalogs, the format in which operator catalogs list packages,
// channels and bundles. A catalog is a stream of documents, in JSON or YAML, in one file or in a
// directory. The reader streams, has limits, and its errors name file, line and package.
//
// The package does not use the types of operator-registry: docs/adr/0018-catalogs.md.
package fbc
