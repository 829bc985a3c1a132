// Package configurationplan serves ConfigurationPlans: the record and its subresources.
// Nothing here writes to the cluster.
package configurationplan
