// Package configurationprofile is the REST storage of configurationprofiles: the available
// profiles, and their state in the cluster. It stores nothing; package survey computes each answer.
package configurationprofile
