// Package server is the aggregated API server as a process: it joins the store, the
// registry and the controllers to k8s.io/apiserver. It also manages what a process needs
// in a cluster: certificates, registration, the store's identity, leadership, health.
//
// Options are the flags; Config is computed from them and from the cluster; Server runs.
package server
