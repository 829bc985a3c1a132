// Package contentserver serves the content of catalogs to users who can connect, as OLM's
// catalogd does: below /catalogs/<name>, api/v1/all and api/v1/metas. It bounds what slow and
// many clients can take.
package contentserver
