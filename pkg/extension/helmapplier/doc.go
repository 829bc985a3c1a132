// Package helmapplier applies ClusterExtensions with Helm's library, and keeps releases as OLM v1's
// operator-controller does. It writes with the client that it is given. Its callers check the
// rights.
package helmapplier
