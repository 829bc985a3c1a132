// Package contentserver serves the content of catalogs to any client that can connect, as OLM's
// catalogd does: api/v1/all and api/v1/metas below /catalogs/<name>. It limits slow clients and the
// number of clients.
package contentserver
