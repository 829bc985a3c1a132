// Package helmapplier applies what ClusterExtensions install by Helm's library, and keeps its
// releases as OLM v1's operator-controller does. It writes with the client that it is given:
// who may have what applied, others have judged.
package helmapplier
