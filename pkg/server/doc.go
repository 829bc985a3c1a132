// Package server is the aggregated API server as a process. It joins the store and the registry to
// k8s.io/apiserver, and provides what controllers need of them. The packages below it have the
// parts that a process in a cluster needs, such as certificates, registration, the store's identity
// and leadership.
//
// Options are the flags. newServer (server.go) makes the parts in order; prepare.go and
// configure.go have its steps. Run (run.go) waits, serves and restarts.
package server
