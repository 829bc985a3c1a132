// Package webhooks measures what a review costs: Penstock's webhooks beside one that
// does nothing, on the same machine in the same run, at a rate that no cluster
// should have.
package webhooks
