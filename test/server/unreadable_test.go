//go:build integration

package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// recordsPrefix is the prefix of the keys of revisions in the store.
const recordsPrefix = "/penstock/olm.operatorframework.io/clusterextensionrevisions/"

// TestStoreUnreadable: a write that would make a record unreadable is refused. An existing
// unreadable record blocks only its own extension, also after a restart, until it is given up.
func TestStoreUnreadable(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	program, dir := penstock.Build(t), penstock.DataDir(t)
	server := program.Serve(t, c, dir)
	for _, name := range []string{"held", "other"} {
		c.MustKubectlInput(configured(name, 1), "create", "-f", "-")
		c.MustKubectl("wait", "--for=condition=Succeeded", "cer/"+name+"-1", poll.TimeoutFlag)
	}
	t.Run("Metadata", func(t *testing.T) { refusesMetadata(t, c.In(t)) })

	// The test writes to etcd directly, because Penstock would not write this.
	client := etcdAt(t, "unix://"+filepath.Join(dir, "run", "etcd.sock"))
	if _, err := client.Put(t.Context(), recordsPrefix+"held-1", "PKO\x01garbage"); err != nil {
		t.Fatal(err)
	}
	t.Run("Held", func(t *testing.T) { heldByRecord(t, c.In(t), server) })
	checksByAPI(t, c, program, 4, "Unreadable   clusterextensionrevisions/held-1", "what the API serves is not sound")
	_ = client.Close()
	server.Kill(t)
	server = program.Serve(t, c, dir)
	t.Run("HeldAfterRestart", func(t *testing.T) { heldByRecord(t, c.In(t), server) })
	t.Run("GivenUp", func(t *testing.T) { givesUpRecord(t, c.In(t), server) })
	t.Run("Checked", func(t *testing.T) { checkedByAPI(t, c.In(t), program, dir) })
}

// checkedByAPI: penstock fsck through the API finds nothing in a sound store. It names the rights
// that its user lacks, and it finds damaged manifests.
func checkedByAPI(t *testing.T, c *cluster.Cluster, program *penstock.Program, dir string) {
	checksByAPI(t, c, program, 0, "what the API serves is sound: ", " of 4 extensions, 0 plans, ", "0 Secrets compared only by the server")
	checksByAPI(t, c, program, 0, `"problems": []`, "-o", "json")
	checksByAPI(t, c, program, 2, "--repair needs the store itself", "--repair")
	reader := c.User("reader", "readers")
	checksByAPI(t, reader, program, 1, "clusterextensionrevisions.olm.operatorframework.io is forbidden")
	c.MustKubectl("create", "clusterrole", "reader", "--verb=list,get", "--resource=clusterextensionrevisions.olm.operatorframework.io")
	c.MustKubectl("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--group=readers")
	eventually(t, "the right to list revisions", func() error {
		out := program.Run(t, "", "fsck", "--kubeconfig", reader.Kubeconfig())
		return missing(out.String(), []string{"lack the right to get clusterextensionrevisions/manifests\n", "to get revisionhistories\n", "to list configurationplans.hco.kubevirt.io\n", "(exit 1)"})
	})

	client, keys := etcdAt(t, "unix://"+filepath.Join(dir, "run", "etcd.sock")), store.NewKeys(database.Prefix)
	found, err := client.Get(t.Context(), keys.Packs(), clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		kv.Value[len(kv.Value)-1] ^= 1
		if _, err := client.Put(t.Context(), string(kv.Key), string(kv.Value)); err != nil {
			t.Fatal(err)
		}
	}
	checksByAPI(t, c, program, 4, "Corrupt   clusterextensionrevisions/other-1")
}

// checksByAPI runs penstock fsck as a user and checks its exit code. Words with a dash and the
// value of -o are arguments. All other texts must be in the output.
func checksByAPI(t *testing.T, user penstock.Host, program *penstock.Program, code int, says string, more ...string) {
	t.Helper()
	args := []string{"fsck", "--kubeconfig", user.Kubeconfig()}
	texts := []string{says}
	for i, one := range more {
		if strings.HasPrefix(one, "-") || i > 0 && more[i-1] == "-o" {
			args = append(args, one)
		} else {
			texts = append(texts, one)
		}
	}
	out := program.Run(t, "", args...)
	if err := missing(out.String(), texts); err != nil || out.ExitCode != code {
		t.Errorf("want exit %d and %q: %s", code, texts, out)
	}
}

func configured(extension string, number int) string {
	return strings.NewReplacer("name: first", "name: "+extension+"-first", "name: second", "name: "+extension+"-second").Replace(revision(extension, number))
}

// refusesMetadata: too large metadata of revisions and plans is refused, for every verb.
func refusesMetadata(t *testing.T, c *cluster.Cluster) {
	finalizers := make([]string, 125_000)
	labels := make([]string, 60_000)
	for i := range finalizers {
		finalizers[i] = fmt.Sprintf("%q", fmt.Sprintf("example.com/f%d", i))
	}
	for i := range labels {
		labels[i] = fmt.Sprintf("%q:%q", fmt.Sprintf("example.com/l%056d", i), strings.Repeat("v", 63))
	}
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "body.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	body := func(kind, name, spec, metadata string) string {
		group := map[string]string{"ClusterExtensionRevision": "olm.operatorframework.io", "ConfigurationPlan": "hco.kubevirt.io"}[kind]
		return file(fmt.Sprintf(`{"apiVersion":"%s/v1alpha1","kind":%q,"metadata":{"name":%q,%s},"spec":{%s}}`, group, kind, name, metadata, spec))
	}
	uid := func(text string, n int) string {
		return fmt.Sprintf(`"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"%s"}]`, strings.Repeat(text, n))
	}
	const revisionSpec, planSpec = `"revision":1`, `"profile":"LoadAwareRebalancing","action":"DryRun"`
	for name, tc := range map[string]struct {
		says string
		args []string
	}{
		"OwnerUID":       {"RequestEntityTooLarge", []string{"create", "--validate=false", "-f", body("ClusterExtensionRevision", "alice-1", revisionSpec, uid("<", 2_800_000))}},
		"SmallUID":       {"metadata.ownerReferences[0].uid", []string{"create", "-f", body("ClusterExtensionRevision", "alice-1", revisionSpec, uid("u", 129))}},
		"DryRun":         {"metadata.ownerReferences[0].uid", []string{"create", "--dry-run=server", "-f", body("ClusterExtensionRevision", "alice-1", revisionSpec, uid("u", 129))}},
		"Labels":         {"metadata has", []string{"create", "--validate=false", "-f", body("ClusterExtensionRevision", "alice-1", revisionSpec, `"labels":{`+strings.Join(labels[:4_000], ",")+"}")}},
		"AllLabels":      {"RequestEntityTooLarge", []string{"create", "--validate=false", "-f", body("ClusterExtensionRevision", "alice-1", revisionSpec, `"labels":{`+strings.Join(labels, ",")+"}")}},
		"Finalizers":     {"metadata.finalizers", []string{"patch", "cer", "other-1", "--type=merge", "--patch-file", file(`{"metadata":{"finalizers":[` + strings.Join(finalizers, ",") + "]}}")}},
		"PlanUID":        {"RequestEntityTooLarge", []string{"create", "--validate=false", "-f", body("ConfigurationPlan", "rebalance", planSpec, uid("<", 2_800_000))}},
		"PlanSmallUID":   {"metadata.ownerReferences[0].uid", []string{"create", "-f", body("ConfigurationPlan", "rebalance", planSpec, uid("u", 129))}},
		"PlanFinalizers": {"metadata.finalizers", []string{"create", "-f", body("ConfigurationPlan", "rebalance", planSpec, `"finalizers":[`+strings.Join(finalizers[:65], ",")+"]")}},
	} {
		if out := c.Kubectl(tc.args...); out.ExitCode == 0 || !strings.Contains(out.Stderr, tc.says) {
			t.Errorf("%s: want %q: %.1000s", name, tc.says, out.Stderr)
		}
	}
	if stored := c.MustKubectl("get", "cer,configplan", "-o", "name"); strings.Contains(stored, "alice") || strings.Contains(stored, "rebalance") {
		t.Errorf("objects were stored: %s", stored)
	}
}

// heldByRecord: lists, other extensions and controllers work. The extension of the record does not,
// and every answer about it says so.
func heldByRecord(t *testing.T, c *cluster.Cluster, server *penstock.Server) {
	eventually(t, "the record to be shown as unreadable", func() error {
		return missing(c.MustKubectl("get", "cer", "-o", "yaml"), []string{"name: held-1", "reason: Unreadable", "penstock.dev/unreadable", "name: other-1"})
	})
	for what, out := range map[string]cluster.Output{
		"get":    c.Kubectl("get", "cer", "held-1"),
		"delete": c.Kubectl("delete", "cer", "held-1", "--wait=false"),
		"next":   c.KubectlInput(configured("held", 2), "create", "-f", "-"),
	} {
		if out.ExitCode == 0 || !strings.Contains(out.Stderr, "PenstockStoreUnreadable") {
			t.Errorf("%s: %s", what, out)
		}
	}
	direct := server.Direct(c.Config())
	eventually(t, "readiness and metrics to tell", func() error {
		body, code, err := tryGet(t.Context(), direct, "/readyz/store-records")
		if err != nil || code != http.StatusInternalServerError {
			return fmt.Errorf("readyz: got %d, %v: %s", code, err, body)
		}
		metrics, _, err := tryGet(t.Context(), direct, "/metrics")
		if err != nil {
			return err
		}
		return missing(body+metrics, []string{recordsPrefix + "held-1", "\npenstock_store_unreadable_records{kind=\"clusterextensionrevisions\"} 1\n"})
	})
	if body, code := get(t, direct, "/readyz?exclude=store-records"); code != http.StatusOK {
		t.Errorf("without this check, the server is not ready: %s", body)
	}
	// Drift of another extension is repaired. The objects of the held extension stay as they are.
	c.MustKubectl("delete", "configmap", "other-first", "held-first")
	eventually(t, "a repair of another extension", func() error {
		if out := c.Kubectl("get", "configmap", "other-first"); out.ExitCode != 0 {
			return fmt.Errorf("%s", out.Stderr)
		}
		return nil
	})
	c.MustKubectl("get", "configmap", "held-second")
	if out := c.Kubectl("get", "configmap", "held-first"); out.ExitCode == 0 {
		t.Error("an object was created for an extension with an unreadable record")
	}
	c.MustKubectl("create", "configmap", "held-first")
	name := "new" + strings.ToLower(strings.TrimPrefix(filepath.Base(t.Name()), "Held"))
	c.MustKubectlInput(configured(name, 1), "create", "-f", "-")
	c.MustKubectl("wait", "--for=condition=Succeeded", "cer/"+name+"-1", poll.TimeoutFlag)
}

// givesUpRecord gives the record up as the runbook says.
func givesUpRecord(t *testing.T, c *cluster.Cluster, server *penstock.Server) {
	const path = "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/%s?ignoreStoreReadErrorWithClusterBreakingPotential=true"
	const options = `{"kind":"DeleteOptions","apiVersion":"v1","ignoreStoreReadErrorWithClusterBreakingPotential":true}`
	if out := c.KubectlInput(options, "delete", "--raw", fmt.Sprintf(path, "other-1"), "-f", "-"); out.ExitCode == 0 {
		t.Error("a readable record was given up")
	}
	c.MustKubectlInput(options, "delete", "--raw", fmt.Sprintf(path, "held-1"), "-f", "-")
	eventually(t, "readiness", func() error {
		if body, code, err := tryGet(t.Context(), server.Direct(c.Config()), "/readyz"); err != nil || code != http.StatusOK {
			return fmt.Errorf("got %d, %v: %s", code, err, body)
		}
		return nil
	})
	// The objects of the record still exist. The next revision takes them over.
	c.MustKubectl("get", "configmap", "held-second")
	c.MustKubectlInput(strings.Replace(configured("held", 2), "spec:\n", "spec:\n  collisionProtection: None\n", 1), "create", "-f", "-")
	c.MustKubectl("wait", "--for=condition=Succeeded", "cer/held-2", poll.TimeoutFlag)
}
