// Package console is the door of the console: it serves its files and its API to a browser
// on the same machine, in the name of the user of a kubeconfig. It decides nothing about
// rights: each request to the API of the console is one of the user to the cluster. Its own decision
// is who may ask it: see gate.go.
package console
