//go:build integration

package extension_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
)

// bundle is one version of a package, before it is an image. It has a Deployment, its
// ServiceAccount and a ConfigMap.
type bundle struct {
	pkg, version string
	// image of the Deployment; empty is one that becomes ready.
	image string
	// replaces and skipRange are for the channel.
	replaces, skipRange string
	// channels are "stable" when there are none.
	channels []string
	// text is in the ConfigMap; empty is the version.
	text string
	// more are manifests besides, without namespaces.
	more []string
	// ownNamespace has the bundle support OwnNamespace and SingleNamespace alone.
	ownNamespace bool
	// modes are the install modes that it supports, when they are others.
	modes []string
	// deprecated is a message of the catalog.
	deprecated string
	// csvName is another name of the ClusterServiceVersion than that of the bundle.
	csvName string
	// ref is set when the bundle was pushed.
	ref string
}

func (b bundle) name() string { return b.pkg + ".v" + b.version }

// push makes an image of a bundle, and returns it with its reference.
func (w shared) push(b bundle) bundle {
	w.t.Helper()
	folder := w.t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	write("metadata/annotations.yaml", fmt.Sprintf(`annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: %s
`, b.pkg))
	write("manifests/csv.yaml", b.csv())
	text := b.text
	if text == "" {
		text = b.version
	}
	write("manifests/config.yaml", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-config}\ndata: {text: %q}\n", b.pkg, text))
	for i, manifest := range b.more {
		write(fmt.Sprintf("manifests/more-%d.yaml", i), manifest)
	}
	b.ref = w.images.Push(w.t, folder, "bundles/"+b.pkg+":v"+b.version)
	return b
}

func (b bundle) csv() string {
	image := b.image
	if image == "" {
		image = "registry.example.com/" + b.pkg + ":v1"
	}
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
`, cmp.Or(b.csvName, b.name()), b.pkg, b.version, image, b.supports("AllNamespaces"), b.supports("OwnNamespace"), b.supports("SingleNamespace"))
}

// supports is whether the bundle has an install mode.
func (b bundle) supports(mode string) bool {
	if len(b.modes) > 0 {
		return slices.Contains(b.modes, mode)
	}
	return mode != "AllNamespaces" || !b.ownNamespace
}

// catalogOf is a file-based catalog of bundles that were pushed, those of a package in the
// order of its channels.
func catalogOf(bundles ...bundle) string {
	var b strings.Builder
	seen := map[string]bool{}
	channels := map[[2]string][]string{}
	var order [][2]string
	var deprecations = map[string][]string{}
	for _, one := range bundles {
		if !seen[one.pkg] {
			seen[one.pkg] = true
			fmt.Fprintf(&b, "---\n{schema: olm.package, name: %s, defaultChannel: stable}\n", one.pkg)
		}
		in := one.channels
		if len(in) == 0 {
			in = []string{"stable"}
		}
		entry := fmt.Sprintf("{name: %s", one.name())
		if one.replaces != "" {
			entry += fmt.Sprintf(", replaces: %s.v%s", one.pkg, one.replaces)
		}
		if one.skipRange != "" {
			entry += fmt.Sprintf(", skipRange: %q", one.skipRange)
		}
		for _, name := range in {
			key := [2]string{one.pkg, name}
			if channels[key] == nil {
				order = append(order, key)
			}
			channels[key] = append(channels[key], entry+"}")
		}
		if one.deprecated != "" {
			deprecations[one.pkg] = append(deprecations[one.pkg], fmt.Sprintf("{reference: {schema: olm.bundle, name: %s}, message: %q}", one.name(), one.deprecated))
		}
		fmt.Fprintf(&b, "---\n{schema: olm.bundle, package: %[1]s, name: %[2]s, image: %[3]q, properties: [{type: olm.package, value: {packageName: %[1]s, version: %[4]s}}]}\n",
			one.pkg, one.name(), one.ref, one.version)
	}
	for _, key := range order {
		fmt.Fprintf(&b, "---\n{schema: olm.channel, package: %s, name: %s, entries: [%s]}\n", key[0], key[1], strings.Join(channels[key], ", "))
	}
	for pkg, entries := range deprecations {
		fmt.Fprintf(&b, "---\n{schema: olm.deprecations, package: %s, entries: [%s]}\n", pkg, strings.Join(entries, ", "))
	}
	return b.String()
}

// publish pushes bundles and a catalog of them, and makes the ClusterCatalog of that name, or
// changes it. It returns when the catalog is served. It goes with the scenario.
func (w shared) publish(name string, bundles ...bundle) []bundle {
	w.t.Helper()
	for i := range bundles {
		if bundles[i].ref == "" {
			bundles[i] = w.push(bundles[i])
		}
	}
	w.serveCatalog(name, w.pushCatalog(name, bundles...))
	return bundles
}

// pushCatalog makes an image of a catalog of bundles that were pushed, and returns its reference.
func (w shared) pushCatalog(name string, bundles ...bundle) string {
	w.t.Helper()
	return w.pushFiles("catalogs/"+name, map[string]string{"catalog.yaml": catalogOf(bundles...)})
}

// catalogManifest is that of a ClusterCatalog that is an image.
func catalogManifest(name, ref string) string {
	return fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {name: %s}, spec: {source: {type: Image, image: {ref: %q}}}}", name, ref)
}

// pushFiles makes an image of files, by their paths, and returns its reference.
func (w shared) pushFiles(repository string, files map[string]string) string {
	w.t.Helper()
	folder := w.t.TempDir()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.images.Push(w.t, folder, repository)
}

// serveCatalog has a ClusterCatalog be an image, and returns when it is that.
func (w shared) serveCatalog(name, ref string) {
	w.t.Helper()
	w.MustKubectlInput(catalogManifest(name, ref), "apply", "--server-side", "--force-conflicts", "-f", "-")
	w.t.Cleanup(func() { w.Kubectl("delete", "--ignore-not-found", "--wait=false", "clustercatalog", name) })
	digest := ref[strings.Index(ref, "@"):]
	w.awaitCatalog(name, "it is served", func(c *clustercatalog.Catalog) bool {
		return c.Served() && strings.HasSuffix(c.Resolved(), digest)
	})
}
