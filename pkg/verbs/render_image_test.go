package verbs

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// reached returns the flags for access to a registry.
func reached(t *testing.T, r *registry.Registry) []string {
	t.Helper()
	return []string{
		"--auth-file", filepath.Join(r.Dir, registry.AuthFile), "--ca-file", filepath.Join(r.Dir, registry.CAFile),
		"--registries-conf", filepath.Join(r.Dir, registry.MirrorsFile), "--image-cache", filepath.Join(t.TempDir(), "images"),
	}
}

func example(parts ...string) string {
	return filepath.Join(append([]string{"..", "..", "artifacts", "examples"}, parts...)...)
}

func inLighthouse(more ...string) []string {
	return append(more, "--install-namespace", "lighthouse-system", "--certificates", "cert-manager", "--extension", "lighthouse", "--revision", "1")
}

// TestRenderImage: an image is rendered like the folder from which it was made, and the revision
// names the image.
func TestRenderImage(t *testing.T) {
	r := registry.Serve(t)
	at := reached(t, r)
	for name, c := range map[string]struct {
		folder, what string
		flag         string
		more         []string
		annotations  map[string]string
	}{
		"bundle": {
			folder: example("lighthouse-bundles", "v1.1.0"), what: "registry+v1 bundle of image IMAGE: package lighthouse 1.1.0", flag: "--bundle", more: inLighthouse(),
			annotations: map[string]string{v1alpha1.VersionAnnotation: "1.1.0", v1alpha1.PackageAnnotation: "lighthouse"},
		},
		"chart": {
			folder: example("foghorn-chart"), what: "Helm chart of image IMAGE: package foghorn 0.3.0", flag: "--chart",
			more:        []string{"--install-namespace", "coast", "--extension", "foghorn", "--revision", "1"},
			annotations: map[string]string{v1alpha1.VersionAnnotation: "0.3.0", v1alpha1.PackageAnnotation: "foghorn"},
		},
		"plain": {
			folder: example("lighthouse", "v1.1.0"), what: "plain manifests of image IMAGE\n",
			more: []string{"--extension", "lighthouse", "--revision", "1"}, annotations: map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "chart" {
				c.more = []string{"--install-namespace", "coast", "--extension", "foghorn", "--revision", "1", "--generated-secret", "foghorn-token", "--carry-on", foghornToken(t)}
			}
			image := r.Push(t, c.folder, "ns/"+name+":v1")
			c.annotations[v1alpha1.ReferenceAnnotation] = image
			stdout, stderr, err := runRender("", append(append([]string{"oci://" + r.Host + "/ns/" + name + ":v1"}, at...), c.more...)...)
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.ReplaceAll(c.what, "IMAGE", image); !strings.Contains(stderr, want) {
				t.Errorf("%q is missing in\n%s", want, stderr)
			}
			got := revisionOf(t, stdout)
			if diff := cmp.Diff(c.annotations, got.Annotations); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			folder := []string{c.folder}
			if c.flag != "" {
				folder = []string{c.flag, c.folder}
			}
			ofFolder, _, err := runRender("", append(folder, c.more...)...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(revisionOf(t, ofFolder).Spec, got.Spec); diff != "" {
				t.Errorf("the image makes another revision than its folder: -folder, +image:\n%s", diff)
			}
			if c.flag == "" {
				return
			}
			if named, _, err := runRender("", append(append([]string{c.flag, "oci://" + image}, at...), c.more...)...); err != nil || named != stdout {
				t.Errorf("with %s and the digest, other bytes: %v", c.flag, err)
			}
		})
	}
}

// foghornToken is a Secret of an earlier revision, so that the chart generates no random values.
func foghornToken(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token.yaml")
	content := "apiVersion: v1\nkind: Secret\nmetadata: {name: foghorn-token, namespace: coast}\ndata: {token: bGFtcA==}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRenderCatalog: a catalog chooses the bundle, and its image is pulled from a mirror.
func TestRenderCatalog(t *testing.T) {
	r := registry.Serve(t)
	at := reached(t, r)
	catalog := r.Push(t, example("catalog"), "catalogs/examples:latest")
	image := strings.Replace(r.Push(t, example("lighthouse-bundles", "v1.1.0"), "lighthouse/bundle:v1.1.0"), r.Host, "registry.example.com", 1)
	for name, from := range map[string]string{"folder": example("catalog"), "image": "oci://" + r.Host + "/catalogs/examples:latest", "digest": "named=oci://" + catalog} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := runRender("", append(inLighthouse("--catalog", from, "--package", "lighthouse", "--version", ">=1.0 <1.2", "--channel", "stable"), at...)...)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{
				v1alpha1.VersionAnnotation: "1.1.0", v1alpha1.PackageAnnotation: "lighthouse",
				v1alpha1.BundleAnnotation: "lighthouse.v1.1.0", v1alpha1.ReferenceAnnotation: image,
			}
			if diff := cmp.Diff(want, revisionOf(t, stdout).Annotations); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			if !strings.Contains(stderr, "note: bundle lighthouse.v1.1.0 of catalog ") || !strings.Contains(stderr, "of image "+image) {
				t.Errorf("it is not said what was chosen:\n%s", stderr)
			}
		})
	}
}

func TestRenderImageRefuses(t *testing.T) {
	r := registry.Serve(t)
	at, fresh := reached(t, r), reached(t, r)
	bundle := "oci://" + r.Push(t, example("lighthouse-bundles", "v1.1.0"), "lighthouse/bundle:v1.1.0")
	chart := "oci://" + r.Push(t, example("foghorn-chart"), "ns/chart:v1")
	plain := "oci://" + r.Push(t, example("lighthouse", "v1.0.0"), "ns/plain:v1")
	catalog := "oci://" + r.Push(t, example("catalog"), "ns/catalog:v1")
	// This image has another version than the catalog states.
	r.Push(t, example("lighthouse-bundles", "v1.1.0"), "lighthouse/bundle:v1.0.0")
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("deploymentConfig:\n  env:\n  - {value: a}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nobody := filepath.Join(t.TempDir(), "auth.json")
	wrong := base64.StdEncoding.EncodeToString([]byte("me:wrong"))
	if err := os.WriteFile(nobody, fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, r.Host, wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(args ...string) []string { return append(args, at...) }
	alone := []string{"--extension", "x", "--revision", "1"}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"NoSuchTag":       {of(inLighthouse("oci://" + r.Host + "/ns/plain:v9")...), []string{r.Host + "/ns/plain:v9", "manifest unknown"}},
		"NoRegistry":      {of(inLighthouse("oci://lighthouse:v1")...), []string{"image lighthouse:v1 is refused", "registry, repository, and tag or digest"}},
		"NoCredentials":   {append(inLighthouse(bundle), fresh[2:]...), []string{strings.TrimPrefix(bundle, "oci://"), "unauthorized: no credentials were given"}},
		"UnknownCA":       {append(append(inLighthouse(bundle), fresh[:2]...), fresh[4:]...), []string{strings.TrimPrefix(bundle, "oci://"), "certificate", "set --ca-file to a file"}},
		"Credentials":     {append(append(inLighthouse(bundle), fresh[2:]...), "--auth-file", nobody), []string{"the registry refuses the credentials in " + nobody + ", or the file has none for it"}},
		"TwoCAs":          {of(inLighthouse(bundle, "--certs-dir", "x")...), []string{"--ca-file and --certs-dir"}},
		"Catalog":         {of(inLighthouse(catalog)...), []string{strings.TrimPrefix(catalog, "oci://"), "it is a catalog", "want a bundle"}},
		"ChartWanted":     {of(inLighthouse("--chart", bundle)...), []string{"the image is a registry+v1 bundle, want a Helm chart"}},
		"BundleWanted":    {of(inLighthouse("--bundle", chart)...), []string{"the image is a Helm chart, want a registry+v1 bundle"}},
		"NoNamespace":     {of(append(alone, bundle)...), []string{"a registry+v1 bundle needs --install-namespace"}},
		"FlagOfChart":     {of(inLighthouse(bundle, "--values", config)...), []string{"--values does nothing with registry+v1 bundle"}},
		"FlagOfBundle":    {of(append(alone, chart, "--install-namespace", "n", "--config", config)...), []string{"--config does nothing with Helm chart"}},
		"FlagOfNobody":    {of(append(alone, plain, "--install-namespace", "n")...), []string{"--install-namespace does nothing with plain manifests"}},
		"NoImage":         {append(alone, example("lighthouse", "v1.0.0"), "--auth-file", "x"), []string{"--auth-file does nothing without an image"}},
		"NoCatalog":       {of(inLighthouse(bundle, "--version", "1.x")...), []string{"--version does nothing without --catalog"}},
		"Config":          {of(inLighthouse(bundle, "--config", config)...), []string{strings.TrimPrefix(bundle, "oci://"), "configuration: deploymentConfig.env[0].name: is missing"}},
		"NoPackage":       {of(inLighthouse("--catalog", example("catalog"))...), []string{"--package is required"}},
		"NoVersion":       {of(inLighthouse("--catalog", catalog, "--package", "lighthouse", "--version", "7.x")...), []string{`no bundles found for package "lighthouse"`, "7.x"}},
		"AnotherVersion":  {of(inLighthouse("--catalog", catalog, "--package", "lighthouse", "--version", "1.0.0")...), []string{"catalog catalog, bundle lighthouse.v1.0.0", "it is version 1.1.0, and catalog catalog says that it is version 1.0.0"}},
		"BundleIsMissing": {of(inLighthouse("--catalog", catalog, "--package", "lighthouse", "--version", "1.2.0")...), []string{"bundle lighthouse.v1.2.0", "registry.example.com/lighthouse/bundle:v1.2.0"}},
		"NoCatalogInside": {of(inLighthouse("--catalog", bundle, "--package", "lighthouse")...), []string{"has no catalog in it", "bundle"}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := runRender("", c.args...)
			if err == nil || stdout != "" {
				t.Fatalf("it is not refused: %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in: %v", want, err)
				}
			}
		})
	}
}

// TestCatalogOfImage: the commands for catalogs accept images, too.
func TestCatalogOfImage(t *testing.T) {
	r := registry.Serve(t)
	at := reached(t, r)
	image := "oci://" + r.Push(t, example("catalog"), "ns/catalog:v1")
	bundle := "oci://" + r.Push(t, example("lighthouse-bundles", "v1.1.0"), "lighthouse/bundle:v1.1.0")
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"resolve":      {args: []string{"resolve", "--catalog", image, "--package", "lighthouse"}, want: "lighthouse.v1.2.0 1.2.0 from catalog catalog\n"},
		"lint":         {args: []string{"lint", image}},
		"graph":        {args: []string{"graph", image, "--package", "lighthouse", "--channel", "stable"}, want: "1.1.0"},
		"diff":         {args: []string{"diff", example("catalog"), image}, want: "nothing changes\n"},
		"of a bundle":  {args: []string{"lint", bundle}, status: wrongInput, want: "has no catalog in it"},
		"of nothing":   {args: []string{"diff", image, "oci://" + r.Host + "/ns/catalog:v9"}, status: wrongInput, want: r.Host + "/ns/catalog:v9"},
		"of no tag":    {args: []string{"lint", "oci://catalog"}, status: wrongInput, want: "registry, repository, and tag or digest"},
		"not anywhere": {args: []string{"lint", "oci://"}, status: wrongInput, want: "registry, repository, and tag or digest"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, status, err := runCatalog(append(c.args, at...)...)
			if said := stdout; status != c.status {
				t.Errorf("status %d, want %d: %v", status, c.status, err)
			} else if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && !strings.Contains(said, c.want) {
				t.Errorf("%q is missing in %s, %v", c.want, said, err)
			}
		})
	}
}

// TestProviders: the error names the packages in catalogs that provide a bundle's requirements.
func TestProviders(t *testing.T) {
	r := registry.Serve(t)
	needy := t.TempDir()
	if err := os.CopyFS(needy, os.DirFS(example("lighthouse-bundles", "v1.1.0"))); err != nil {
		t.Fatal(err)
	}
	dependencies := "dependencies:\n- type: olm.gvk\n  value: {group: lighthouse.example.com, kind: Lens, version: v1}\n" +
		"- type: olm.package\n  value: {packageName: lenses, version: '>=1.0.0'}\n- type: olm.package\n  value: {packageName: mirrors, version: '>=1.0.0'}\n"
	if err := os.WriteFile(filepath.Join(needy, "metadata", "dependencies.yaml"), []byte(dependencies), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Push(t, needy, "lighthouse/bundle:v1.1.0")
	lenses := filepath.Join(t.TempDir(), "lenses.yaml")
	more := "schema: olm.package\nname: lenses\n---\nschema: olm.bundle\nname: lenses.v1\npackage: lenses\nimage: x\nproperties:\n" +
		"- type: olm.gvk\n  value: {group: lighthouse.example.com, kind: Lens, version: v1}\n"
	if err := os.WriteFile(lenses, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := runRender("", append(inLighthouse("--catalog", example("catalog"), "--catalog", lenses, "--package", "lighthouse", "--version", "1.1.0"), reached(t, r)...)...)
	for _, want := range []string{
		"kind Lens of lighthouse.example.com/v1, which is in package lenses", "package lenses >=1.0.0, which is in package lenses",
		"package mirrors >=1.0.0, which no package of the catalogs has",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}
