//go:build integration

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/catalog/inventory/inventorytest"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/generated/informers/externalversions"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// rope is a catalog with a small package.
const rope = `{"schema":"olm.package","name":"rope","defaultChannel":"stable","description":"Ties things.","icon":{"base64data":"aGk=","mediatype":"image/png"}}
{"schema":"olm.channel","package":"rope","name":"stable","entries":[{"name":"rope.v1.0.0"}]}
{"schema":"olm.bundle","package":"rope","name":"rope.v1.0.0","properties":[{"type":"olm.package","value":{"packageName":"rope","version":"1.0.0"}}]}
`

// exampleCatalogs returns an inventory with the example catalog and a second catalog.
func exampleCatalogs(t *testing.T) *inventory.Inventory {
	t.Helper()
	return inventorytest.Of(
		inventorytest.FromDirectory(t, "examples", os.DirFS("../../artifacts/examples/catalog/lighthouse")),
		inventorytest.FromText(t, "others", rope),
	)
}

// catalogPackages reads packages from a server with these catalogs, as users do.
func catalogPackages(t *testing.T, w servedHost, catalogs *inventory.Inventory) {
	c := w.In(t)
	t.Run("Manners", func(t *testing.T) { packageManners(t, w) })
	t.Run("Read", func(t *testing.T) { readPackages(t, c.In(t), catalogs) })
	t.Run("Installed", func(t *testing.T) { installedPackages(t, w) })
	t.Run("Hub", func(t *testing.T) { realPackages(t, c.In(t), catalogs) })
	t.Run("Watch", func(t *testing.T) { watchPackages(t, c.In(t), catalogs) })
}

func packageBreed() breed {
	return breed{
		kind: "CatalogPackage", singular: "catalogpackage", finalizer: "example.com/held",
		resource: catalogv1alpha1.SchemeGroupVersion.WithResource("catalogpackages"), knob: []string{"none of it"},
	}
}

// packageManners compares reads of packages with reads of a cluster-scoped type of the host.
// Packages cannot be written.
func packageManners(t *testing.T, w servedHost) {
	const fields = `supported are metadata.name, catalog, defaultChannel, latest and deprecated`
	read := manner{do: readsOfNothing, deviations: []deviation{
		{what: "unsupported field", host: `…"spec.nonsense" is not a known field selector: only "metadata.name"…`, ours: `…field label not supported: "spec.nonsense", ` + fields, why: "there are more fields to select by"},
		noProtobuf("no such table"),
		{what: "watch from nonsense", host: "HTTP500…", ours: "HTTP400…", why: "the mistake is the client's"},
		{what: "create", host: "HTTP422…", ours: "HTTP405 MethodNotAllowed", why: "nothing can be written"},
		{what: "delete all", host: "HTTP200…", ours: "HTTP405 MethodNotAllowed", why: "nothing can be written"},
	}}
	want := read.see(t, w, ingressClass(), "packagemanners")
	got := read.see(t, w, packageBreed(), "packagemanners")
	expected := read.deviate(t, "CatalogPackage", want, got)
	for _, what := range expected.differences(got) {
		t.Errorf("%s:\nIngressClass\t%s\nCatalogPackage\t%s", what, expected.values[what], got.values[what])
	}
}

// readsOfNothing are reads with an empty result or an error.
func readsOfNothing(s *subject) {
	get := func(what, query string) {
		s.answered(what, call{method: http.MethodGet, query: query})
	}
	s.answered("unknown", call{method: http.MethodGet, name: "none"})
	s.answered("unsupported field", call{method: http.MethodGet, query: "fieldSelector=spec.nonsense%3Dx"})
	get("nonsense fields", "fieldSelector="+url.QueryEscape("a b"))
	get("nonsense labels", "labelSelector="+url.QueryEscape("a in b"))
	get("invalid labels", "labelSelector="+url.QueryEscape("a=b c"))
	get("nonsense limit", "limit=many")
	get("nonsense token", "limit=2&continue=nonsense")
	get("token of another path", "limit=2&continue="+tokenOf(1, "../../"))
	get("match without version", "resourceVersionMatch=Exact")
	get("nonsense match", "resourceVersionMatch=Nonsense&resourceVersion=1")
	get("exact zero", "resourceVersionMatch=Exact&resourceVersion=0")
	get("nonsense version", "resourceVersion=nonsense")
	s.hint("future", call{method: http.MethodGet, query: "resourceVersion=9223372036854775806"})
	get("watch from nonsense", "watch=true&resourceVersion=nonsense")
	get("nonsense timeout", "watch=true&timeoutSeconds=never")
	get("initial events of no watch", "sendInitialEvents=true")
	s.hint("create", call{method: http.MethodPost, body: map[string]any{}})
	s.hint("delete all", call{method: http.MethodDelete, query: "labelSelector=scenario%3Dnone"})
	s.answered("no such table", call{method: http.MethodGet, accept: "application/json;as=Nonsense;v=v1;g=meta.k8s.io"})
	for what, accept := range map[string]string{"table": tableAccept, "metadata": metadataList} {
		answer := s.ask(call{method: http.MethodGet, accept: accept, query: "labelSelector=scenario%3Dnone"})
		s.note(what, "%d %v", answer.code, answer.body["kind"])
	}
	s.run("kubectl of nothing", "", "get", s.qualified(), "-l", "scenario=none")
	s.run("kubectl of an unknown one", "", "get", s.qualified(), "none")
}

// fixed removes the padding from a table, because its width depends on other rows.
func fixed(table string) []string {
	var lines []string
	for line := range strings.Lines(table) {
		lines = append(lines, regexp.MustCompile(` {2,}`).ReplaceAllString(strings.TrimSpace(line), "  "))
	}
	return lines
}

func sameTable(t *testing.T, what, got string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, fixed(got)); diff != "" {
		t.Errorf("%s: (-want +got)\n%s", what, diff)
	}
}

func readPackages(t *testing.T, c *cluster.Cluster, catalogs *inventory.Inventory) {
	catalogs.Put(inventorytest.FromText(t, "odd", `{"schema":"olm.package","name":"../odd"}`))
	all := c.Kubectl("get", "cpkg")
	catalogs.Remove("odd")
	sameTable(t, "all", all.Stdout,
		"NAME  CATALOG  CHANNELS  DEFAULT  LATEST  INSTALLED  DESCRIPTION",
		"lighthouse  examples  candidate,stable  stable  1.2.0  An example operator without a program behind its images. It keeps Beacons bur…",
		"rope  others  stable  stable  1.0.0  Ties things.")
	if !strings.Contains(all.Stderr, "1 package is left out: its name is not a valid object name") {
		t.Errorf("no warning mentions the invalid name: %q", all.Stderr)
	}
	sameTable(t, "by catalog", c.MustKubectl("get", "catalogpackages", "-l", "catalog=others", "--no-headers"), "rope  others  stable  stable  1.0.0  Ties things.")
	sameTable(t, "by field", c.MustKubectl("get", "cpkg", "--field-selector=defaultChannel=stable,latest=1.2.0", "-o", "name"), "catalogpackage.catalog.penstock.dev/lighthouse")
	sameTable(t, "in pages", c.MustKubectl("get", "cpkg", "--chunk-size=1", "-o", "name"), "catalogpackage.catalog.penstock.dev/lighthouse", "catalogpackage.catalog.penstock.dev/rope")
	sameTable(t, "versions", c.MustKubectl("get", "cpkg", "lighthouse", "--subresource=versions", "-o", "wide"),
		"VERSION  CHANNELS  REPLACES  SKIPS  DEPRECATED  SUPPORTED  BUNDLE  IMAGE",
		"1.2.0  candidate  1.1.0  >=1.0.0 <1.2.0  true  lighthouse.v1.2.0  registry.example.com/lighthouse/bundle:v1.2.0",
		"1.1.0  candidate,stable  1.0.0  true  lighthouse.v1.1.0  registry.example.com/lighthouse/bundle:v1.1.0",
		"1.0.0  candidate,stable  1.0.0 is no longer supported; upgrade to 1.1.0.  true  lighthouse.v1.0.0  registry.example.com/lighthouse/bundle:v1.0.0")
	sameTable(t, "graph", c.MustKubectl("get", "cpkg", "lighthouse", "--subresource=graph"),
		"CHANNEL  VERSION  UPGRADE OF  PATH  DEPRECATED",
		"candidate  1.2.0  replaces 1.1.0; skips the range >=1.0.0 <1.2.0",
		"candidate  1.1.0  replaces 1.0.0",
		"candidate  1.0.0  1.0.0 is no longer supported; upgrade to 1.1.0.",
		"stable (default)  1.1.0  replaces 1.0.0",
		"stable (default)  1.0.0  1.0.0 is no longer supported; upgrade to 1.1.0.")
	const at = "/apis/catalog.penstock.dev/v1alpha1/catalogpackages/"
	var drawn catalogv1alpha1.CatalogPackageGraph
	readJSON(t, c.MustKubectl("get", "--raw", at+"lighthouse/graph?from=1.0.0&to=1.2.0&channel=candidate"), &drawn)
	if len(drawn.Upgrades) != 3 || len(drawn.Entries) != 3 || len(drawn.Paths) != 1 || len(drawn.Paths[0].Versions) != 1 {
		t.Errorf("graph: %+v", drawn)
	}
	if out := c.Kubectl("get", "--raw", at+"lighthouse/graph?from=7.0.0"); !strings.Contains(out.Stderr, "the package has no such version or bundle") {
		t.Errorf("from a version that does not exist: %+v", out)
	}
	var icon catalogv1alpha1.CatalogPackageIcon
	readJSON(t, c.MustKubectl("get", "cpkg", "rope", "--subresource=icon", "-o", "json"), &icon)
	if string(icon.Data) != "hi" || icon.MediaType != "image/png" {
		t.Errorf("icon: %+v", icon)
	}
	if yaml := c.MustKubectl("get", "cpkg", "rope", "-o", "yaml"); strings.Contains(yaml, "aGk=") || !strings.Contains(yaml, "versionCount: 1") {
		t.Errorf("the package itself has no icon: %s", yaml)
	}
	if explained := c.MustKubectl("explain", "cpkg.channels"); !strings.Contains(explained, "latest is the highest version in the channel") {
		t.Errorf("explain: %s", explained)
	}
	if listed := c.MustKubectl("api-resources", "--api-group=catalog.penstock.dev"); !regexp.MustCompile(`catalogpackages +cpkg +catalog\.penstock\.dev/v1alpha1 +false +CatalogPackage`).MatchString(listed) {
		t.Errorf("discovery: %s", listed)
	}
}

func readJSON(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// installedPackages: only users who can list revisions see the installed packages.
func installedPackages(t *testing.T, w servedHost) {
	c := w.In(t)
	const annotated = "metadata:\n  annotations: {olm.operatorframework.io/package-name: lighthouse, olm.operatorframework.io/bundle-version: 1.0.0}\n"
	c.MustKubectlInput(strings.Replace(revision("packagesread", 1), "metadata:\n", annotated, 1), "create", "-f", "-")
	inside, err := versioned.NewForConfig(w.server.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	revisions := inside.OlmV1alpha1().ClusterExtensionRevisions()
	eventually(t, "the revision succeeds", func() error {
		stored, err := revisions.Get(t.Context(), "packagesread-1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		stored.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "RolledOut", LastTransitionTime: metav1.Now()}}
		_, err = revisions.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
		return err
	})
	c.MustKubectl("create", "clusterrolebinding", "cpkg-viewer", "--clusterrole=view", "--user=cpkg-viewer")
	c.MustKubectl("create", "clusterrolebinding", "cpkg-only", "--clusterrole=penstock-catalog-viewer", "--user=cpkg-only")
	installed := func(user, want string) {
		t.Helper()
		as := c.User(user)
		eventually(t, "what "+user+" sees", func() error {
			out := as.Kubectl("get", "cpkg", "lighthouse", "-o", "jsonpath={.installed[*].extension} {.installed[*].version}")
			if out.ExitCode != 0 || out.Stdout != want {
				return fmt.Errorf("want %q: %+v", want, out)
			}
			return nil
		})
	}
	installed("cpkg-viewer", "packagesread 1.0.0")
	installed("cpkg-only", " ")
	if table := c.User("cpkg-viewer").MustKubectl("get", "cpkg", "lighthouse", "--no-headers"); !strings.Contains(fixed(table)[0], "1.2.0  1.0.0  An example") {
		t.Errorf("INSTALLED: %s", table)
	}
	sameTable(t, "the way from what is installed", c.User("cpkg-viewer").MustKubectl("get", "cpkg", "lighthouse", "--subresource=graph", "--no-headers"),
		"candidate  1.2.0  replaces 1.1.0; skips the range >=1.0.0 <1.2.0  1.2.0",
		"candidate  1.1.0  replaces 1.0.0  1.1.0",
		"candidate  1.0.0  (installed)  1.0.0 is no longer supported; upgrade to 1.1.0.",
		"stable (default)  1.1.0  replaces 1.0.0  1.1.0",
		"stable (default)  1.0.0  (installed)  1.0.0 is no longer supported; upgrade to 1.1.0.")
	if out := c.User("cpkg-only").MustKubectl("get", "--raw", "/apis/catalog.penstock.dev/v1alpha1/catalogpackages/lighthouse/graph"); strings.Contains(out, "packagesread") {
		t.Errorf("a user who cannot list revisions sees an extension: %s", out)
	}
	if out := c.User("cpkg-nobody").Kubectl("get", "cpkg"); !strings.Contains(out.Stderr, "Forbidden") {
		t.Errorf("a user without rights reads packages: %+v", out)
	}
}

// realPackages: kubectl lists and prints a real catalog.
func realPackages(t *testing.T, c *cluster.Cluster, catalogs *inventory.Inventory) {
	if os.Getenv("FULL") != "1" {
		t.Skip("FULL=1 reads OperatorHub's catalog")
	}
	hub := inventorytest.FromFile(t, "hub", "../../../shared/data/catalogs/operatorhub.jsonl.zst")
	hub.Priority = -1
	catalogs.Put(hub)
	defer catalogs.Remove("hub")
	if lines := fixed(c.MustKubectl("get", "cpkg", "-l", "catalog=hub", "--no-headers")); len(lines) < 300 {
		t.Errorf("%d packages", len(lines))
	}
	for _, subresource := range []string{"versions", "graph"} {
		if lines := fixed(c.MustKubectl("get", "cpkg", "argocd-operator", "--subresource="+subresource, "--no-headers")); len(lines) < 10 {
			t.Errorf("%d %s", len(lines), subresource)
		}
	}
}

// watchPackages: an informer and kubectl wait follow changes of catalogs.
func watchPackages(t *testing.T, c *cluster.Cluster, catalogs *inventory.Inventory) {
	clients, err := versioned.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 100)
	name := func(object any) string { return object.(*catalogv1alpha1.CatalogPackage).Name }
	factory := externalversions.NewSharedInformerFactory(clients, 0)
	informer := factory.Catalog().V1alpha1().CatalogPackages().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { seen <- "added " + name(object) },
		UpdateFunc: func(_, object any) {
			seen <- "updated " + name(object) + " " + object.(*catalogv1alpha1.CatalogPackage).Latest
		},
		DeleteFunc: func(object any) { seen <- "deleted " + name(object) },
	}); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	expect := func(want ...string) {
		t.Helper()
		got := map[string]bool{}
		for range want {
			select {
			case one := <-seen:
				got[one] = true
			case <-time.After(poll.Patience):
				t.Fatalf("an informer saw %v, want %v", got, want)
			}
		}
		for _, one := range want {
			if !got[one] {
				t.Errorf("an informer saw %v, want %v", got, want)
			}
		}
	}
	expect("added lighthouse", "added rope")
	later := inventorytest.FromText(t, "others", strings.ReplaceAll(rope, "1.0.0", "1.1.0"))
	catalogs.Put(later)
	expect("updated rope 1.1.0")
	catalogs.Remove("others")
	expect("deleted rope")
	catalogs.Put(later)
	expect("added rope")

	// kubectl lists, and watches from that version.
	core, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	request := core.RESTClient().Get().AbsPath("/apis/catalog.penstock.dev/v1alpha1/catalogpackages").
		Param("watch", "true").Param("resourceVersion", "12345").SetHeader("Accept", "application/json")
	if err := request.Do(t.Context()).Error(); err == nil || !strings.Contains(err.Error(), "too old resource version") {
		t.Errorf("from a resource version that is too old: %v", err)
	}
	waited := make(chan cluster.Output, 1)
	go func() { waited <- c.Kubectl("wait", "cpkg/rope", "--for=jsonpath={.latest}=2.0.0", poll.TimeoutFlag) }()
	catalogs.Put(inventorytest.FromText(t, "others", strings.ReplaceAll(rope, "1.0.0", "2.0.0")))
	if out := <-waited; out.ExitCode != 0 {
		t.Errorf("kubectl wait: %+v", out)
	}
}
