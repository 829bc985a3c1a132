// Package revisiondiff serves comparisons of revisions. The subresource diff compares a revision
// with the previous one. The virtual resource revisiondiffs compares any two revisions. It stores
// nothing; package diff compares.
package revisiondiff
