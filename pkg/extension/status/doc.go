// Package status computes the status of a ClusterExtension. It is pure: the result depends only on
// the facts and on the previous status, from which it takes transition times.
//
// The conditions of OLM v1 have OLM's reasons, and OLM's messages word for word where OLM has one.
// The conditions Ready, Stalled and UpgradeAvailable, which OLM lacks, have further facts.
package status
