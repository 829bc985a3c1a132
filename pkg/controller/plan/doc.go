// Package plan is the controller that computes, executes and watches ConfigurationPlans.
// Package governance says what a plan may do, and the rollout engine writes the targets;
// this package reads the cluster and writes status.
package plan
