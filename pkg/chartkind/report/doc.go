// Package report computes the status of a custom resource of a ChartKind. It is pure. Two
// controllers write different parts of the status: the controller of revisions writes
// observedGeneration, reconciledVersion and the conditions Deployed, ReleaseFailed, Irreconcilable
// and Paused; the controller of workloads writes Ready and Progressing.
package report
