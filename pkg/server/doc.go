// Package server is the process of the aggregated API server. It connects the store and the
// registry to k8s.io/apiserver, and gives controllers their clients and records. Its subpackages
// hold the parts of a process in a cluster, such as certificates, registration, the store's
// identity and leadership.
//
// Options are the flags. newServer (server.go) creates the parts in order; prepare.go and
// configure.go hold its steps. Run (run.go) waits, serves and restarts.
package server
