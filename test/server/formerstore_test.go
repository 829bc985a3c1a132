//go:build integration

package server_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/app"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/server"
	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/server/leadership"
	"github.com/penstock-project/penstock/pkg/store"
	storeidentity "github.com/penstock-project/penstock/pkg/store/identity"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/test/framework/cluster"
)

// formerStore has all records of a store of format 1, by key. The last release before format 2
// wrote them for the revisions 1 to 3 of argocd.
const formerStore = "testdata/store-format-1.json"

// TestFormerStore: a store of format 1 is opened, and served byte for byte. The next revision is
// stored as a delta. Deleted content is collected, and the store shrinks.
func TestFormerStore(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	dir := dataDir(t)
	loadStore(t, dir, formerStore)
	p := start(t, collecting(newOptions(t, c, dir)))
	servesFormer(t, c, 3)
	// The process that raised the format collects nothing for ten minutes, in case replicas of the
	// earlier release still run. The next process need not wait.
	p.halt(t)
	start(t, collecting(newOptions(t, c, dir)))
	client := etcdAt(t, "unix://"+filepath.Join(dir, "run", "etcd.sock"))
	for n := 1; n <= 3; n++ {
		servesFormer(t, c, n)
	}
	if present, _, err := storeidentity.NewStore(client, database.Prefix).Read(t.Context()); err != nil || present.Format != storeidentity.Format {
		t.Errorf("the store has format %d, error %v", present.Format, err)
	}
	bytes, bases := packsIn(t, client)
	if want := []string{"", "", ""}; !slices.Equal(bases, want) {
		t.Fatalf("packs of format 1 have these bases: %q", bases)
	}
	c.MustKubectlInput(formerRevision(4), "create", "-f", "-")
	grown, bases := packsIn(t, client)
	if len(bases) != 4 || bases[3] == "" || grown-bytes > bytes/3/3 {
		t.Errorf("the fourth pack takes %d bytes, three take %d, bases %q", grown-bytes, bytes, bases)
	}
	for _, name := range []string{"argocd-1", "argocd-2"} {
		c.MustKubectl("delete", "cer", name, "--wait=false")
		// No controller of revisions runs here.
		c.MustKubectl("patch", "cer", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	}
	eventually(t, "a collection", func() error {
		if _, left := packsIn(t, client); len(left) != 2 {
			return fmt.Errorf("there are %d packs", len(left))
		}
		return nil
	})
	if left, _ := packsIn(t, client); left > bytes/2 {
		t.Errorf("%d bytes of packs are left of %d", left, bytes)
	}
	servesFormer(t, c, 3)
	servesFormer(t, c, 4)
}

// collecting disables all controllers except the garbage collector of the store.
func collecting(options *server.Options) *server.Options {
	options.Controllers = slices.DeleteFunc((&app.Settings{}).Controllers(), func(one leadership.Controller) bool { return one.Name != "upkeep" })
	return options
}

// loadStore creates a data directory with records.
func loadStore(t *testing.T, dir, file string) {
	t.Helper()
	records := map[string][]byte{}
	raw, err := os.ReadFile(file)
	if err := errors.Join(err, json.Unmarshal(raw, &records)); err != nil {
		t.Fatal(err)
	}
	withStore(t, dir, func(client *clientv3.Client) {
		for key, record := range records {
			putAll(t, client, map[string][]byte{key: record})
		}
	})
}

// packsIn returns the size of all packs, and the base of each pack, packs without a base first.
func packsIn(t *testing.T, client *clientv3.Client) (bytes int, bases []string) {
	t.Helper()
	keys := store.NewKeys(database.Prefix)
	found, err := client.Get(t.Context(), keys.Packs(), clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		if part, ok := keys.PackPartOf(string(kv.Key)); !ok || part.Name != "pack" {
			continue
		}
		record, err := pack.ParseRecord(string(kv.Key), kv.Value)
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(kv.Value)
		bases = append(bases, record.Base)
	}
	slices.Sort(bases)
	return bytes, bases
}

// formerManifests returns the manifests of a revision in formerStore, or of the next revision.
func formerManifests(n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	shared := make([]byte, 3000)
	for i := range shared {
		shared[i] = byte(random.IntN(256))
	}
	return []string{
		fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large","namespace":"default"},"data":{"number":"%d"},"binaryData":{"shared":%q}}`, n, base64.StdEncoding.EncodeToString(shared)),
		fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"password","namespace":"default"},"stringData":{"password":"number %d"}}`, n),
	}
}

// formerRevision returns one of these revisions.
func formerRevision(n int) string {
	var objects []string
	for _, text := range formerManifests(n) {
		objects = append(objects, `{"object":`+text+`}`)
	}
	return fmt.Sprintf(`{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"argocd-%[1]d"},
"spec":{"revision":%[1]d,"lifecycleState":"Paused","phases":[{"name":"one","objects":[%s]}]}}`, n, strings.Join(objects, ","))
}

// servesFormer compares the manifests of a revision with the original manifests.
func servesFormer(t *testing.T, c *cluster.Cluster, n int) {
	t.Helper()
	var found struct{ Items []json.RawMessage }
	var answer string
	// kube-apiserver learns of the new process with a delay.
	eventually(t, fmt.Sprintf("the manifests of argocd-%d", n), func() error {
		out := c.Kubectl("get", "--raw", fmt.Sprintf("/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/argocd-%d/manifests", n))
		if answer = out.Stdout; out.ExitCode != 0 {
			return missingError{out.Stderr}
		}
		return nil
	})
	if err := json.Unmarshal([]byte(answer), &found); err != nil {
		t.Fatal(err)
	}
	want := formerManifests(n)
	if len(found.Items) != len(want) {
		t.Fatalf("argocd-%d has %d manifests: %.1000s", n, len(found.Items), answer)
	}
	for i, item := range found.Items {
		object, err := manifest.Parse([]byte(want[i]))
		if err != nil {
			t.Fatal(err)
		}
		if string(item) != string(object.JSON) {
			t.Errorf("argocd-%d: manifest %d is\n%s\nwant\n%s", n, i, item, object.JSON)
		}
	}
}
