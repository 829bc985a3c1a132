// Package plan is the loop that computes, executes and watches ConfigurationPlans.
// What a plan may do is said by package governance, what it writes is written by
// the rollout engine; this package reads the cluster and keeps status.
package plan
