// Package report says what the status of a custom resource tells that is installed with a chart.
// It is pure. Two writers have a part of the status each: whoever makes revisions has
// observedGeneration, reconciledVersion and the conditions Deployed, ReleaseFailed,
// Irreconcilable and Paused; whoever looks at workloads has Ready and Progressing.
package report
