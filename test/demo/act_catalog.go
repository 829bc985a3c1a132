package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/penstock-project/penstock/pkg/text"
	"github.com/penstock-project/penstock/test/framework/registry"
)

const (
	// catalogName is the name of the ClusterCatalog. catalogPackage is its package.
	catalogName    = "examples"
	catalogPackage = "lighthouse"
)

// startRegistry serves images on loopback, with its own certificate and password.
func (d *demo) startRegistry() {
	served, err := registry.Start(filepath.Join(d.dir, "registry"), registry.Options{
		Listen: "127.0.0.1:0", User: "demo", Password: "lamp", MirrorOf: "registry.example.com",
	})
	if err != nil {
		panic(stop{fmt.Errorf("starting a registry: %w", err)})
	}
	d.registry = served
}

// catalog shows a catalog from its image up to the changes that one of its packages would cause.
func catalog(ctx context.Context, d *demo) {
	d.publish(ctx)
	manifest := fmt.Sprintf("apiVersion: olm.operatorframework.io/v1\nkind: ClusterCatalog\nmetadata: {name: %s}\nspec: {source: {type: Image, image: {ref: %s/catalogs/examples:latest}}}",
		catalogName, d.registry.Host)
	d.show(ctx, "kubectl apply -f - <<'EOF'\n"+manifest+"\nEOF")
	d.show(ctx, fmt.Sprintf("kubectl wait --for=condition=Serving clustercatalog/%s --timeout=%s", catalogName, patience))
	d.listPackages(ctx)
	d.wouldChange(ctx)
}

// publish builds images of the examples, as the publisher of an operator does.
func (d *demo) publish(ctx context.Context) {
	folders := map[string]string{"catalogs/examples:latest": "catalog"}
	for _, version := range []string{"v1.0.0", "v1.1.0", "v1.2.0"} {
		folders["lighthouse/bundle:"+version] = filepath.Join("lighthouse-bundles", version)
	}
	for name, folder := range folders {
		image := get(registry.FromFolder(filepath.Join(filepath.Dir(d.Plans), folder)))
		must(registry.Push(ctx, d.registry.Dir, d.registry.Host+"/"+name, image))
	}
	d.note("a registry on loopback, with a certificate and a password, has a catalog and three bundles as images")
}

func (d *demo) listPackages(ctx context.Context) {
	for _, question := range []struct {
		command, claim string
		says           []string
	}{
		{"kubectl get cpkg", "", []string{"NAME", catalogPackage, catalogName, "stable", "1.2.0"}},
		{"kubectl get cpkg lighthouse --subresource=versions", "", []string{"1.2.0", "1.1.0", "1.0.0"}},
		{
			"kubectl get cpkg lighthouse --subresource=graph", "kubectl lists packages, versions and upgrades, without jq",
			[]string{"candidate", "stable", "1.0.0"},
		},
	} {
		out := d.show(ctx, question.command)
		if missing := missingFrom(out, question.says...); len(missing) > 0 {
			panic(stop{&failure{claim: question.command, want: strings.Join(question.says, ", "), got: "without " + strings.Join(missing, ", ")}})
		}
		if question.claim != "" {
			d.ok("%s", question.claim)
		}
	}
}

// wouldChange chooses a version from the catalog, and compares it with the installed version.
// Nothing is stored.
func (d *demo) wouldChange(ctx context.Context) {
	before := get(d.cluster.revisions(ctx))
	command := fmt.Sprintf("kubectl penstock deploy --name %s --dry-run -- \\\n"+
		"--catalog oci://%s/catalogs/examples:latest --package %s --version '<1.2' \\\n"+
		"--install-namespace lighthouse-system --certificates operator --ca-file %s",
		d.Name, d.registry.Host, catalogPackage, filepath.Join(d.registry.Dir, registry.CAFile))
	out := d.show(ctx, command+" | head -n 3")
	if said := missingFrom(out, "added,"); len(said) > 0 {
		panic(stop{&failure{claim: command, want: "what it would add, change and remove", got: out}})
	}
	after := get(d.cluster.revisions(ctx))
	d.claim(after == before, fmt.Sprintf("1.1.0 was chosen, pulled, rendered and compared; nothing was stored: there are %s as before", text.Count(after, "revision")),
		text.Count(before, "revision"), text.Count(after, "revision"))
}
