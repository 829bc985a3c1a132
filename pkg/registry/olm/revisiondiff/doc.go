// Package revisiondiff serves what one revision changes against another: as the
// subresource diff of a revision, against the one before it, and as the virtual
// resource revisiondiffs, between any two. Nothing is stored; what is compared,
// and how, is package diff's.
package revisiondiff
