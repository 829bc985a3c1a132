// Package plan is the controller that computes, executes and watches ConfigurationPlans. Package
// governance decides which steps a plan may take, and the rollout engine writes the targets. This
// package reads the cluster and writes status.
package plan
