//go:build integration

package server_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/hack/release/chart"
	"github.com/penstock-project/penstock/test/framework/client"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/drafts"
	"github.com/penstock-project/penstock/test/framework/objects"
	"github.com/penstock-project/penstock/test/framework/packages"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/plugin"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// releasesFolder has a folder for each release, made by hack/release-store.sh, with its store and
// its chart.
const releasesFolder = "testdata/releases"

// formerReleases returns the folders.
func formerReleases(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(releasesFolder, "*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s has no releases: %v", releasesFolder, err)
	}
	return found
}

// site is a host with Penstock, for an administrator.
type site struct {
	*cluster.Cluster
	t       *testing.T
	dataDir string
	flags   []string
	admin   *client.Client
}

func newSite(t *testing.T, namespace string) *site {
	t.Helper()
	c := cluster.Start(t)
	return &site{Cluster: c, t: t, dataDir: penstock.DataDir(t), admin: client.New(t, c.Config(), namespace)}
}

// runs runs a command, which must succeed.
func (s *site) runs(line string) {
	s.t.Helper()
	if out := (plugin.User{Kubeconfig: s.Kubeconfig()}).Run(s.t, "kubectl penstock "+line); out.ExitCode != 0 {
		s.t.Fatal(out)
	}
}

// serve runs a program until the test ends or the server is stopped.
func (s *site) serve(program *penstock.Program) *penstock.Server {
	s.t.Helper()
	return program.Serve(s.t, s.Cluster, s.dataDir, s.flags...)
}

// TestRecordRelease makes the snapshot of a release. hack/release-store.sh runs it with the
// release's program.
func TestRecordRelease(t *testing.T) {
	folder := os.Getenv("RECORD_RELEASE")
	if folder == "" {
		t.Skip("RECORD_RELEASE names no folder: hack/release-store.sh does")
	}
	s := newSite(t, "shop")
	images := registry.Serve(t)
	s.flags = []string{"--registry-cas-dir=" + images.Dir, "--registry-auth-file=" + filepath.Join(images.Dir, registry.AuthFile)}
	clean := readContents(t, hostEtcd(t, s.Cluster), notOfPenstock).values()
	server := s.serve(penstock.Build(t))
	s.live(images)
	server.Stop(t)
	host := readContents(t, hostEtcd(t, s.Cluster), func(key string) bool { return notOfPenstock(key) || clean[key] != nil })
	snapshot{Store: storeIn(t, s.dataDir), Host: host}.write(t, filepath.Join(folder, "store.json.gz"))
}

// notOfPenstock reports whether a key of the host does not belong to a snapshot. The next Penstock
// registers itself, and Events and Leases expire.
func notOfPenstock(key string) bool {
	return !strings.HasPrefix(key, "/registry/") || slices.ContainsFunc([]string{"events", "leases", "masterleases", "apiregistration.k8s.io", "endpointslices", "health"},
		func(resource string) bool { return strings.HasPrefix(key, "/registry/"+resource) })
}

// live makes Penstock write every kind of record that outlives an upgrade.
func (s *site) live(images *registry.Registry) {
	t, admin := s.t, s.admin
	t.Helper()
	for _, name := range []string{"shop", "harbor"} {
		admin.Create("{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}")
	}
	// Revisions with a delta, a rollback, repaired drift, and a revision without an approval.
	for n, text := range []string{"one", "two", "three"} {
		name := fmt.Sprintf("shop-%d", n+1)
		admin.Create(shop(t, n+1, text).String())
		admin.Condition("cer/"+name, "Succeeded", "True")
		admin.Becomes("configmap/settings", ".data.text", text)
	}
	s.runs(`rollback shop --to 2 --yes --accept=critical --cause "three is slow"`)
	admin.Condition("cer/shop-4", "Succeeded", "True")
	admin.Becomes("cer/shop-3", ".spec.lifecycleState", "Archived")
	admin.Patch("configmap/settings", `{"data":{"text":"drifted"}}`)
	admin.Becomes("configmap/settings", ".data.text", "two")
	admin.Create(drafts.Revision("proposed", 1).With("lifecycleState", "Paused").
		Phase("all", drafts.Object(objects.ConfigMap("shop", "proposed", "x=1"))).String())

	// A plan that was approved and has run.
	root, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"definitions.yaml", "cluster.yaml", "plan-without-reboots.yaml"} {
		content, err := os.ReadFile(filepath.Join(root, "artifacts", "examples", "rebalancing", file))
		if err != nil {
			t.Fatal(err)
		}
		admin.Apply(string(content))
	}
	admin.Becomes("configplan/rebalance", ".status.phase", "ReviewRequired")
	s.runs("plan approve rebalance --wait --yes --hash " + admin.Field("configplan/rebalance", ".status.planHash"))
	admin.Is("configplan/rebalance", ".status.phase", "Completed")

	// An extension from a catalog.
	bundle := packages.Bundle{Package: "harbor", Version: "1.0.0"}.Push(t, images)
	ref := packages.PushFiles(t, images, "catalogs/harbor", map[string]string{"catalog.yaml": packages.Catalog(bundle)})
	admin.Create(packages.CatalogManifest("harbor", ref))
	admin.Condition("clustercatalog/harbor", "Serving", "True")
	admin.Create("{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: harbor}, spec: {namespace: harbor, source: {sourceType: Catalog, catalog: {packageName: harbor}}}}")
	// No controller of Deployments runs here.
	harbor := admin.At("harbor")
	harbor.There("deployment/harbor")
	harbor.PatchStatus("deployment/harbor", `{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,
"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`)
	admin.Condition("clusterextension/harbor", "Installed", "True")
}

// shop returns a revision of shop. Its large ConfigMap makes the packs of later revisions deltas.
func shop(t *testing.T, number int, text string) drafts.Draft {
	t.Helper()
	large := drafts.Object{}
	decode(t, []byte(formerManifests(number)[0]), &large)
	large["metadata"] = map[string]any{"name": "large", "namespace": "shop"}
	return drafts.Revision("shop", number).
		Phase("before", drafts.Definition("Crate"), large).
		Phase("work", drafts.Object(objects.ConfigMap("shop", "settings", "text="+text)), drafts.Object(objects.Secret("shop", "token", "text="+text)),
			drafts.Object(objects.ConfigMap("shop", "only-in-"+text, "x=1")), drafts.Instance("Crate", "shop", "crate"))
}

// ofWorkload reports whether a key of the host belongs to an object that Penstock has rolled out.
func ofWorkload(key string) bool {
	return strings.Contains(key, "/shop/") || strings.Contains(key, "/harbor/harbor") || strings.HasPrefix(key, "/registry/operator.openshift.io/kubedeschedulers/")
}

// TestFormerReleases upgrades the installation of each earlier release. With FORMER_PROGRAM, the
// program of a release, the store is downgraded again: hack/release-store.sh.
func TestFormerReleases(t *testing.T) {
	t.Parallel()
	program := penstock.Build(t)
	for _, folder := range formerReleases(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			left := readSnapshot(t, filepath.Join(folder, "store.json.gz"))
			s := newSite(t, "shop")
			client := hostEtcd(t, s.Cluster)
			left.Host.hostObjects(t, client)
			withStore(t, s.dataDir, func(client *clientv3.Client) { left.Store.storeRevisions(t, client) })
			s.admin.Delete("secret/token")
			before := readContents(t, client, func(key string) bool { return !ofWorkload(key) })
			if len(before.Writes) < 7 {
				t.Fatalf("the snapshot has %d objects of workloads", len(before.Writes))
			}

			server := s.serve(program)
			s.upgraded()
			after := readContents(t, client, func(key string) bool { return !ofWorkload(key) || key == "/registry/secrets/shop/token" })
			if diff := cmp.Diff(before.Writes, after.Writes); diff != "" {
				t.Errorf("an upgrade changes objects (-before +after):\n%s", diff)
			}
			s.worksOn()
			server.Stop(t)
			readable(t, left.Store, storeIn(t, s.dataDir))

			if path := os.Getenv("FORMER_PROGRAM"); path != "" {
				s.goesBack(penstock.At(path))
			}
		})
	}
}

// upgraded: everything that the former release stored is read and not changed.
func (s *site) upgraded() {
	t, admin := s.t, s.admin
	t.Helper()
	// The Secret was deleted while no Penstock ran. Once it exists again, the chain has had a pass.
	admin.There("secret/token")
	const names = "harbor-1 proposed-1 shop-1 shop-2 shop-3 shop-4"
	if found := s.MustKubectl("get", "cer", "--output=jsonpath={.items[*].metadata.name}"); found != names {
		t.Errorf("the revisions are %s, want %s", found, names)
	}
	for n, text := range []string{"one", "two", "three", "two"} {
		name := fmt.Sprintf("shop-%d", n+1)
		admin.Condition("cer/"+name, "Succeeded", "True")
		admin.Says(admin.Raw("GET", "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/"+name+"/manifests", ""), `{"text":"`+text+`"}`)
	}
	admin.Is("cer/proposed-1", ".spec.lifecycleState", "Paused")
	admin.Absent("configmap/proposed")
	for _, name := range []string{"shop-4", "harbor-1"} {
		admin.Condition("cer/"+name, "Available", "True")
	}
	history := admin.JSON("revisionhistory/shop")
	admin.Says(history, "three is slow", "shop-1", "shop-4", "data.text was changed by")
	admin.Says(admin.JSON("revisiondiff/shop-1..shop-2"), "settings", "only-in-one")
	admin.Is("clusterextension/harbor", ".status.install.bundle.version", "1.0.0")
	admin.Is("configplan/rebalance", ".status.phase", "Completed")
}

// worksOn: work that the former release began continues.
func (s *site) worksOn() {
	t, admin := s.t, s.admin
	t.Helper()
	uid := admin.Field("configmap/settings", ".metadata.uid")
	admin.Patch("configmap/settings", `{"data":{"text":"drifted"}}`)
	admin.Becomes("configmap/settings", ".data.text", "two")
	admin.Create(shop(t, 5, "five").String())
	admin.Condition("cer/shop-5", "Succeeded", "True")
	admin.Becomes("cer/shop-4", ".spec.lifecycleState", "Archived")
	admin.Gone("configmap/only-in-two")
	s.runs("rollback shop --to 1 --yes --accept=critical --cause back")
	admin.Condition("cer/shop-6", "Succeeded", "True")
	admin.Is("configmap/settings", ".data.text", "one")
	admin.Is("configmap/settings", ".metadata.uid", uid)
	admin.Patch("cer/proposed-1", `{"spec":{"lifecycleState":"Active"}}`)
	admin.Condition("cer/proposed-1", "Succeeded", "True")

	// The run of the former release is undone.
	s.runs("plan undo rebalance --run 1")
	admin.Becomes("configplan/rebalance", ".status.phase", "ReviewRequired")
	s.runs("plan approve rebalance --wait --yes --hash " + admin.Field("configplan/rebalance", ".status.planHash"))
	admin.At("openshift-kube-descheduler-operator").Is("kubedescheduler/cluster", ".spec.deschedulingIntervalSeconds", "3600")

	harbor := admin.At("harbor")
	harbor.Patch("configmap/harbor-config", `{"data":{"text":"drifted"}}`)
	harbor.Becomes("configmap/harbor-config", ".data.text", "1.0.0")
}

// readable checks that a downgrade is possible: a release must be able to read a format before a
// later release writes it.
func readable(t *testing.T, former, now contents) {
	t.Helper()
	known := formats(former)
	if len(known) < 5 {
		t.Errorf("the snapshot has records of these formats only: %v", known)
	}
	for magic, version := range formats(now) {
		if limit, ok := known[magic]; ok && version > limit {
			t.Errorf("records %s are written in format %d, and the former release has written %d: is the way back proven? See hack/release-store.sh", magic, version, limit)
		}
	}
}

// formats returns the newest version of each kind of record, by its magic bytes.
func formats(records contents) map[string]int {
	found := map[string]int{}
	for _, value := range records.values() {
		if len(value) > 3 && bytes.HasPrefix(value, []byte("PK")) {
			magic := string(value[:3])
			found[magic] = max(found[magic], int(value[3]))
		}
	}
	return found
}

// goesBack: the former release serves the records of the later release.
func (s *site) goesBack(former *penstock.Program) {
	t, admin := s.t, s.admin
	t.Helper()
	s.serve(former)
	admin.Condition("cer/shop-6", "Available", "True")
	admin.Patch("configmap/settings", `{"data":{"text":"drifted"}}`)
	admin.Becomes("configmap/settings", ".data.text", "one")
	admin.Says(admin.Raw("GET", "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/shop-5/manifests", ""), `{"text":"five"}`)
	s.runs("rollback shop --to 5 --yes --accept=critical --cause back")
	admin.Condition("cer/shop-7", "Succeeded", "True")
	admin.Is("configmap/settings", ".data.text", "five")
	admin.Becomes("configplan/rebalance", ".status.phase", "Completed")
}

// formerCharts replaces the chart of each former release by ours, and back, with its own values and
// without a conflict. Objects with data stay.
func formerCharts(t *testing.T, c *cluster.Cluster) {
	c.MustKubectlInput(drafts.Object(objects.Namespace("penstock-system")).String(), "apply", "--server-side", "-f", "-")
	for _, folder := range formerReleases(t) {
		former, err := chart.Load(filepath.Join(folder, "chart.tgz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []values{{}, values{}.set("store.mode", "external").set("replicas", 3).set("console.enabled", true)} {
			before, after := render(t, former, v), rendered(t, "v9.0.0", v)
			// Another field manager owned the objects before.
			c.MustKubectlInput(before, "delete", "--ignore-not-found", "--wait=false", "-f", "-")
			for _, stream := range []string{before, after, before} {
				c.MustKubectlInput(stream, "apply", "--server-side", "--field-manager=helm", "-f", "-")
			}
			for name := range withData(t, before) {
				if !withData(t, after)[name] {
					t.Errorf("%s: an upgrade of the chart deletes %s", folder, name)
				}
			}
			c.MustKubectlInput(before, "delete", "--ignore-not-found", "--wait=false", "-f", "-")
		}
	}
}

// withData returns the objects with data.
func withData(t *testing.T, stream string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for name := range comparable(t, stream) {
		if kind, _, _ := strings.Cut(name, "/"); kind == "PersistentVolumeClaim" || kind == "Secret" || kind == "Namespace" {
			found[name] = true
		}
	}
	return found
}
