package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-project/penstock/test/framework/registry"
)

// lantern is a package, an extension and its namespace. lanternRules are the rights of its versions.
const lantern = "lantern"

func lanternRules() []string {
	const config = `{apiGroups: [""], resources: [configmaps], verbs: [get]}`
	return []string{config, config, config + `, {apiGroups: [""], resources: [secrets], verbs: [get, list]}`}
}

// reviewedUpgrade has a version come by itself in its window, and the next one wait because it gains
// rights.
func reviewedUpgrade(ctx context.Context, d *demo) error {
	if err := d.publishLanterns(ctx, 1); err != nil {
		return err
	}
	if _, err := d.quiet(ctx, "kubectl create namespace "+lantern); err != nil {
		return err
	}
	if _, err := d.show(ctx, fmt.Sprintf("kubectl penstock install %s -n %[1]s --yes | grep -e approval -e installed", lantern)); err != nil {
		return err
	}
	now := time.Now().UTC()
	window := fmt.Sprintf("apiVersion: penstock.dev/v1alpha1\nkind: MaintenanceWindow\nmetadata: {name: tonight}\nspec: {type: Allow, start: %q, end: %q}",
		now.Add(-time.Minute).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339))
	if _, err := d.show(ctx, "kubectl apply -f - <<'EOF'\n"+window+"\nEOF"); err != nil {
		return err
	}
	if err := d.publishLanterns(ctx, 2); err != nil {
		return err
	}
	if _, err := d.show(ctx, fmt.Sprintf("kubectl wait clusterextension/%s --for=jsonpath='{.status.install.bundle.version}'=1.1.0 --timeout=%s", lantern, patience)); err != nil {
		return err
	}
	d.ok("1.1.0 came by itself, in its window: nothing in its diff deserves a look")
	if err := d.publishLanterns(ctx, 3); err != nil {
		return err
	}
	if _, err := d.quiet(ctx, fmt.Sprintf("kubectl wait --for=create cer/%s-3 --timeout=%s", lantern, patience)); err != nil {
		return err
	}
	out, err := d.show(ctx, fmt.Sprintf(`kubectl get cer %s-3 -o jsonpath='{.metadata.annotations.penstock\.dev/lifecycle-reason}{"\n"}'`, lantern))
	if err != nil {
		return err
	}
	if err := d.claim(strings.Contains(out, "RightsGained") && strings.Contains(out, "it reads Secrets"), "1.2.0 gains rights: it waits, and names the notes that hold it", "RightsGained", out); err != nil {
		return err
	}
	if _, err := d.show(ctx, fmt.Sprintf("kubectl penstock upgrade %s --yes --stat", lantern)); err != nil {
		return err
	}
	version, err := d.quiet(ctx, fmt.Sprintf("kubectl wait clusterextension/%s --for=jsonpath='{.status.install.bundle.version}'=1.2.0 --timeout=%s && kubectl delete maintenancewindow tonight", lantern, patience))
	if err != nil {
		return err
	}
	return d.claim(version != "", "approved by somebody who has read it, and rolled out in their name", "1.2.0", version)
}

// publishLanterns makes images of the first versions, and of a catalog of them, and has the cluster serve
// that.
func (d *demo) publishLanterns(ctx context.Context, versions int) error {
	entries, bundles := "", ""
	for i, rules := range lanternRules()[:versions] {
		version := fmt.Sprintf("1.%d.0", i)
		entries += "- name: lantern.v" + version + "\n"
		if i > 0 {
			entries += fmt.Sprintf("  replaces: lantern.v1.%d.0\n", i-1)
		}
		bundles += fmt.Sprintf("---\n{schema: olm.bundle, package: lantern, name: lantern.v%[1]s, image: %[2]s/lantern:v%[1]s, properties: [{type: olm.package, value: {packageName: lantern, version: %[1]s}}]}\n", version, d.registry.Host)
		if err := d.pushFiles(ctx, "lantern:v"+version, map[string]string{
			"metadata/annotations.yaml": "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  operators.operatorframework.io.bundle.manifests.v1: manifests/\n" +
				"  operators.operatorframework.io.bundle.metadata.v1: metadata/\n  operators.operatorframework.io.bundle.package.v1: lantern\n",
			"manifests/csv.yaml": fmt.Sprintf(lanternCSV, version, rules),
		}); err != nil {
			return err
		}
	}
	name := fmt.Sprintf("catalogs/lanterns:%d", versions)
	if err := d.pushFiles(ctx, name, map[string]string{"lantern/catalog.yaml": "---\n{schema: olm.package, name: lantern, defaultChannel: stable}\n" + bundles +
		"---\nschema: olm.channel\npackage: lantern\nname: stable\nentries:\n" + entries}); err != nil {
		return err
	}
	manifest := fmt.Sprintf("apiVersion: olm.operatorframework.io/v1\nkind: ClusterCatalog\nmetadata: {name: lanterns}\nspec: {source: {type: Image, image: {ref: %s/%s}}}", d.registry.Host, name)
	_, err := d.quiet(ctx, "kubectl apply -f - <<'EOF'\n"+manifest+"\nEOF\nkubectl wait --for=condition=Serving clustercatalog/lanterns")
	return err
}

// pushFiles makes an image of files, by their paths.
func (d *demo) pushFiles(ctx context.Context, name string, files map[string]string) error {
	folder := filepath.Join(d.dir, "images", strings.NewReplacer("/", "-", ":", "-").Replace(name))
	for file, content := range files {
		path := filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("making a folder for image %s: %w", name, err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing %s of image %s: %w", file, name, err)
		}
	}
	image, err := registry.FromFolder(folder)
	if err != nil {
		return err
	}
	return registry.Push(ctx, d.registry.Dir, d.registry.Host+"/"+name, image)
}

const lanternCSV = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: lantern.v%[1]s}
spec:
  displayName: Lantern
  version: %[1]s
  installModes:
  - {type: AllNamespaces, supported: true}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: lantern
        spec:
          replicas: 1
          selector: {matchLabels: {app: lantern}}
          template:
            metadata: {labels: {app: lantern}}
            spec:
              serviceAccountName: lantern
              containers:
              - {name: lantern, image: "registry.example.com/lantern:v%[1]s"}
      clusterPermissions:
      - serviceAccountName: lantern
        rules: [%[2]s]
`
