//go:build integration

package extension_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock-project/penstock/test/framework/packages"
)

// templateScenarios test catalogs whose image follows a template.
func templateScenarios() map[string]scenario {
	return map[string]scenario{"Template": followed}
}

// followed: the image of a catalog follows a template. An extension with automatic upgrades gets
// the operator of the new content.
func followed(w shared) {
	var all []bundle
	for i, version := range []string{"1.0.0", "1.1.0"} {
		one := bundle{Package: w.name, Version: version}
		if i > 0 {
			one.Replaces = "1.0.0"
		}
		all = append(all, w.push(one))
		folder := w.t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "catalog.yaml"), []byte(packages.Catalog(all...)), 0o600); err != nil {
			w.t.Fatal(err)
		}
		w.images.Push(w.t, folder, "catalogs/"+w.name+":v"+version)
	}
	w.MustKubectl("-n", w.name, "create", "configmap", "release", "--from-literal=version=1.0.0")
	w.MustKubectlInput(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: templates, namespace: %[1]s}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [release], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: templates, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: templates}
subjects: [{kind: ServiceAccount, namespace: penstock-system, name: penstock-templates}]
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata:
  name: %[1]s
  annotations: {olm.catalogImageTemplate: "%[2]s/catalogs/%[1]s:v{group:,version:v1,kind:ConfigMap,name:release,namespace:%[1]s,jsonpath:{.data.version}}"}
spec: {source: {type: Image, image: {ref: "%[2]s/catalogs/%[1]s:v1.0.0"}}}
`, w.name, w.images.Host), "apply", "-f", "-")
	w.t.Cleanup(func() { w.Kubectl("delete", "--ignore-not-found", "--wait=false", "clustercatalog", w.name) })
	w.apply(person{Access: w.Access}, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.MustKubectl("-n", w.name, "patch", "configmap", "release", "--type=merge", "-p", `{"data":{"version":"1.1.0"}}`)
	w.awaitExtension(w.name, "the catalog has another content", installed("1.1.0"))
}
