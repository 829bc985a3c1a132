// Package configurationprofile is the REST storage of configurationprofiles: what
// plans can configure, and how the cluster is with regard to that. Nothing is
// stored: package survey computes it whenever it is read.
package configurationprofile
