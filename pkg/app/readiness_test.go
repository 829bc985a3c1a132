package app

import (
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/controller/extension"
	"github.com/penstock-project/penstock/pkg/registry/olm/upgradereadiness"
)

// TestRenderPulled: a plan renders bundles of catalogs, and refuses images that an extension from a
// catalog cannot have.
func TestRenderPulled(t *testing.T) {
	files := fstest.MapFS{
		"metadata/annotations.yaml": {Data: []byte(`annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: lamp
`)},
		"manifests/csv.yaml": {Data: []byte(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: lamp.v1.0.0}
spec: {version: 1.0.0, installModes: [{type: AllNamespaces, supported: true}], install: {strategy: deployment, spec: {deployments: []}}}
`)},
		"manifests/budget.yaml": {Data: []byte("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: lamp}\nspec: {minAvailable: 1}\n")},
	}
	for reason, tc := range map[string]struct {
		kind image.Kind
		want string
	}{
		"a bundle":                        {image.Bundle, ""},
		"a bundle without labels":         {image.Plain, ""},
		"a chart, which is not installed": {image.Chart, "it is a Helm chart, and a registry+v1 bundle is expected"},
	} {
		out, err := renderPulled(t.Context(), &extension.Pulled{Kind: tc.kind, FS: files}, upgradereadiness.Wanted{Settings: upgradereadiness.Settings{Namespace: "lamps"}})
		switch {
		case tc.want != "":
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", reason, err, tc.want)
			}
		case err != nil || len(out.Kinds) != 1 || out.Kinds[0] != schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}:
			t.Errorf("%s: %+v, %v", reason, out, err)
		}
	}
}
