//go:build integration

package extension_test

import (
	"strings"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/test/framework/packages"
)

// bundle is a version of a package.
type bundle = packages.Bundle

// push pushes an image of a bundle, and returns the bundle with its reference.
func (w shared) push(b bundle) bundle {
	w.t.Helper()
	return b.Push(w.t, w.images)
}

// publish pushes bundles and a catalog of them, and creates or changes the ClusterCatalog of that
// name. It returns when the catalog is served. The catalog is deleted when the scenario ends.
func (w shared) publish(name string, bundles ...bundle) []bundle {
	w.t.Helper()
	for i := range bundles {
		if bundles[i].Ref == "" {
			bundles[i] = w.push(bundles[i])
		}
	}
	w.serveCatalog(name, w.pushCatalog(name, bundles...))
	return bundles
}

// pushCatalog pushes a catalog of bundles, and returns its reference.
func (w shared) pushCatalog(name string, bundles ...bundle) string {
	w.t.Helper()
	return w.pushFiles("catalogs/"+name, map[string]string{"catalog.yaml": packages.Catalog(bundles...)})
}

// pushFiles pushes an image of files by their paths, and returns its reference.
func (w shared) pushFiles(repository string, files map[string]string) string {
	w.t.Helper()
	return packages.PushFiles(w.t, w.images, repository, files)
}

// serveCatalog sets the image of a ClusterCatalog, and returns when that image is served.
func (w shared) serveCatalog(name, ref string) {
	w.t.Helper()
	w.MustKubectlInput(packages.CatalogManifest(name, ref), "apply", "--server-side", "--force-conflicts", "-f", "-")
	w.t.Cleanup(func() { w.Kubectl("delete", "--ignore-not-found", "--wait=false", "clustercatalog", name) })
	digest := ref[strings.Index(ref, "@"):]
	w.awaitCatalog(name, "it is served", func(c *clustercatalog.Catalog) bool {
		return c.Served() && strings.HasSuffix(c.Resolved(), digest)
	})
}
