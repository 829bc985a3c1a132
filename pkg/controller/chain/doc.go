// Package chain is the controller that rolls chains out, with one queue key and one writer for each
// chain. It turns the chain's active revisions into layers, lets the rollout engine do a pass, and
// writes the results: status, the archival of older revisions, released finalizers.
package chain
