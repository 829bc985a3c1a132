package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-project/penstock/test/framework/port"
	"github.com/penstock-project/penstock/test/framework/receiver"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// lantern is a package, an extension and its namespace. lanternRules are the rights in its
// versions.
const lantern = "lantern"

func lanternRules() []string {
	const config = `{apiGroups: [""], resources: [configmaps], verbs: [get]}`
	return []string{config, config, config + `, {apiGroups: [""], resources: [secrets], verbs: [get, list]}`}
}

// reviewedUpgrade shows an automatic upgrade in its window. The next version waits because it gains
// rights.
func reviewedUpgrade(ctx context.Context, d *demo) {
	to := d.receiver(ctx)
	if to != nil {
		defer to.Close()
	}
	d.publishLanterns(ctx, 1)
	d.quiet(ctx, "kubectl create namespace "+lantern)
	d.show(ctx, fmt.Sprintf("kubectl penstock install %s -n %[1]s --yes | grep -e approval -e installed", lantern))
	now := time.Now().UTC()
	window := fmt.Sprintf("apiVersion: penstock.dev/v1alpha1\nkind: MaintenanceWindow\nmetadata: {name: tonight}\nspec: {type: Allow, start: %q, end: %q}",
		now.Add(-time.Minute).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339))
	d.show(ctx, "kubectl apply -f - <<'EOF'\n"+window+"\nEOF")
	d.publishLanterns(ctx, 2)
	d.show(ctx, fmt.Sprintf("kubectl wait clusterextension/%s --for=jsonpath='{.status.install.bundle.version}'=1.1.0 --timeout=%s", lantern, patience))
	d.ok("1.1.0 came by itself, in its window: nothing in its diff deserves a look")
	d.publishLanterns(ctx, 3)
	d.quiet(ctx, fmt.Sprintf("kubectl wait --for=create cer/%s-3 --timeout=%s", lantern, patience))
	out := d.show(ctx, fmt.Sprintf(`kubectl get cer %s-3 -o jsonpath='{.metadata.annotations.penstock\.dev/lifecycle-reason}{"\n"}'`, lantern))
	d.claim(strings.Contains(out, "RightsGained") && strings.Contains(out, "it reads Secrets"), "1.2.0 gains rights: it waits, and names the notes that hold it", "RightsGained", out)
	d.receives(ctx, to, "WaitingForApproval", "the receiver gets the event; it can be a chat or Alertmanager")
	d.show(ctx, fmt.Sprintf("kubectl penstock upgrade %s --yes --stat", lantern))
	version := d.quiet(ctx, fmt.Sprintf("kubectl wait clusterextension/%s --for=jsonpath='{.status.install.bundle.version}'=1.2.0 --timeout=%s && kubectl delete maintenancewindow tonight", lantern, patience))
	d.claim(version != "", "approved by a user who has read it, and rolled out in that user's name", "1.2.0", version)
	d.receives(ctx, to, "Completed", "")
	d.quiet(ctx, "kubectl delete secret chat -n penstock-system --ignore-not-found")
}

// receiver starts a receiver of notifications and registers it with Penstock; nil on a machine that
// cannot have one.
func (d *demo) receiver(ctx context.Context) *receiver.Receiver {
	const key = "key-of-the-demo-only"
	to, err := receiver.Run(key)
	if errors.Is(err, port.ErrLoopback) {
		d.note("without a receiver: %s", err)
		return nil
	}
	must(err)
	d.quiet(ctx, "kubectl apply -f - <<'EOF'\n"+to.Secret("penstock-system", "chat", key)+"\nEOF")
	return to
}

// receives shows the notification about the last version.
func (d *demo) receives(ctx context.Context, to *receiver.Receiver, kind, claim string) {
	if to == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got := get(to.Find(ctx, receiver.Of(kind, lantern+"-3", true)))
	d.output(fmt.Sprintf("%s: %s", got.Type, got.Data.Summary))
	if claim != "" {
		d.ok("%s", claim)
	}
}

// publishLanterns builds images of the first versions and of their catalog, and adds the catalog to
// the cluster.
func (d *demo) publishLanterns(ctx context.Context, versions int) {
	entries, bundles := "", ""
	for i, rules := range lanternRules()[:versions] {
		version := fmt.Sprintf("1.%d.0", i)
		entries += "- name: lantern.v" + version + "\n"
		if i > 0 {
			entries += fmt.Sprintf("  replaces: lantern.v1.%d.0\n", i-1)
		}
		bundles += fmt.Sprintf("---\n{schema: olm.bundle, package: lantern, name: lantern.v%[1]s, image: %[2]s/lantern:v%[1]s, properties: [{type: olm.package, value: {packageName: lantern, version: %[1]s}}]}\n", version, d.registry.Host)
		d.pushFiles(ctx, "lantern:v"+version, map[string]string{
			"metadata/annotations.yaml": "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  operators.operatorframework.io.bundle.manifests.v1: manifests/\n" +
				"  operators.operatorframework.io.bundle.metadata.v1: metadata/\n  operators.operatorframework.io.bundle.package.v1: lantern\n",
			"manifests/csv.yaml": fmt.Sprintf(lanternCSV, version, rules),
		})
	}
	name := fmt.Sprintf("catalogs/lanterns:%d", versions)
	d.pushFiles(ctx, name, map[string]string{"lantern/catalog.yaml": "---\n{schema: olm.package, name: lantern, defaultChannel: stable}\n" + bundles +
		"---\nschema: olm.channel\npackage: lantern\nname: stable\nentries:\n" + entries})
	manifest := fmt.Sprintf("apiVersion: olm.operatorframework.io/v1\nkind: ClusterCatalog\nmetadata: {name: lanterns}\nspec: {source: {type: Image, image: {ref: %s/%s}}}", d.registry.Host, name)
	d.quiet(ctx, "kubectl apply -f - <<'EOF'\n"+manifest+"\nEOF\nkubectl wait --for=condition=Serving clustercatalog/lanterns")
}

func (d *demo) pushFiles(ctx context.Context, name string, files map[string]string) {
	folder := filepath.Join(d.dir, "images", strings.NewReplacer("/", "-", ":", "-").Replace(name))
	for file, content := range files {
		path := filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			panic(stop{fmt.Errorf("making a folder for image %s: %w", name, err)})
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			panic(stop{fmt.Errorf("writing %s of image %s: %w", file, name, err)})
		}
	}
	image := get(registry.FromFolder(folder))
	must(registry.Push(ctx, d.registry.Dir, d.registry.Host+"/"+name, image))
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
