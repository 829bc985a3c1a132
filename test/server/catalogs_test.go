//go:build integration

package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/registry"
)

const lampCatalog = `{"schema":"olm.package","name":"lamp","defaultChannel":"stable"}
{"schema":"olm.channel","package":"lamp","name":"stable","entries":[{"name":"lamp.v1.0.0"}]}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v1.0.0","image":"r.example/lamp:1","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.0.0"}}]}
`

// TestClusterCatalogs runs the program with the rights of artifacts/deploy. An existing definition
// is used and stays. A catalog is pulled, and served over TLS without credentials. Without a
// definition, registration creates it, and unregister deletes it if it is not used.
func TestClusterCatalogs(t *testing.T) {
	c := borrow(t)
	program := penstock.Build(t)
	images := registry.Serve(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "catalog.json"), []byte(lampCatalog), 0o600); err != nil {
		t.Fatal(err)
	}
	ref := images.Push(t, folder, "c/lamp")
	flags := []string{"--registry-cas-dir=" + images.Dir, "--registry-auth-file=" + filepath.Join(images.Dir, registry.AuthFile)}
	const crd = "crd/" + clustercatalog.DefinitionName
	c.MustKubectl("delete", "--ignore-not-found", crd)
	theirs := strings.ReplaceAll(string(clustercatalog.Definition().YAML()), "app.kubernetes.io/managed-by: penstock", "team: olm")
	c.MustKubectlInput(strings.Replace(theirs, "name: LastUnpacked", "name: Unpacked", 1), "create", "-f", "-")
	read := func() string {
		return c.MustKubectl("get", crd, "-o", "jsonpath={.metadata.uid} {.metadata.generation} {.metadata.labels}")
	}
	before := read()
	dir := penstock.DataDir(t)
	server := program.Serve(t, c, dir, flags...)
	served(t, c, ref)
	base := c.MustKubectl("get", "clustercatalog", "lamp", "-o", "jsonpath={.status.urls.base}")
	if got := fetchCatalog(t, c, base+"/api/v1/all"); got != lampCatalog {
		t.Errorf("%s served %q, want %q", base, got, lampCatalog)
	}
	if got := fetchCatalog(t, c, base+"/api/v1/metas?schema=olm.channel"); strings.Count(got, "\n") != 1 {
		t.Errorf("the channels are %q", got)
	}
	eventually(t, "its package is listed", func() error {
		out := c.Kubectl("get", "cpkg", "lamp", "-o", "jsonpath={.catalog} {.latest} {.versions[*].version}")
		return missing(out.Stdout+out.Stderr, []string{"lamp 1.0.0 1.0.0"})
	})
	metrics := server.Fetch(t, c.Config(), "/metrics")
	for _, want := range []string{`penstock_catalog_last_pull_success{catalog="lamp"} 1`, `penstock_catalog_packages{catalog="lamp"} 1`, fmt.Sprintf(`penstock_catalog_content_bytes{catalog="lamp"} %d`, len(lampCatalog))} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	removes := func(catalogs, extensions bool) {
		t.Helper()
		out := program.MustRun(t, "", "unregister", "--kubeconfig", c.Kubeconfig())
		for name, want := range map[string]bool{clustercatalog.DefinitionName: catalogs, extension.DefinitionName: extensions} {
			if strings.Contains(out, "customresourcedefinition "+name+" deleted") != want {
				t.Errorf("unregister (does it remove %s: %v) says:\n%s", name, want, out)
			}
		}
	}
	c.MustKubectl("delete", "clustercatalog", "lamp")
	eventually(t, "its package is listed no more", func() error {
		return missing(c.Kubectl("get", "cpkg", "lamp").Stderr, []string{`"lamp" not found`})
	})
	removes(false, true)
	if after := read(); after != before {
		t.Errorf("another owner's definition changed from %s to %s", before, after)
	}
	server.Stop(t)

	c.MustKubectl("delete", crd)
	c.MustKubectl("annotate", "namespace", "penstock-system", "penstock.dev/unregistered-at-")
	server = program.Serve(t, c, dir, flags...)
	served(t, c, ref)
	if ours := read(); !strings.Contains(ours, `"app.kubernetes.io/managed-by":"penstock"`) {
		t.Errorf("Penstock's definition is %s", ours)
	}
	wanted(t, c, "lamp")
	removes(false, false)
	c.MustKubectl("delete", "clustercatalog", "lamp")
	removes(true, false)
	c.MustKubectl("delete", "clusterextension", "lamp")
	removes(false, true)
	server.Stop(t)
}

// served creates a catalog and waits until it is served.
func served(t *testing.T, c *cluster.Cluster, ref string) {
	t.Helper()
	c.MustKubectl("wait", "--for=condition=Established", poll.TimeoutFlag, "crd/"+clustercatalog.DefinitionName)
	eventually(t, "the catalog is created", func() error {
		if out := c.KubectlInput(catalogOf("lamp", ref), "apply", "-f", "-"); out.ExitCode != 0 {
			return missingError{out.Stderr} // kube-apiserver serves the kind slightly after Established
		}
		return nil
	})
	c.MustKubectl("wait", "--for=condition=Serving", poll.TimeoutFlag, "clustercatalog/lamp")
}

// wanted creates an extension as soon as its kind is served.
func wanted(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	c.MustKubectl("wait", "--for=condition=Established", poll.TimeoutFlag, "crd/"+extension.DefinitionName)
	eventually(t, "the extension is created", func() error {
		if out := c.KubectlInput("{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: "+name+
			"}, spec: {namespace: lighthouse, source: {sourceType: Catalog, catalog: {packageName: "+name+"}}}}", "apply", "-f", "-"); out.ExitCode != 0 {
			return missingError{out.Stderr} // as above
		}
		return nil
	})
}

func catalogOf(name, ref string) string {
	return "{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {name: " + name + "}, spec: {source: {type: Image, image: {ref: '" + ref + "'}}}}"
}

// fetchCatalog reads a URL below status.urls.base as a client does: without credentials, and with
// Penstock's authority.
func fetchCatalog(t *testing.T, c *cluster.Cluster, url string) string {
	t.Helper()
	encoded := c.MustKubectl("get", "secret", "penstock-ca", "--namespace=penstock-system", "-o", "jsonpath={.data.tls\\.crt}")
	authority, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s: %s (%v)", url, answer.Status, content, err)
	}
	return string(content)
}
