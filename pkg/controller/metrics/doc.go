// Package metrics has the metrics for people on call: the state of the revisions, since
// when they have it, and what the engine does to the target cluster and why.
//
// The state of revisions is read from the manager's cache when Prometheus
// scrapes: nothing has to be kept in step, and a revision that is gone has no
// series. Events are counted by the watch of that cache, by the engine (see
// rollout.Metrics) and by the client of the target cluster (see targetclient.Counter). All of
// it belongs to one term of leadership, with a registry of its own.
//
// The names of the metrics, their types and their labels are an interface: they
// stand in the catalogue, which docs/reference/metrics.md repeats.
package metrics
