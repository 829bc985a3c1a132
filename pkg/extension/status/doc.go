// Package status says in the status of a ClusterExtension what is known of it. It is pure: a
// function of facts, and of the status before, from which transition times carry over.
//
// The conditions of OLM v1 have its reasons and its messages, to the letter where it has one.
// Further facts of Penstock are in conditions that OLM does not have: Ready, Stalled and
// UpgradeAvailable.
package status
