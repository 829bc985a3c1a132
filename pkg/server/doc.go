// Package server is the aggregated API server as a process: it joins the store and the
// registry to k8s.io/apiserver, and lends controllers what they need. The parts that a process needs
// in a cluster, such as certificates, registration, the store's identity and leadership,
// is in packages below it.
//
// Options are the flags. newServer (server.go) says in order what is made of what; prepare.go
// and configure.go have its steps. Run (run.go) waits, serves and starts over.
package server
