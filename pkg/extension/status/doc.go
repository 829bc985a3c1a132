// Package status computes the status of a ClusterExtension. It is pure: a function of facts, and of
// the status before, from which it takes transition times.
//
// The conditions of OLM v1 have OLM's reasons, and OLM's messages word for word where OLM has one.
// Further facts are in conditions that OLM lacks: Ready, Stalled and UpgradeAvailable.
package status
