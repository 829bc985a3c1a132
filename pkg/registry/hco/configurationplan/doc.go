// Package configurationplan serves ConfigurationPlans: the record, and what can be
// asked and done about it. Nothing here writes to the cluster.
package configurationplan
