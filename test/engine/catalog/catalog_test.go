//go:build integration

package catalog_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/controller/catalog"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// sample is the first manifest of OLM's documentation, unchanged.
const sample = `apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata:
  name: operatorhubio
spec:
  priority: 0
  source:
    type: Image
    image:
      pollIntervalMinutes: 10
      ref: quay.io/operatorhubio/catalog:latest
`

func TestCatalogs(t *testing.T) {
	w := newHost(t)
	for name, test := range map[string]func(*testing.T, *host){
		"Sample": testSample, "Refused": testRefused, "Credentials": testCredentials, "Outage": testOutage,
		"Restart": testRestart, "Tag": testTag, "Deleted": testDeleted, "Replicas": testReplicas,
		"Catalogd": testCatalogd, "TakeOver": testTakeOver, "Unavailable": testUnavailable, "Validation": testValidation,
		"Redefined": testRedefined, "Namesake": testNamesake,
	} {
		t.Run(name, func(t *testing.T) { test(t, &host{Cluster: w.In(t), core: w.core, objects: w.objects}) })
	}
}

// The upstream sample, pulled through a mirror. Columns and labels are those of catalogd.
func testSample(t *testing.T, w *host) {
	s := serve(t, "", "")
	digest := s.push(t, "hub/catalog:latest", pkg("lamp"))
	options := pulls(t, s)
	options.Registries.Conf = filepath.Join(t.TempDir(), "registries.conf")
	conf := fmt.Sprintf("[[registry]]\nprefix = \"quay.io/operatorhubio\"\nlocation = \"127.0.0.1:1/nothing\"\n[[registry.mirror]]\nlocation = %q\n", s.host+"/hub")
	if err := os.WriteFile(options.Registries.Conf, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	w.MustKubectlInput(sample, "apply", "-f", "-")
	defer func() { w.MustKubectl("delete", "clustercatalog", "operatorhubio", "--wait=false") }()
	r := w.leader(t, settings{dir: t.TempDir(), images: options})
	c := w.await(t, "operatorhubio", "the content of a mirror is served", uses(digest))
	if want := "quay.io/operatorhubio/catalog@" + digest; c.Resolved() != want {
		t.Errorf("the image is %s, want %s", c.Resolved(), want)
	}
	if want := "https://penstock.example.svc:8444/catalogs/operatorhubio"; c.Status.URLs.Base != want {
		t.Errorf("the URL is %s, want %s", c.Status.URLs.Base, want)
	}
	if c.Status.LastUnpacked == nil || c.Labels[clustercatalog.NameLabel] != "operatorhubio" || c.Spec.AvailabilityMode != "Available" {
		t.Errorf("the catalog is %+v", c)
	}
	r.knows(t, "the package is listed", has("operatorhubio", "lamp"))
	if got := r.content(t, "operatorhubio"); strings.Count(got, "\n") != 3 {
		t.Errorf("served %q", got)
	}
	out := w.MustKubectl("get", "clustercatalogs")
	if header := strings.Fields(strings.SplitN(out, "\n", 2)[0]); !slices.Equal(header, []string{"NAME", "LASTUNPACKED", "SERVING", "AGE"}) {
		t.Errorf("the columns are %v", header)
	}
	// Applying the same manifest again changes nothing.
	before := w.MustKubectl("get", "clustercatalog", "operatorhubio", "-o", "jsonpath={.metadata.resourceVersion}")
	w.MustKubectlInput(sample, "apply", "-f", "-")
	if after := w.MustKubectl("get", "clustercatalog", "operatorhubio", "-o", "jsonpath={.metadata.resourceVersion}"); after != before {
		t.Errorf("the object was written: its resource version changed from %s to %s", before, after)
	}
}

// The status names the error. An error that a retry cannot solve has the reason Blocked.
func testRefused(t *testing.T, w *host) {
	s := serve(t, "", "")
	bare := s.push(t, "c/bare:v1", pkg("lamp"), "other")
	broken := s.push(t, "c/broken:v1", "{\"schema\": \"olm.package\", \"name\": [}\n")
	for name, c := range map[string]struct{ ref, want, says string }{
		"no-label":        {"c/bare@" + bare, "False/Blocked", "operators.operatorframework.io.index.configs.v1"},
		"no-label-tag":    {"c/bare:v1", "True/Retrying", "operators.operatorframework.io.index.configs.v1"},
		"broken":          {"c/broken@" + broken, "False/Blocked", "catalog.yaml:1"},
		"broken-tag":      {"c/broken:v1", "True/Retrying", "catalog.yaml:1"},
		"missing":         {"c/none:v1", "True/Retrying", "c/none:v1"},
		"no-such-content": {"c/bare@sha256:" + strings.Repeat("1", 64), "True/Retrying", "c/bare@sha256"},
	} {
		w.create(t, name, s.host+"/"+c.ref)
		defer func() {
			got := w.await(t, name, "the attempt is told", func(now *clustercatalog.Catalog) bool {
				return condition(now, clustercatalog.Progressing) == c.want && condition(now, clustercatalog.Serving) == "False/Unavailable"
			})
			if !strings.Contains(message(got, clustercatalog.Progressing), c.says) {
				t.Errorf("%s: the message is %q, want it to contain %q", name, message(got, clustercatalog.Progressing), c.says)
			}
		}()
	}
	w.leader(t, settings{dir: t.TempDir(), images: pulls(t, s)})
}

// Penstock uses the pull secrets of the ServiceAccount. No status and no file keeps them.
func testCredentials(t *testing.T, w *host) {
	s := serve(t, "reader", "open-sesame")
	digest := s.push(t, "c/private:v1", pkg("lamp"))
	w.create(t, "private", s.host+"/c/private:v1")
	dir := t.TempDir()
	w.leader(t, settings{dir: dir, images: pulls(t, s)})
	w.await(t, "private", "without credentials it is refused", func(c *clustercatalog.Catalog) bool {
		return condition(c, clustercatalog.Progressing) == "True/Retrying"
	})
	config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, s.host, base64.StdEncoding.EncodeToString([]byte("reader:open-sesame")))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "registry"}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(config)}}
	if _, err := w.core.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "penstock"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}}
	if _, err := w.core.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// A change of the spec triggers a retry at once.
	w.MustKubectl("patch", "clustercatalog", "private", "--type=merge", "-p", `{"spec":{"priority":1}}`)
	c := w.await(t, "private", "with credentials it is pulled", uses(digest))
	if strings.Contains(fmt.Sprint(c.Status), "open-sesame") {
		t.Error("the status has a password")
	}
	eventually(t, "no file with credentials is left", func() bool {
		left, err := filepath.Glob(filepath.Join(dir, "process-0", "private", "*"))
		return err == nil && len(left) == 0
	})
}

// A download that breaks in the middle of a layer is retried.
func testOutage(t *testing.T, w *host) {
	s := serve(t, "", "")
	digest := s.push(t, "c/outage:v1", pkg("lamp"))
	var broken atomic.Int64
	s.answer(func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") || broken.Add(1) > 2 {
			return false
		}
		rw.Header().Set("Content-Length", "1000000")
		_, _ = rw.Write([]byte{0x1f, 0x8b, 8})
		panic(http.ErrAbortHandler)
	})
	w.create(t, "outage", s.host+"/c/outage:v1")
	r := w.leader(t, settings{dir: t.TempDir(), images: pulls(t, s)})
	w.await(t, "outage", "it is pulled after two outages", uses(digest))
	r.knows(t, "the package is listed", has("outage", "lamp"))
}

// A restart needs no registry and writes nothing.
func testRestart(t *testing.T, w *host) {
	s := serve(t, "", "")
	digest := s.push(t, "c/restart:v1", pkg("lamp"))
	w.create(t, "restart", s.host+"/c/restart:v1", "pollIntervalMinutes: 5")
	dir := t.TempDir()
	r := w.leader(t, settings{dir: dir, images: pulls(t, s)})
	w.await(t, "restart", "it is served", uses(digest))
	content := r.content(t, "restart")
	_, before := w.get(t, "restart")
	r.stop()
	asked := s.requests.Load()
	again := w.leader(t, settings{dir: dir, images: pulls(t, s)})
	again.knows(t, "the package is listed after a restart", has("restart", "lamp"))
	if got := again.content(t, "restart"); got != content {
		t.Errorf("after a restart it serves %q, want %q", got, content)
	}
	if s.requests.Load() != asked {
		t.Errorf("the restart sent %d requests to the registry", s.requests.Load()-asked)
	}
	if _, after := w.get(t, "restart"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("the restart wrote the catalog")
	}
}

// Penstock polls a moving tag at its interval. It serves the old content until the new content is
// pulled, and then removes the old content from disk.
func testTag(t *testing.T, w *host) {
	s := serve(t, "", "")
	first := s.push(t, "c/tag:v1", pkg("lamp"))
	time0 := time.Now()
	now := testclock.NewFakeClock(time0)
	w.create(t, "tag", s.host+"/c/tag:v1", "pollIntervalMinutes: 1")
	dir := t.TempDir()
	r := w.leader(t, settings{dir: dir, images: pulls(t, s), clock: now})
	w.await(t, "tag", "it is served", uses(first))
	old := r.content(t, "tag")
	second := s.push(t, "c/tag:v1", pkg("axe"))
	arrived, release := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	s.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") && once.CompareAndSwap(false, true) {
			close(arrived)
			<-release
		}
		return false
	})
	eventually(t, "the next poll is planned", func() bool { return now.HasWaiters() })
	// The poll interval begins when the queue receives the catalog, so the clock steps until a
	// request arrives.
	for polled := false; !polled; {
		now.Step(10 * time.Second)
		select {
		case <-arrived:
			polled = true
		case <-time.After(20 * time.Millisecond):
		}
		if now.Since(time0) > time.Hour {
			t.Fatal("the tag was not checked again")
		}
	}
	if got := r.content(t, "tag"); got != old {
		t.Errorf("during the next pull, served %q", got)
	}
	close(release)
	before, _ := w.get(t, "tag")
	after := w.await(t, "tag", "the new image is served", uses(second))
	if !after.Status.LastUnpacked.After(before.Status.LastUnpacked.Time) {
		t.Errorf("unpacked at %s, the content before at %s", after.Status.LastUnpacked, before.Status.LastUnpacked)
	}
	r.knows(t, "the new package is listed", has("tag", "axe"))
	eventually(t, "the old one goes from disk", func() bool {
		left, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"+strings.TrimPrefix(first, "sha256:")))
		more, err2 := filepath.Glob(filepath.Join(dir, "images", "v*"+strings.TrimPrefix(first, "sha256:")))
		return err == nil && err2 == nil && len(left)+len(more) == 0
	})
}

// A catalog deleted during its pull leaves nothing behind.
func testDeleted(t *testing.T, w *host) {
	s := serve(t, "", "")
	digest := s.push(t, "c/deleted:v1", pkg("lamp"))
	arrived, gone := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	s.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") && once.CompareAndSwap(false, true) {
			close(arrived)
			<-r.Context().Done()
			close(gone)
			return true
		}
		return false
	})
	w.create(t, "deleted", s.host+"/c/deleted:v1")
	dir := t.TempDir()
	r := w.leader(t, settings{dir: dir, images: pulls(t, s)})
	for _, step := range []struct {
		what string
		done chan struct{}
	}{{"the pull begins", arrived}, {"the pull ends", gone}} {
		select {
		case <-step.done:
		case <-time.After(poll.Patience):
			t.Fatal(step.what)
		}
		if step.done == arrived {
			if err := w.catalogs().Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.knows(t, "it is not listed", func(s *inventory.Snapshot) bool { return s.Catalog("deleted") == nil })
	// A new catalog of the same name is a different object.
	w.create(t, "deleted", s.host+"/c/deleted:v1")
	w.await(t, "deleted", "another one of the name is served", uses(digest))
}

// Two replicas that share a disk download once and serve the same content. The follower writes
// nothing, also when it takes over.
func testReplicas(t *testing.T, w *host) {
	s := serve(t, "", "")
	first := s.push(t, "c/replicas:v1", pkg("lamp"))
	second := s.push(t, "c/replicas:v2", pkg("axe"))
	dir := t.TempDir()
	options := pulls(t, s)
	follower := w.start(t, settings{dir: dir, images: options})
	w.create(t, "replicas", s.host+"/c/replicas:v1")
	follower.knows(t, "it is known, and nothing of it", func(s *inventory.Snapshot) bool { return s.Catalog("replicas") != nil })
	if c, _ := w.get(t, "replicas"); len(c.Status.Conditions) > 0 {
		t.Errorf("the follower wrote status %+v", c.Status)
	}
	leader := w.start(t, settings{dir: dir, images: options})
	retire := leader.lead()
	w.await(t, "replicas", "it is served", uses(first))
	follower.knows(t, "the other replica has it, too", has("replicas", "lamp"))
	eventually(t, "the other replica serves it", func() bool { return follower.content(t, "replicas") != "" })
	if a, b := leader.content(t, "replicas"), follower.content(t, "replicas"); a != b {
		t.Errorf("the leader serves %q, the follower %q", a, b)
	}
	eventually(t, "both say the same of its age", func() bool {
		a, b := leader.Served("replicas"), follower.Served("replicas")
		return a != nil && b != nil && a.Modified.Equal(b.Modified)
	})
	if s.blobs.Load() != 2 { // the image's config and its layer
		t.Errorf("parts of the image were downloaded %d times, want 2", s.blobs.Load())
	}
	_, before := w.get(t, "replicas")
	retire()
	leader.stop()
	follower.lead()
	w.MustKubectl("patch", "clustercatalog", "replicas", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"source":{"image":{"ref":%q}}}}`, s.host+"/c/replicas:v2"))
	w.await(t, "replicas", "the next leader goes on", uses(second))
	for _, entry := range before.GetManagedFields() {
		if entry.Manager == catalog.FieldManager && entry.Operation != metav1.ManagedFieldsOperationUpdate {
			t.Errorf("the status was written by %s", entry.Operation)
		}
	}
}

// lease creates catalogd's Lease with a holder.
func lease(t *testing.T, w *host, holder string) {
	t.Helper()
	if _, err := w.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "olmv1-system"}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	leaseIn(t, w, "olmv1-system", holder)
}

func leaseIn(t *testing.T, w *host, namespace, holder string) {
	t.Helper()
	now := metav1.NowMicro()
	made := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: clustercatalog.CatalogdLease}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(holder), LeaseDurationSeconds: ptr.To[int32](137), RenewTime: &now, AcquireTime: &now,
	}}
	if _, err := w.core.CoordinationV1().Leases(namespace).Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unlease(t, w, namespace) })
}

func unlease(t *testing.T, w *host, namespace string) {
	t.Helper()
	err := w.core.CoordinationV1().Leases(namespace).Delete(context.Background(), clustercatalog.CatalogdLease, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// catalogd serves a catalog as catalogd does, and writes the catalog's status.
func catalogd(t *testing.T, w *host, name, digest, content string) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/catalogs/"+name+"/api/v1/all" || r.Header.Get("Authorization") != "" {
			http.NotFound(rw, r)
			return
		}
		_, _ = rw.Write([]byte(content))
	}))
	t.Cleanup(server.Close)
	_, object := w.get(t, name)
	now := metav1.Now()
	status := clustercatalog.Status{
		Conditions: []metav1.Condition{
			{Type: clustercatalog.Serving, Status: metav1.ConditionTrue, Reason: "Available", LastTransitionTime: now, ObservedGeneration: 1},
			{Type: clustercatalog.Progressing, Status: metav1.ConditionTrue, Reason: "Succeeded", LastTransitionTime: now, ObservedGeneration: 1},
		},
		ResolvedSource: &clustercatalog.ResolvedSource{Type: "Image", Image: &clustercatalog.ResolvedImage{Ref: "r.example/c/other@" + digest}},
		URLs:           &clustercatalog.URLs{Base: server.URL + "/catalogs/" + name}, LastUnpacked: &now,
	}
	object.SetFinalizers([]string{clustercatalog.CatalogdFinalizer})
	object, err := w.catalogs().Update(t.Context(), object, metav1.UpdateOptions{FieldManager: "catalogd"})
	if err != nil {
		t.Fatal(err)
	}
	if object, err = clustercatalog.WithStatus(object, status); err != nil {
		t.Fatal(err)
	}
	if _, err := w.catalogs().UpdateStatus(t.Context(), object, metav1.UpdateOptions{FieldManager: "catalogd"}); err != nil {
		t.Fatal(err)
	}
	return server
}

func writers(object *unstructured.Unstructured) []string {
	var names []string
	for _, entry := range object.GetManagedFields() {
		names = append(names, entry.Manager)
	}
	return names
}

// While catalogd runs, packages of its catalogs can be installed. Penstock writes nothing to these
// catalogs.
func testCatalogd(t *testing.T, w *host) {
	lease(t, w, "catalogd-0")
	w.create(t, "theirs", "r.example/c/theirs:v1")
	digest := "sha256:" + strings.Repeat("3", 64)
	server := catalogd(t, w, "theirs", digest, pkg("lamp"))
	w.create(t, "pending", "r.example/c/pending:v1")
	_, before := w.get(t, "theirs")
	dir := t.TempDir()
	r := w.leader(t, settings{dir: dir, images: pulls(t), trusts: server, takeOver: true})
	r.knows(t, "what catalogd serves is listed", has("theirs", "lamp"))
	r.knows(t, "what it does not serve is known", func(s *inventory.Snapshot) bool { return s.Catalog("pending") != nil })
	if r.content(t, "theirs") != "" {
		t.Error("Penstock serves a catalog of catalogd too")
	}
	_, after := w.get(t, "theirs")
	if after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("catalogd's catalog has field managers %v", writers(after))
	}
	// The index survives a restart: catalogd gets no request.
	r.stop()
	server.Close()
	again := w.leader(t, settings{dir: dir, images: pulls(t), trusts: server})
	again.knows(t, "it is listed after a restart", has("theirs", "lamp"))
	// A disabled catalog is not listed.
	w.MustKubectl("patch", "clustercatalog", "theirs", "--type=merge", "-p", `{"spec":{"availabilityMode":"Unavailable"}}`)
	again.knows(t, "it is off", func(s *inventory.Snapshot) bool {
		c := s.Catalog("theirs")
		return c != nil && c.Unavailable && c.Index == nil
	})
	if _, object := w.get(t, "theirs"); slices.Contains(writers(object), catalog.FieldManager) {
		t.Errorf("catalogd's catalog has field managers %v", writers(object))
	}
}

// A Lease of the same name in another namespace has no effect.
func testNamesake(t *testing.T, w *host) {
	s := serve(t, "", "")
	digest := s.push(t, "c/namesake:v1", pkg("lamp"))
	leaseIn(t, w, "default", "mallory")
	w.create(t, "namesake", s.host+"/c/namesake:v1")
	w.leader(t, settings{dir: t.TempDir(), images: pulls(t, s)})
	w.await(t, "namesake", "we write", uses(digest))
}

// With takeOver, Penstock takes over from a catalogd that has released its Lease, but never from a
// catalogd that holds it.
func testTakeOver(t *testing.T, w *host) {
	s := serve(t, "", "")
	digest := s.push(t, "c/taken:v1", pkg("lamp"))
	lease(t, w, "catalogd-0")
	w.create(t, "taken", s.host+"/c/taken:v1")
	server := catalogd(t, w, "taken", "sha256:"+strings.Repeat("4", 64), pkg("axe"))
	careful := w.leader(t, settings{dir: t.TempDir(), images: pulls(t, s), trusts: server})
	careful.knows(t, "catalogd's is listed", has("taken", "axe"))
	// catalogd releases its Lease, as it does on a restart.
	release := []byte(`{"spec":{"holderIdentity":""}}`)
	if _, err := w.core.CoordinationV1().Leases("olmv1-system").Patch(t.Context(), clustercatalog.CatalogdLease, types.MergePatchType, release, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	_, before := w.get(t, "taken")
	other := w.start(t, settings{dir: t.TempDir(), images: pulls(t, s), trusts: server})
	other.lead()
	other.knows(t, "catalogd's is listed still", has("taken", "axe"))
	if _, after := w.get(t, "taken"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("a catalog was taken over without a request")
	}
	careful.stop()
	other.stop()
	bold := w.leader(t, settings{dir: t.TempDir(), images: pulls(t, s), trusts: server, takeOver: true})
	w.await(t, "taken", "it is taken over", uses(digest))
	bold.knows(t, "ours is listed", has("taken", "lamp"))
	// Penstock must remove catalogd's finalizer, otherwise the catalog remains.
	if err := w.catalogs().Delete(t.Context(), "taken", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.MustKubectl("wait", "--for=delete", "clustercatalog/taken", poll.TimeoutFlag)
}

// A disabled catalog serves nothing. When it is enabled again, it is served again.
func testUnavailable(t *testing.T, w *host) {
	s := serve(t, "", "")
	digest := s.push(t, "c/switched:v1", pkg("lamp"))
	w.create(t, "switched", s.host+"/c/switched:v1")
	r := w.leader(t, settings{dir: t.TempDir(), images: pulls(t, s)})
	w.await(t, "switched", "it is served", uses(digest))
	w.MustKubectl("patch", "clustercatalog", "switched", "--type=merge", "-p", `{"spec":{"availabilityMode":"Unavailable"}}`)
	c := w.await(t, "switched", "it is off", func(c *clustercatalog.Catalog) bool {
		return condition(c, clustercatalog.Serving) == "False/UserSpecifiedUnavailable" && condition(c, clustercatalog.Progressing) == "True/Succeeded"
	})
	if c.Status.ResolvedSource != nil || c.Status.URLs != nil || c.Status.LastUnpacked != nil || r.content(t, "switched") != "" {
		t.Errorf("an unavailable catalog has status %+v", c.Status)
	}
	w.MustKubectl("patch", "clustercatalog", "switched", "--type=merge", "-p", `{"spec":{"availabilityMode":"Available"}}`)
	w.await(t, "switched", "it is served again", uses(digest))
	if r.content(t, "switched") == "" {
		t.Error("an available catalog is not served")
	}
}

// The validation rules of the upstream CRD.
func testValidation(t *testing.T, w *host) {
	for name, c := range map[string]struct{ image, says string }{
		"domain":    {`{ref: "/x:1"}`, "registry"},
		"name":      {`{ref: "quay.io:1"}`, "repository"},
		"tag":       {`{ref: "quay.io/x/y"}`, "tag or a digest"},
		"bad-tag":   {`{ref: "quay.io/x/y:-a"}`, "tag in ref must begin"},
		"long-tag":  {`{ref: "quay.io/x/y:` + strings.Repeat("a", 128) + `"}`, "127"},
		"algorithm": {`{ref: "quay.io/x/y@99:` + strings.Repeat("a", 32) + `"}`, "algorithm"},
		"short":     {`{ref: "quay.io/x/y@sha256:abc"}`, "32"},
		"hex":       {`{ref: "quay.io/x/y@sha256:` + strings.Repeat("z", 32) + `"}`, "hexadecimal"},
		"poll":      {`{ref: "quay.io/x/y@sha256:` + strings.Repeat("a", 64) + `", pollIntervalMinutes: 1}`, "pollIntervalMinutes"},
		"poll-zero": {`{ref: "quay.io/x/y:1", pollIntervalMinutes: 0}`, "greater than or equal to 1"},
		"long":      {`{ref: "quay.io/` + strings.Repeat("a", 1000) + `:1"}`, "1000"},
	} {
		out := w.KubectlInput("{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {name: "+name+"}, spec: {source: {type: Image, image: "+c.image+"}}}", "create", "--dry-run=server", "-f", "-")
		if out.ExitCode == 0 || !strings.Contains(out.Stderr, c.says) {
			t.Errorf("%s: got %s, want it to contain %q", name, out, c.says)
		}
	}
}

// Deleting the CRD deletes all catalogs. A new CRD allows new catalogs.
func testRedefined(t *testing.T, w *host) {
	s := serve(t, "", "")
	digest := s.push(t, "c/redefined:v1", pkg("lamp"))
	w.create(t, "redefined", s.host+"/c/redefined:v1")
	r := w.leader(t, settings{dir: t.TempDir(), images: pulls(t, s)})
	w.await(t, "redefined", "it is served", uses(digest))
	w.MustKubectl("delete", "crd", clustercatalog.DefinitionName, "--wait=true")
	r.knows(t, "nothing is left", func(s *inventory.Snapshot) bool { return len(s.Catalogs()) == 0 })
	w.MustKubectlInput(string(clustercatalog.Definition().YAML()), "create", "-f", "-")
	w.MustKubectl("wait", "--for=condition=Established", "crd", clustercatalog.DefinitionName)
	eventually(t, "catalogs can be created again", func() bool {
		_, err := w.catalogs().List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	w.create(t, "redefined", s.host+"/c/redefined:v1")
	w.await(t, "redefined", "it is served again", uses(digest))
}
