// Package report computes the status of a custom resource of a ChartKind. It is pure. Two
// writers own a part of the status each: the loop of revisions has observedGeneration,
// reconciledVersion and the conditions Deployed, ReleaseFailed, Irreconcilable and Paused;
// the loop of workloads has Ready and Progressing.
package report
