// Package chain is the controller that rolls out chains, with one queue key and one writer for each
// chain. It turns the chain's active revisions into layers, and lets the rollout engine do a pass.
// Then it writes the results: it updates status, archives older revisions, and removes finalizers.
package chain
