//go:build integration

package smoke_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/test/framework/packages"
)

// catalog: a user finds a package in a catalog and installs it. Penstock acts with the rights of
// that user. A user approves the proposed upgrade.
func catalog(s scenario) {
	one := packages.Bundle{Package: s.name, Version: "1.0.0"}.Push(s.t, s.images)
	s.offers(one)
	s.Says(s.types(0, "search catalog"), "catalog", "1.0.0", "stable")
	s.Says(s.types(0, "install catalog -n catalog --version 1.x --approval Manual"), "catalog-1: 1.0.0 proposed, from channel stable", "nothing → catalog-1")
	s.Condition("clusterextension/catalog", "Installed", "True", "Succeeded")
	s.Is("clusterextension/catalog", ".status.install.bundle.version", "1.0.0")
	s.Is("configmap/catalog-config", ".data.text", "1.0.0")
	s.Is("deployment/catalog", ".status.availableReplicas", "1")
	s.Says(s.Field("revisionhistory/catalog", ".revisions[*].requestedBy"), "admin")

	// Penstock proposes the newer version as a paused revision with a diff.
	s.offers(one, packages.Bundle{Package: s.name, Version: "1.1.0", Replaces: "1.0.0"}.Push(s.t, s.images))
	s.Condition("clusterextension/catalog", "UpgradeAvailable", "True", "Proposed", "catalog-2 (1.1.0)")
	s.Is("cer/catalog-2", ".spec.lifecycleState", "Paused")
	s.Says(s.types(0, "upgrades catalog"), "1.0.0 is installed", "1.1.0")
	s.Says(s.types(1, "upgrade catalog --dry-run"), "1.1.0 proposed, from channel stable", "catalog-1 → catalog-2", `-  text: "1.0.0"`, `+  text: "1.1.0"`)
	s.Is("configmap/catalog-config", ".data.text", "1.0.0")
	s.Says(s.types(0, "upgrade catalog"), "Roll out catalog-2")
	s.Becomes("clusterextension/catalog", ".status.install.bundle.version", "1.1.0")
	s.Is("configmap/catalog-config", ".data.text", "1.1.0")

	s.Says(s.types(0, "uninstall catalog --yes"), "catalog is uninstalled")
	s.Absent("clusterextension/catalog")
	s.Absent("configmap/catalog-config")
}

// offers fills the scenario's ClusterCatalog with bundles, and returns when the catalog is served.
func (s scenario) offers(bundles ...packages.Bundle) {
	s.t.Helper()
	ref := packages.PushFiles(s.t, s.images, "catalogs/"+s.name, map[string]string{"catalog.yaml": packages.Catalog(bundles...)})
	s.Apply(packages.CatalogManifest(s.name, ref))
	_, digest, _ := strings.Cut(ref, "@")
	s.Until("clustercatalog/"+s.name, func(found *unstructured.Unstructured) error {
		if found == nil {
			return fmt.Errorf("it is not there")
		}
		served, _, _ := unstructured.NestedString(found.Object, "status", "resolvedSource", "image", "ref")
		if !strings.HasSuffix(served, digest) {
			return fmt.Errorf("it serves %q, not %s", served, digest)
		}
		return nil
	})
	s.Condition("clustercatalog/"+s.name, "Serving", "True")
}
