// Package revisiondiff serves comparisons of revisions: as the subresource diff of a revision, with
// the previous one, and as the virtual resource revisiondiffs, between any two. It stores nothing.
// Package diff compares.
package revisiondiff
