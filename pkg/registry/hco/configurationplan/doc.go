// Package configurationplan serves ConfigurationPlans and their subresources. It never writes to
// the cluster.
package configurationplan
