// Package console serves the files and the API of the console to a browser on the same machine, in
// the name of the user of a kubeconfig. It checks only who may call it: see gate.go. It checks no
// other rights: each request to its API becomes a request of the user to the cluster.
package console
