// Package console serves the files and the API of the console to a browser on the same machine, in
// the name of the user of a kubeconfig. It decides nothing about rights: each request to its API
// becomes a request of the user to the cluster. It decides only who may ask it: see gate.go.
package console
