//go:build integration

package server_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/penstock-project/penstock/pkg/app"
	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/server/leadership"
	"github.com/penstock-project/penstock/pkg/server/storehealth"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// fill is the prefix of keys that only take up space.
const fill = "/fill/"

// fillStore writes values to etcd until it is full: many times into one key, or into many keys.
func fillStore(t *testing.T, client *clientv3.Client, history bool) {
	t.Helper()
	value := make([]byte, 1<<20)
	if _, err := rand.Read(value); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		key := fill
		if !history {
			key += fmt.Sprint(i)
		}
		err := put(t, client, key, value)
		if err != nil && strings.Contains(err.Error(), "database space exceeded") {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// put writes a value. It retries for poll.Patience while the disk is too slow for etcd.
func put(t *testing.T, client *clientv3.Client, key string, value []byte) error {
	ctx, cancel := context.WithTimeout(t.Context(), poll.Patience)
	defer cancel()
	for {
		_, err := client.Put(ctx, key, string(value))
		if !errors.Is(err, rpctypes.ErrTimeout) {
			return err
		}
	}
}

// fillReserve fills an embedded etcd of 64 MiB and its reserve of 32 MiB with live data, so that
// the alarm stays. While half of the reserve is free, Penstock lifts the alarm for deletions.
func fillReserve(t *testing.T, client *clientv3.Client) {
	t.Helper()
	value := make([]byte, 1<<20)
	_, _ = rand.Read(value) // never fails
	n := 0
	eventually(t, "the store to have its reserve in use", func() error {
		for {
			err := put(t, client, fill+"reserve"+fmt.Sprint(n), value)
			if err != nil && !strings.Contains(err.Error(), "database space exceeded") {
				t.Fatal(err)
			}
			if err != nil {
				break
			}
			n++
		}
		// Live data cannot be freed by a compaction.
		written, err := client.Get(t.Context(), fill, clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		if _, err := client.Compact(t.Context(), written.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			return err
		}
		status, err := storehealth.Status(t.Context(), client)
		if err != nil {
			return err
		}
		if status.DbSizeInUse <= 80<<20 {
			return fmt.Errorf("%d bytes are in use", status.DbSizeInUse)
		}
		return nil
	})
}

// etcdAt returns a client of an etcd.
func etcdAt(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: poll.Patience, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// saysFull: all writes are refused with the cause and the remedy. Reads still work, and health
// checks and metrics show the problem.
func saysFull(t *testing.T, c *cluster.Cluster, p *process) {
	t.Helper()
	eventually(t, "the store to be known as full", func() error {
		body, code, err := tryGet(t.Context(), p.Loopback(), "/readyz?verbose")
		if err != nil || code == http.StatusOK || !strings.Contains(body, "[-]store-space failed") {
			return fmt.Errorf("readyz: got %d, %v:\n%s", code, err, body)
		}
		return nil
	})
	for _, out := range []cluster.Output{
		c.KubectlInput(revision("another", 1), "create", "-f", "-"),
		c.Kubectl("annotate", "cer", "argocd-1", "example.com/note=1"),
		c.Kubectl("delete", "cer", "argocd-1", "--wait=false"),
	} {
		if out.ExitCode == 0 || !strings.Contains(out.Stderr, "InsufficientStorage") || !isFull(out.Stderr) || !strings.Contains(out.Stderr, "quota") {
			t.Errorf("the write is not refused with the reason: %s", out)
		}
	}
	c.MustKubectlInput(revision("another", 1), "create", "-f", "-", "--dry-run=server")
	c.MustKubectl("get", "cer", "argocd-1", "--subresource=manifests")
	for _, path := range []string{"/readyz?exclude=store-space", "/livez", "/apis/olm.operatorframework.io/v1alpha1"} {
		if body, code := get(t, p.Loopback(), path); code != http.StatusOK {
			t.Errorf("%s: got %d:\n%s", path, code, body)
		}
	}
	if body, _ := get(t, p.Loopback(), "/metrics"); !strings.Contains(body, "\npenstock_store_full 1\n") {
		t.Error("the metric does not say that the store is full")
	}
}

// isFull reports whether a refusal comes from etcd, or from Penstock at the quota, which refuses
// earlier.
func isFull(refusal string) bool {
	return strings.Contains(refusal, "the store is full") || strings.Contains(refusal, "the store is as large as its quota")
}

// goesOn: writes are accepted again, without a restart of the process.
func goesOn(t *testing.T, c *cluster.Cluster, p *process, name string) {
	t.Helper()
	eventually(t, "a write behind a full store", func() error {
		if out := c.KubectlInput(revision(name, 1), "create", "-f", "-"); out.ExitCode != 0 {
			return errors.New(out.Stderr)
		}
		return nil
	})
	eventually(t, "readiness", func() error {
		if body, code, err := tryGet(t.Context(), p.Loopback(), "/readyz"); err != nil || code != http.StatusOK {
			return fmt.Errorf("got %d, %v:\n%s", code, err, body)
		}
		return nil
	})
}

// TestEmbeddedStoreFull: the embedded etcd is first full of history, which is compacted, and then
// full of live data, which needs a larger quota.
func TestEmbeddedStoreFull(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	dir := dataDir(t)
	p := start(t, newOptions(t, c, dir, "--data-quota=64Mi"))
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	client := etcdAt(t, "unix://"+filepath.Join(dir, "run", "etcd.sock"))

	fillStore(t, client, true)
	goesOn(t, c, p, "history")

	fillReserve(t, client)
	saysFull(t, c, p)
	p.halt(t)

	// The alarm survives a restart and a larger quota.
	p = start(t, newOptions(t, c, dir, "--data-quota=128Mi"))
	goesOn(t, c, p, "larger")
	c.MustKubectl("delete", "cer", "argocd-1", "--wait=false")
}

// TestEmbeddedStoreOverQuota: an embedded etcd at its quota refuses additions, but revisions can be
// deleted. After their content is collected, there is room again.
func TestEmbeddedStoreOverQuota(t *testing.T) {
	if os.Getenv("FULL") != "1" {
		t.Skip("it waits for a collection, a minute or two; FULL=1 runs it")
	}
	t.Parallel()
	c := borrow(t)
	dir := dataDir(t)
	options := newOptions(t, c, dir, "--data-quota=64Mi")
	for _, controller := range (&app.Settings{}).Controllers() {
		if controller.Name == "upkeep" {
			options.Controllers = []leadership.Controller{controller}
		}
	}
	p := start(t, options)
	client := etcdAt(t, "unix://"+filepath.Join(dir, "run", "etcd.sock"))
	value := make([]byte, 1<<20)
	_, _ = rand.Read(value) // never fails
	for i := range 40 {
		if _, err := client.Put(t.Context(), fill+fmt.Sprint(i), string(value)); err != nil {
			t.Fatal(err)
		}
	}
	created := 0
	eventually(t, "the store to be as large as its quota", func() error {
		_, _ = rand.Read(value)
		out := c.KubectlInput(largeRevision(created, value), "create", "-f", "-")
		if out.ExitCode == 0 {
			created++
			return errors.New("the store still accepts writes")
		}
		if !strings.Contains(out.Stderr, "as large as its quota") {
			t.Fatalf("the write was refused for another reason: %s", out)
		}
		return nil
	})
	for i := range created {
		name := fmt.Sprintf("large%d-1", i)
		c.MustKubectl("delete", "cer", name, "--wait=false")
		// No controller of revisions runs here.
		c.MustKubectl("patch", "cer", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	}
	goesOn(t, c, p, "after")
}

// TestStoreShare: one user writes as much as allowed. Other users still have room, and an
// administrator has no share. The user can still delete and archive.
func TestStoreShare(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	dir := dataDir(t)
	p := start(t, newOptions(t, c, dir, "--data-quota=64Mi"))
	for _, user := range []string{"bob", "alice"} {
		c.MustKubectlInput(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: share-%[1]s}
rules:
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [create, get, patch, delete]}
- {apiGroups: [""], resources: [configmaps], verbs: [create, get, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: share-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: share-%[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`, user), "apply", "-f", "-")
	}
	bob, alice := c.User("bob"), c.User("alice")
	client := etcdAt(t, "unix://"+filepath.Join(dir, "run", "etcd.sock"))
	value := make([]byte, 1<<20)
	_, _ = rand.Read(value) // never fails
	for i := range 24 {
		if _, err := client.Put(t.Context(), fill+fmt.Sprint(i), string(value)); err != nil {
			t.Fatal(err)
		}
	}
	created := 0
	eventually(t, "bob to have his share", func() error {
		_, _ = rand.Read(value)
		out := bob.KubectlInput(largeRevision(created, value), "create", "-f", "-")
		if out.ExitCode == 0 {
			created++
			return errors.New("the user's quota is not reached")
		}
		if !strings.Contains(out.Stderr, "forbidden: exceeded quota: share of the store, used by user bob: ") {
			t.Fatalf("the write was refused for another reason: %s", out)
		}
		return nil
	})
	if created < 10 || created > 35 {
		t.Errorf("bob has %d revisions of 0.9 MiB, in a store of 64 MiB of which others use 24 MiB", created)
	}
	alice.MustKubectlInput(largeRevision(1000, value), "create", "-f", "-")
	c.MustKubectlInput(largeRevision(1001, value), "create", "-f", "-")
	bob.MustKubectl("patch", "cer", "large0-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Archived"}}`)
	bob.MustKubectl("delete", "cer", "large1-1", "--wait=false")
	if body, _ := get(t, p.Loopback(), "/metrics"); !strings.Contains(body, "\npenstock_store_share_refusals_total{of=\"user\"} 1\n") {
		t.Error("the metric does not count the refusal")
	}
}

// largeRevision returns a revision with a manifest of the value's size, which does not compress.
func largeRevision(n int, value []byte) string {
	return fmt.Sprintf(`{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"large%d-1"},
"spec":{"revision":1,"lifecycleState":"Paused","phases":[{"name":"one","objects":[{"object":{"apiVersion":"v1","kind":"ConfigMap",
"metadata":{"name":"large%d","namespace":"default"},"binaryData":{"k":%q}}}]}]}}`, n, n, base64.StdEncoding.EncodeToString(value[:900<<10]))
}

// TestExternalStoreFull: an external etcd is full. Its administrators make room, and Penstock
// continues.
func TestExternalStoreFull(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	store, err := etcd.Start(t.Context(), etcd.Config{DataDir: dataDir(t), QuotaBytes: 32 << 20, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	p := start(t, newOptions(t, c, "", "--etcd-servers", store.Endpoint()))
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	client := etcdAt(t, store.Endpoint())
	fillStore(t, client, false)
	saysFull(t, c, p)

	makeRoom(t, client)
	goesOn(t, c, p, "another")
	c.MustKubectl("delete", "cer", "argocd-1", "--wait=false")
}

// makeRoom frees space as the runbook does with etcdctl.
func makeRoom(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	removed, err := client.Delete(ctx, fill, clientv3.WithPrefix())
	if err == nil {
		_, err = client.Compact(ctx, removed.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil {
		_, err = client.Defragment(ctx, client.Endpoints()[0])
	}
	if err == nil {
		_, err = client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	}
	if err != nil {
		t.Fatalf("making room: %v", err)
	}
}
