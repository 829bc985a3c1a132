// Package registry serves an image registry on loopback, with a certificate and a password. It
// makes images from folders as publishing tools do: catalogs, bundles, charts and plain manifests.
// Tests use it, and hack/image makes it available to users.
package registry
