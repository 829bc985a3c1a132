package server_test

import (
	"context"
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
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/registry"
)

const lampCatalog = `{"schema":"olm.package","name":"lamp","defaultChannel":"stable"}
{"schema":"olm.channel","package":"lamp","name":"stable","entries":[{"name":"lamp.v1.0.0"}]}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v1.0.0","image":"r.example/lamp:1","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.0.0"}}]}
`

// TestClusterCatalogs runs the program with the rights of artifacts/deploy: the definition
// comes with registration, a catalog is pulled and served over TLS without credentials, a
// restart needs no registry, and unregister takes only what nobody uses.
func TestClusterCatalogs(t *testing.T) {
	c := borrow(t)
	program := penstock.Build(t)
	images := registry.Serve(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "catalog.json"), []byte(lampCatalog), 0o600); err != nil {
		t.Fatal(err)
	}
	ref := images.Push(t, folder, "c/lamp")
	dir := penstock.DataDir(t)
	flags := []string{"--registry-cas-dir=" + images.Dir, "--registry-auth-file=" + filepath.Join(images.Dir, registry.AuthFile)}
	server := program.Serve(t, c, dir, flags...)
	c.MustKubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/"+clustercatalog.DefinitionName)
	c.MustKubectlInput(catalogOf("lamp", ref), "apply", "-f", "-")
	c.MustKubectl("wait", "--for=condition=Serving", "--timeout=60s", "clustercatalog/lamp")
	base := c.MustKubectl("get", "clustercatalog", "lamp", "-o", "jsonpath={.status.urls.base}")
	if got := fetchCatalog(t, c, base+"/api/v1/all"); got != lampCatalog {
		t.Errorf("what is served at %s is %q, want %q", base, got, lampCatalog)
	}
	if got := fetchCatalog(t, c, base+"/api/v1/metas?schema=olm.channel"); strings.Count(got, "\n") != 1 {
		t.Errorf("the channels are %q", got)
	}
	server.Await(t, "A catalog is in use")
	metrics := server.Fetch(t, c.Config(), "/metrics")
	for _, want := range []string{`penstock_catalog_last_pull_success{catalog="lamp"} 1`, `penstock_catalog_packages{catalog="lamp"} 1`, fmt.Sprintf(`penstock_catalog_content_bytes{catalog="lamp"} %d`, len(lampCatalog))} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}

	// A restart needs no registry.
	server.Stop(t)
	if err := images.Close(); err != nil {
		t.Fatal(err)
	}
	server = program.Serve(t, c, dir, flags...)
	eventually(t, "it is served after a restart", func() error {
		base = c.MustKubectl("get", "clustercatalog", "lamp", "-o", "jsonpath={.status.urls.base}")
		return tryFetch(t.Context(), c, base+"/api/v1/all", nil)
	})

	// A definition that others write to is theirs from then on.
	own := c.MustKubectl("get", "crd", clustercatalog.DefinitionName, "-o", "jsonpath={.metadata.labels.app\\.kubernetes\\.io/managed-by}")
	if own != "penstock" {
		t.Errorf("the definition is managed by %q", own)
	}
	unregister := func(want ...string) {
		t.Helper()
		out := program.MustRun(t, "", "unregister", "--kubeconfig", c.Kubeconfig())
		found := strings.Contains(out, "customresourcedefinition "+clustercatalog.DefinitionName+" deleted")
		if found != (len(want) > 0) {
			t.Errorf("unregister says:\n%s", out)
		}
	}
	unregister()
	c.MustKubectl("delete", "clustercatalog", "lamp")
	unregister("goes")
	c.MustKubectl("wait", "--for=delete", "--timeout=60s", "crd/"+clustercatalog.DefinitionName)
	server.Stop(t)

	// One of somebody else is used and stays as it is.
	c.MustKubectl("annotate", "namespace", "penstock-system", "penstock.dev/unregistered-at-")
	theirs := strings.ReplaceAll(string(clustercatalog.DefinitionYAML()), "app.kubernetes.io/managed-by: penstock", "team: olm")
	c.MustKubectlInput(strings.Replace(theirs, "name: LastUnpacked", "name: Unpacked", 1), "create", "-f", "-")
	c.MustKubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/"+clustercatalog.DefinitionName)
	spec := c.MustKubectl("get", "crd", clustercatalog.DefinitionName, "-o", "jsonpath={.metadata.generation} {.metadata.labels}")
	server = program.Serve(t, c, dir, flags...)
	c.MustKubectlInput(catalogOf("lamp", ref), "create", "-f", "-")
	// The image of that digest is on disk still, or the registry is asked, which is gone.
	c.MustKubectl("wait", "--for=jsonpath={.status.conditions[?(@.type==\"Progressing\")].status}=True", "--timeout=60s", "clustercatalog/lamp")
	if now := c.MustKubectl("get", "crd", clustercatalog.DefinitionName, "-o", "jsonpath={.metadata.generation} {.metadata.labels}"); now != spec {
		t.Errorf("somebody else's definition was %s and is %s", spec, now)
	}
	c.MustKubectl("delete", "clustercatalog", "lamp")
	unregister()
	c.MustKubectl("delete", "crd", clustercatalog.DefinitionName)
	server.Stop(t)
}

func catalogOf(name, ref string) string {
	return "{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {name: " + name + "}, spec: {source: {type: Image, image: {ref: '" + ref + "'}}}}"
}

// fetchCatalog reads a URL below status.urls.base as a client does: without credentials, and
// with the authority of Penstock.
func fetchCatalog(t *testing.T, c *cluster.Cluster, url string) string {
	t.Helper()
	var body string
	if err := tryFetch(t.Context(), c, url, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func tryFetch(ctx context.Context, c *cluster.Cluster, url string, body *string) error {
	encoded := c.MustKubectl("get", "secret", "penstock-ca", "--namespace=penstock-system", "-o", "jsonpath={.data.tls\\.crt}")
	authority, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, content)
	}
	if body != nil {
		*body = string(content)
	}
	return err
}
