// Package packages creates OLM packages for tests: bundles and catalogs, as images in a registry.
package packages

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/registry"
)

// Bundle is a version of a package, before it becomes an image. It has a Deployment, its
// ServiceAccount and a ConfigMap.
type Bundle struct {
	Package, Version string
	// Image is the Deployment's image. If empty, it is an image that becomes ready.
	Image string
	// Replaces and SkipRange are the fields of the channel entry.
	Replaces, SkipRange string
	// Channels are the bundle's channels. If empty, it is "stable".
	Channels []string
	// Text is the text in the ConfigMap. If empty, it is the version.
	Text string
	// More are additional manifests, without namespaces.
	More []string
	// OwnNamespace limits the install modes to OwnNamespace and SingleNamespace.
	OwnNamespace bool
	// Modes are the supported install modes, if they differ from the default.
	Modes []string
	// Deprecated is a deprecation message in the catalog.
	Deprecated string
	// Requires is a package that the bundle requires, with a version range: "certs >=1.0.0".
	Requires string
	// MinKubeVersion is the bundle's lowest Kubernetes version. MaxOpenShift is its highest
	// OpenShift version.
	MinKubeVersion, MaxOpenShift string
	// CSVName is the name of the ClusterServiceVersion, if it differs from the bundle's.
	CSVName string
	// Ref is the bundle's reference, set by Push.
	Ref string
}

// Name returns the name of the bundle in its channels.
func (b Bundle) Name() string { return b.Package + ".v" + b.Version }

// Push pushes an image of the bundle, and returns the bundle with its reference.
func (b Bundle) Push(t testing.TB, images *registry.Registry) Bundle {
	t.Helper()
	files := map[string]string{
		"metadata/annotations.yaml": fmt.Sprintf(`annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: %s
`, b.Package),
		"manifests/csv.yaml": b.csv(),
		"manifests/config.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-config}\ndata: {text: %q}\n",
			b.Package, cmp.Or(b.Text, b.Version)),
	}
	if name, versions, found := strings.Cut(b.Requires, " "); found {
		files["metadata/dependencies.yaml"] = fmt.Sprintf("dependencies: [{type: olm.package, value: {packageName: %s, version: %q}}]\n", name, versions)
	}
	for i, manifest := range b.More {
		files[fmt.Sprintf("manifests/more-%d.yaml", i)] = manifest
	}
	b.Ref = PushFiles(t, images, "bundles/"+b.Package+":v"+b.Version, files)
	return b
}

func (b Bundle) csv() string {
	return fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: %[1]s}
spec:
  displayName: %[2]s
  version: %[3]s
  installModes:
  - {type: OwnNamespace, supported: %[6]t}
  - {type: SingleNamespace, supported: %[7]t}
  - {type: MultiNamespace, supported: false}
  - {type: AllNamespaces, supported: %[5]t}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: %[2]s
        spec:
          replicas: 1
          selector: {matchLabels: {app: %[2]s}}
          template:
            metadata: {labels: {app: %[2]s}}
            spec:
              serviceAccountName: %[2]s
              containers:
              - {name: main, image: %[4]q}
      permissions:
      - serviceAccountName: %[2]s
        rules:
        - {apiGroups: [""], resources: [configmaps], verbs: [get]}
`, cmp.Or(b.CSVName, b.Name()), b.Package, b.Version, cmp.Or(b.Image, "registry.example.com/"+b.Package+":v1"), b.supports("AllNamespaces"), b.supports("OwnNamespace"), b.supports("SingleNamespace"))
}

// supports reports whether the bundle has an install mode.
func (b Bundle) supports(mode string) bool {
	if len(b.Modes) > 0 {
		return slices.Contains(b.Modes, mode)
	}
	return mode != "AllNamespaces" || !b.OwnNamespace
}

// Catalog returns a file-based catalog of pushed bundles. The bundles of a package are in the order
// of its channels.
func Catalog(bundles ...Bundle) string {
	var b strings.Builder
	seen := map[string]bool{}
	channels := map[[2]string][]string{}
	var order [][2]string
	var deprecations = map[string][]string{}
	for _, one := range bundles {
		if !seen[one.Package] {
			seen[one.Package] = true
			fmt.Fprintf(&b, "---\n{schema: olm.package, name: %s, defaultChannel: stable}\n", one.Package)
		}
		in := one.Channels
		if len(in) == 0 {
			in = []string{"stable"}
		}
		entry := fmt.Sprintf("{name: %s", one.Name())
		if one.Replaces != "" {
			entry += fmt.Sprintf(", replaces: %s.v%s", one.Package, one.Replaces)
		}
		if one.SkipRange != "" {
			entry += fmt.Sprintf(", skipRange: %q", one.SkipRange)
		}
		for _, name := range in {
			key := [2]string{one.Package, name}
			if channels[key] == nil {
				order = append(order, key)
			}
			channels[key] = append(channels[key], entry+"}")
		}
		if one.Deprecated != "" {
			deprecations[one.Package] = append(deprecations[one.Package], fmt.Sprintf("{reference: {schema: olm.bundle, name: %s}, message: %q}", one.Name(), one.Deprecated))
		}
		properties := ""
		if name, versions, found := strings.Cut(one.Requires, " "); found {
			properties = fmt.Sprintf(", {type: olm.package.required, value: {packageName: %s, versionRange: %q}}", name, versions)
		}
		if one.MinKubeVersion != "" {
			properties += fmt.Sprintf(", {type: olm.csv.metadata, value: {minKubeVersion: %s}}", one.MinKubeVersion)
		}
		if one.MaxOpenShift != "" {
			properties += fmt.Sprintf(", {type: olm.maxOpenShiftVersion, value: %q}", one.MaxOpenShift)
		}
		fmt.Fprintf(&b, "---\n{schema: olm.bundle, package: %[1]s, name: %[2]s, image: %[3]q, properties: [{type: olm.package, value: {packageName: %[1]s, version: %[4]s}}%[5]s]}\n",
			one.Package, one.Name(), one.Ref, one.Version, properties)
	}
	for _, key := range order {
		fmt.Fprintf(&b, "---\n{schema: olm.channel, package: %s, name: %s, entries: [%s]}\n", key[0], key[1], strings.Join(channels[key], ", "))
	}
	for pkg, entries := range deprecations {
		fmt.Fprintf(&b, "---\n{schema: olm.deprecations, package: %s, entries: [%s]}\n", pkg, strings.Join(entries, ", "))
	}
	return b.String()
}

// CatalogManifest returns the manifest of a ClusterCatalog with an image.
func CatalogManifest(name, ref string) string {
	return fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {name: %s}, spec: {source: {type: Image, image: {ref: %q}}}}", name, ref)
}

// PushFiles pushes an image of files by their paths, and returns its reference.
func PushFiles(t testing.TB, images *registry.Registry, repository string, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return images.Push(t, folder, repository)
}
