// Package helmapplier applies ClusterExtensions with Helm's library, and stores releases as OLM
// v1's operator-controller does. It writes with the given client. Its callers check the rights.
package helmapplier
