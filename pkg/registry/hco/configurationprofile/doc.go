// Package configurationprofile is the REST storage of configurationprofiles: what plans
// can configure, and in which state the cluster is. Nothing is stored: package survey
// computes it for each read.
package configurationprofile
