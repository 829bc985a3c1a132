// Package metrics has the metrics for people on call: the state of the revisions, the time of its
// last change, and the engine's requests to the target cluster with their reasons.
//
// The state of revisions is read from the manager's cache at each scrape. So a deleted revision has
// no series, and the state is never outdated. Events are counted by the watch of that cache, by the
// engine (see rollout.Metrics) and by the client of the target cluster (see targetclient.Counter).
// All metrics belong to one term of leadership, with a separate registry.
//
// Names, types and labels of metrics are an interface. They are in the catalogue, which
// docs/reference/metrics.md repeats.
package metrics
