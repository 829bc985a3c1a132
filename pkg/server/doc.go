// Package server is the aggregated API server as a process: it joins the store,
// the registry and the controllers to k8s.io/apiserver, and looks after what a
// process needs in a cluster: certificates, registration, the store's identity,
// leadership, health.
//
// Options are what a person says; Config is what follows from them and from the
// cluster; Server is what runs.
package server
