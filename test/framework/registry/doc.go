// Package registry has a registry for images on loopback, with a certificate and a password,
// and makes images of folders: catalogs, bundles, charts and plain manifests, as the tools
// that publish them do. Tests use it, and hack/image does for people.
package registry
