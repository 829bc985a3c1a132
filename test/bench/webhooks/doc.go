// Package webhooks measures the cost of a review: Penstock's webhooks beside a webhook that does
// nothing, in the same run, at a higher rate than in any real cluster.
package webhooks
