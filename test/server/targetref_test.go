//go:build integration

package server_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// elsewhere returns a revision with one ConfigMap and a target.
func elsewhere(extension string, number int, secret string) string {
	return fmt.Sprintf(`apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata: {name: %[1]s-%[2]d}
spec:
  revision: %[2]d
  targetRef: {name: %[3]s}
  phases:
  - name: all
    objects:
    - object: {apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s, namespace: default}, data: {number: "%[2]d"}}
`, extension, number, secret)
}

// point writes a Secret with a kubeconfig of a cluster. The user in it has a name of its own.
func (w *hostAndTarget) point(t *testing.T, secret, key, user string, to *cluster.Cluster) {
	t.Helper()
	raw, err := os.ReadFile(to.User(user, "system:masters").Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	w.MustKubectlInput(fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: penstock-system}, data: {%s: %s}}`,
		secret, key, base64.StdEncoding.EncodeToString(raw)), "apply", "-f", "-")
}

// targetRef: a chain with a target is rolled out only there. Here, the target is the host, not the
// cluster of the flag. Only users who may use the target can do this. Nothing is lost if its Secret
// is deleted or leads to another cluster.
func targetRef(t *testing.T, w *hostAndTarget) {
	w.MustKubectlInput(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: use-hosted}
rules: [{apiGroups: [policy.penstock.dev], resources: [targets], resourceNames: [hosted], verbs: [use]}]
`, "create", "-f", "-")
	w.MustKubectl("create", "clusterrolebinding", "use-hosted", "--clusterrole=use-hosted", "--user=carol")
	w.MustKubectl("create", "clusterrolebinding", "everything-for-carol", "--clusterrole=everything-here", "--user=carol")
	bob, carol := w.User("bob"), w.User("carol")
	create := func(as *cluster.Access, manifest string, want ...string) {
		t.Helper()
		got := as.KubectlInput(manifest, "create", "-f", "-").String()
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Fatalf("creating the revision: got %q, want %q", got, text)
			}
		}
	}
	condition := func(revision, kind string) func() string {
		return func() string { return w.condition(revision, kind) }
	}
	has := func(c *cluster.Cluster, name string) string { return numberOf(c, name)() }

	create(bob, elsewhere("named", 1, "hosted"), "bob cannot use targets.policy.penstock.dev hosted")
	create(carol, elsewhere("named", 1, "default"), "spec.targetRef.name", "the cluster of --target-kubeconfig")
	create(carol, elsewhere("named", 1, "hosted"), "created")
	create(carol, revision("named", 2), "spec.targetRef.name", `must be "hosted", as in named-1`)
	becomes(t, "why nothing is done", condition("named-1", "Failing"), "True TargetUnavailable", "penstock-system/hosted", "there is no such Secret")

	w.point(t, "hosted", "value", "fourth", w.Cluster)
	w.MustKubectl("wait", "--for=condition=Succeeded", "cer/named-1", poll.TimeoutFlag)
	if here, there := has(w.Cluster, "named"), has(w.target, "named"); here != "1" || there != "" {
		t.Errorf("the named cluster has %q, the cluster of the flag %q", here, there)
	}
	diff := func(as *cluster.Access) func() string {
		return func() string { return as.Kubectl("get", "revisiondiff", "named-1..live", "-o", "json").String() }
	}
	becomes(t, "what bob sees", diff(bob), `"withheld": 1`)
	becomes(t, "what carol sees", diff(carol), `"unchanged": 1`)

	// Without the Secret, Penstock can do nothing, and teardown waits.
	w.MustKubectl("delete", "secret", "--namespace=penstock-system", "hosted")
	becomes(t, "the condition", condition("named-1", "Available"), "Unknown TargetUnavailable", "there is no such Secret")
	carol.MustKubectl("delete", "cer", "named-1", "--wait=false")
	becomes(t, "the teardown", condition("named-1", "Progressing"), "True TargetUnavailable", "there is no such Secret")
	w.point(t, "hosted", "kubeconfig", "first", w.target)
	becomes(t, "the teardown", condition("named-1", "Progressing"), "True TargetUnavailable", "the objects of the extension are in cluster")
	if got := has(w.Cluster, "named"); got != "1" {
		t.Errorf("the unreachable object is %q, want 1", got)
	}
	w.point(t, "hosted", "kubeconfig", "fifth", w.Cluster)
	w.MustKubectl("wait", "--for=delete", "cer/named-1", poll.TimeoutFlag)
	if got := has(w.Cluster, "named"); got != "" {
		t.Errorf("after the teardown, the object is %q", got)
	}

	// The next revision may have another target. If it keeps its objects, it can be deleted without
	// its target.
	w.point(t, "hosted", "kubeconfig", "first", w.target)
	create(carol, elsewhere("named", 2, "hosted"), "created")
	w.MustKubectl("wait", "--for=condition=Succeeded", "cer/named-2", poll.TimeoutFlag)
	w.MustKubectl("delete", "secret", "--namespace=penstock-system", "hosted")
	becomes(t, "the condition", condition("named-2", "Available"), "Unknown TargetUnavailable")
	carol.MustKubectl("patch", "cer", "named-2", "--type=merge", "-p", `{"spec":{"teardownPolicy":"Orphan"}}`)
	carol.MustKubectl("delete", "cer", "named-2", poll.TimeoutFlag)
	if got := has(w.target, "named"); got != "2" {
		t.Errorf("the orphaned object is %q, want 2", got)
	}
	becomes(t, "the rest", condition("there-1", "Available"), "True ")
}
