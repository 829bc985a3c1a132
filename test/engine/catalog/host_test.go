//go:build integration

// Package catalog_test runs the controller of ClusterCatalogs against a real kube-apiserver
// and registries on loopback.
package catalog_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/catalog/contentserver"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/controller/catalog"
	"github.com/penstock-project/penstock/test/framework/await"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// host is a cluster that serves ClusterCatalogs.
type host struct {
	*cluster.Cluster
	core    kubernetes.Interface
	objects dynamic.Interface
}

func newHost(t *testing.T) *host {
	t.Helper()
	c := cluster.Start(t)
	w := &host{Cluster: c}
	var err error
	if w.core, err = kubernetes.NewForConfig(c.Config()); err != nil {
		t.Fatal(err)
	}
	if w.objects, err = dynamic.NewForConfig(c.Config()); err != nil {
		t.Fatal(err)
	}
	c.MustKubectlInput(string(clustercatalog.Definition().YAML()), "apply", "-f", "-")
	c.MustKubectl("wait", "--for=condition=Established", "crd", clustercatalog.DefinitionName)
	return w
}

func (w *host) catalogs() dynamic.ResourceInterface {
	return w.objects.Resource(clustercatalog.Resource)
}

// create creates a ClusterCatalog until the test ends.
func (w *host) create(t *testing.T, name, ref string, more ...string) {
	t.Helper()
	manifest := fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {name: %s}, spec: {source: {type: Image, image: {ref: %q", name, ref)
	if len(more) > 0 {
		manifest += ", " + more[0]
	}
	w.In(t).MustKubectlInput(manifest+"}}}}", "create", "-f", "-")
	t.Cleanup(func() {
		_, _ = w.catalogs().Patch(context.Background(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		_ = w.catalogs().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

func (w *host) get(t *testing.T, name string) (*clustercatalog.Catalog, *unstructured.Unstructured) {
	t.Helper()
	object, err := w.catalogs().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	read, err := clustercatalog.From(object)
	if err != nil {
		t.Fatal(err)
	}
	return read, object
}

// await waits for a state of a catalog and returns the catalog.
func (w *host) await(t *testing.T, name, what string, is func(*clustercatalog.Catalog) bool) *clustercatalog.Catalog {
	t.Helper()
	var last *clustercatalog.Catalog
	await.Object(t, w.catalogs(), name, what, func(object *unstructured.Unstructured) (done bool, err error) {
		if object == nil {
			return false, nil
		}
		if last, err = clustercatalog.From(object); err != nil {
			return false, err
		}
		return is(last), nil
	})
	return last
}

// condition returns "status/reason" of a condition of the current generation, or "".
func condition(c *clustercatalog.Catalog, kind string) string {
	for _, one := range c.Status.Conditions {
		if one.Type == kind && one.ObservedGeneration == c.Generation {
			return string(one.Status) + "/" + one.Reason
		}
	}
	return ""
}

func message(c *clustercatalog.Catalog, kind string) string {
	for _, one := range c.Status.Conditions {
		if one.Type == kind {
			return one.Message
		}
	}
	return ""
}

// uses reports whether a catalog's status names a digest and says that it is served.
func uses(digest string) func(*clustercatalog.Catalog) bool {
	return func(c *clustercatalog.Catalog) bool {
		return condition(c, clustercatalog.Serving) == "True/Available" && condition(c, clustercatalog.Progressing) == "True/Succeeded" &&
			len(c.Resolved()) > len(digest) && c.Resolved()[len(c.Resolved())-len(digest):] == digest
	}
}

// replica is one process of Penstock.
type replica struct {
	*catalog.Controller
	inventory *inventory.Inventory
	served    *httptest.Server
	stop      func()
	lead      func() (retire func())
}

// settings configures a replica.
type settings struct {
	dir      string
	images   image.Options
	clock    clock.WithTicker
	takeOver bool
	// trusts is the catalogd whose certificate the replica trusts.
	trusts *httptest.Server
}

// start runs a replica until the test ends or the replica is stopped.
func (w *host) start(t *testing.T, s settings) *replica {
	t.Helper()
	folder, err := catalog.OpenFolder(s.dir, s.images)
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := metadata.NewForConfig(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	if s.clock == nil {
		s.clock = clock.RealClock{}
	}
	r := &replica{inventory: inventory.New(clock.RealClock{})}
	client := &http.Client{}
	if s.trusts != nil {
		client = s.trusts.Client()
	}
	r.Controller = catalog.New(catalog.Options{
		Clients: catalog.Clients{Catalogs: w.objects, Definitions: definitions, Leases: w.core},
		Images:  folder.Images, Indexes: folder.Indexes, Contents: folder.Contents, Inventory: r.inventory, Clock: s.clock,
		Credentials: &catalog.PullSecrets{Client: w.core, ServiceAccount: types.NamespacedName{Namespace: "default", Name: "penstock"}, Dir: folder.Private},
		Catalogd:    func() (*http.Client, error) { return client, nil },
		SeesLeases:  true, CatalogdNamespaces: clustercatalog.CatalogdNamespaces(), TakeOver: s.takeOver, Base: "https://penstock.example.svc:8444/catalogs",
	})
	r.served = httptest.NewServer(contentserver.NewHandler(r.Served))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	r.lead = func() func() {
		leading, retire := context.WithCancel(ctx)
		var led sync.WaitGroup
		led.Go(func() { r.Lead(leading) })
		return func() { retire(); led.Wait() }
	}
	r.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		r.served.Close()
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// leader starts a replica that leads.
func (w *host) leader(t *testing.T, s settings) *replica {
	r := w.start(t, s)
	r.lead()
	return r
}

// content returns the served content of a catalog, or "".
func (r *replica) content(t *testing.T, name string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.served.URL+"/catalogs/"+name+"/api/v1/all", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := r.served.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return string(body)
	case http.StatusNotFound:
		return ""
	}
	t.Fatalf("the answer is %s: %s", answer.Status, body)
	return ""
}

// knows waits for a state of a replica's inventory.
func (r *replica) knows(t *testing.T, what string, is func(*inventory.Snapshot) bool) {
	t.Helper()
	deadline := time.After(poll.Patience)
	for {
		now := r.inventory.Snapshot()
		if is(now) {
			return
		}
		select {
		case <-now.Outdated():
		case <-deadline:
			t.Fatalf("waiting for the inventory: %s; it has %+v", what, now.Catalogs())
		}
	}
}

// has returns a function that reports whether an inventory has a package of a catalog.
func has(catalog, pkg string) func(*inventory.Snapshot) bool {
	return func(s *inventory.Snapshot) bool {
		found := s.Catalog(catalog)
		if found == nil || found.Index == nil {
			return false
		}
		config, err := found.Index.Package(pkg)
		return err == nil && config != nil
	}
}

// eventually polls for a state that no watch reports.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := poll.Until(t.Context(), func(context.Context) bool { return is() })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// pkg returns a catalog with one package.
func pkg(name string) string {
	return fmt.Sprintf(`---
{schema: olm.package, name: %[1]s, defaultChannel: stable}
---
{schema: olm.channel, package: %[1]s, name: stable, entries: [{name: %[1]s.v1.0.0}]}
---
{schema: olm.bundle, package: %[1]s, name: %[1]s.v1.0.0, image: "r.example/%[1]s:1", properties: [{type: olm.package, value: {packageName: %[1]s, version: 1.0.0}}]}
`, name)
}
