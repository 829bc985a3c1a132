// Package catalogpackage is the REST storage of catalogpackages, the packages in the catalogs of a
// cluster. It stores nothing, and computes them from an inventory of catalogs for each read. It
// does not trust catalogs: each text becomes one printable line, and each list is bounded.
package catalogpackage
