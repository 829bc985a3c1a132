// Package catalogpackage is the REST storage of catalogpackages: what the catalogs of a
// cluster offer. Nothing is stored: it is computed from an inventory of catalogs for each
// read. Catalogs come from others, so all text of theirs is one line that prints, and of
// no list there is more than a bound.
package catalogpackage
