//go:build integration

package server_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/penstock-project/penstock/test/framework/cable"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// hostAndTarget is a host, a second cluster that revisions are rolled out into, and the connection
// to it, which the test may cut.
type hostAndTarget struct {
	*cluster.Cluster
	target  *cluster.Cluster
	program *penstock.Program
	server  *penstock.Server
	way     *cable.Cable
	dir     string
	// begun is the position in the host's audit log before the program's first request.
	begun plane.Mark
	// kubeconfig is the file with the target that the program watches.
	kubeconfig string
}

func (w *hostAndTarget) in(t *testing.T) *hostAndTarget {
	one := *w
	one.Cluster, one.target = w.Cluster.In(t), w.target.In(t)
	return &one
}

// TestTarget: all revisions are rolled out into another cluster, and none into the host, despite
// faults.
func TestTarget(t *testing.T) {
	t.Parallel()
	w := &hostAndTarget{Cluster: cluster.Start(t), target: cluster.Start(t), program: penstock.Build(t), dir: dataDir(t)}
	w.begun, w.way = w.Audit().Mark(), cable.New(t, address(t, w.target))
	w.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	w.lead(t, w.target.User("first", "system:masters"), w.way.Address())
	// The host has its own object with the same name, which must not change.
	w.MustKubectl("create", "configmap", "first", "--from-literal=number=theirs")
	w.server = w.program.Serve(t, w, w.dir, "--target-kubeconfig", w.kubeconfig)
	for _, step := range []struct {
		name string
		do   func(*testing.T, *hostAndTarget)
	}{
		{"Rights", targetRights}, {"RollOut", targetRollOut}, {"Live", targetLive}, {"Rotation", targetRotation},
		{"Loss", targetLoss}, {"Far", targetFar}, {"Away", targetAway}, {"Another", targetAnother}, {"Claimed", targetClaimed}, {"Ref", targetRef}, {"WithoutFlag", targetWithoutFlag},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(t, w.in(t)) }) {
			t.Fatalf("the log of the server:\n%s", w.server.Log())
		}
	}
}

// lead replaces the kubeconfig that the program watches, in one step as for Secrets.
func (w *hostAndTarget) lead(t *testing.T, user *cluster.Access, address string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(user.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Server = "https://" + address
	}
	next := w.kubeconfig + ".next"
	if err := errors.Join(clientcmd.WriteToFile(*config, next), os.Rename(next, w.kubeconfig)); err != nil {
		t.Fatal(err)
	}
}

// address returns the real address of a cluster, without the connection that the test may cut.
func address(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	at, err := url.Parse(c.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	return at.Host
}

// condition returns a condition of a revision: its status, reason and message.
func (w *hostAndTarget) condition(revision, kind string) string {
	return w.MustKubectl("get", "cer", revision, "-o",
		fmt.Sprintf(`jsonpath={range .status.conditions[?(@.type==%q)]}{.status} {.reason} {.message}{end}`, kind))
}

// becomes waits until a value contains all the texts.
func becomes(t *testing.T, what string, get func() string, want ...string) {
	t.Helper()
	eventually(t, what, func() error {
		got := get()
		for _, text := range want {
			if !strings.Contains(got, text) {
				return fmt.Errorf("got %q, want it to contain %q", got, text)
			}
		}
		return nil
	})
}

func numberOf(c *cluster.Cluster, name string) func() string {
	return func() string {
		return c.Kubectl("get", "configmap", name, "-o", "jsonpath={.data.number}").Stdout
	}
}

// targetRights: all rights in the host do not include the right to use the target.
func targetRights(t *testing.T, w *hostAndTarget) {
	w.MustKubectlInput(`apiVersion: v1
kind: List
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: everything-here}
  rules: [{apiGroups: ["", apps, olm.operatorframework.io], resources: ["*"], verbs: ["*"]}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: use-target}
  rules: [{apiGroups: [policy.penstock.dev], resources: [targets], resourceNames: [default], verbs: [use]}]
`, "create", "-f", "-")
	w.MustKubectl("create", "clusterrolebinding", "everything-here", "--clusterrole=everything-here", "--user=alice", "--user=bob")
	w.MustKubectl("create", "clusterrolebinding", "use-target", "--clusterrole=use-target", "--user=bob")
	alice, bob := w.User("alice"), w.User("bob")
	becomes(t, "the refusal", func() string { return alice.KubectlInput(revision("there", 1), "create", "-f", "-").Stderr },
		"alice cannot use targets.policy.penstock.dev default")
	becomes(t, "the creation", func() string { return bob.KubectlInput(revision("there", 1), "create", "-f", "-").String() }, "created")
}

func targetRollOut(t *testing.T, w *hostAndTarget) {
	w.MustKubectl("wait", "--for=condition=Succeeded", "cer/there-1", poll.TimeoutFlag)
	if got := numberOf(w.target, "first")() + numberOf(w.target, "second")(); got != "11" {
		t.Errorf("the target has %q", got)
	}
	if got := numberOf(w.Cluster, "first")(); got != "theirs" {
		t.Errorf("the host's own object is %q", got)
	}
	const engine = "system:serviceaccount:penstock-system:penstock-engine"
	// The identities of profiles are always in the host, whatever the target is.
	elsewhere := func(r plane.Request) bool { return !strings.Contains(r.URI, "profile-definition") }
	if asked := w.Audit().Since(w.begun, plane.ByUser(engine), elsewhere); len(asked) > 0 {
		t.Errorf("the engine asked the host:\n%s", asked)
	}
}

// targetLive: live diffs compare with the target, for users who may use it.
func targetLive(t *testing.T, w *hostAndTarget) {
	w.MustKubectl("patch", "cer", "there-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Paused"}}`)
	w.target.MustKubectl("patch", "configmap", "first", "--type=merge", "-p", `{"data":{"number":"drifted"}}`)
	diff := func(as *cluster.Access) func() string {
		return func() string { return as.Kubectl("get", "revisiondiff", "there-1..live", "-o", "json").String() }
	}
	becomes(t, "what bob sees", diff(w.User("bob")), `"changed": 1`)
	becomes(t, "what alice sees", diff(w.User("alice")), `"withheld": 2`)
	w.MustKubectl("patch", "cer", "there-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Active"}}`)
	becomes(t, "the drift", numberOf(w.target, "first"), "1")
}

// targetRotation: a new kubeconfig is used without a restart, and the watches with the old one end.
func targetRotation(t *testing.T, w *hostAndTarget) {
	mark := w.target.Audit().Mark()
	w.lead(t, w.target.User("second", "system:masters"), w.way.Address())
	becomes(t, "the watches", func() string { return w.target.Audit().Since(mark, plane.ByUser("second")).String() }, "watch=true")
	mark = w.target.Audit().Mark()
	w.target.MustKubectl("patch", "configmap", "first", "--type=merge", "-p", `{"data":{"number":"drifted"}}`)
	becomes(t, "the drift", numberOf(w.target, "first"), "1")
	becomes(t, "who repaired it", func() string { return w.target.Audit().Since(mark, plane.ByUser("second")).String() }, "patch")
	if before := w.target.Audit().Since(mark, plane.ByUser("first")); len(before) > 0 {
		t.Errorf("the old kubeconfig is still used:\n%s", before)
	}
	// An invalid kubeconfig does not replace the current one.
	if err := os.WriteFile(w.kubeconfig, []byte("users: [{name: u, user: {exec: {command: rm}}}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.server.Await(t, "it has no current-context")
	w.target.MustKubectl("delete", "configmap", "first")
	becomes(t, "the deleted object", numberOf(w.target, "first"), "1")
	w.lead(t, w.target.User("second", "system:masters"), w.way.Address())
}

// targetLoss: objects in a cluster that is not reachable are not reported as lost. When it is
// reachable again, all is as before.
func targetLoss(t *testing.T, w *hostAndTarget) {
	before := w.target.MustKubectl("get", "configmaps", "first", "second", "-o", "jsonpath={.items[*].metadata.uid}")
	events := w.MustKubectl("get", "events", "-o", "name")
	w.way.Cut()
	becomes(t, "the condition", func() string { return w.condition("there-1", "Available") }, "Unknown ")
	if got := w.condition("there-1", "Succeeded"); !strings.HasPrefix(got, "True ") {
		t.Errorf("condition Succeeded is %s, want True", got)
	}
	w.way.Mend(t)
	becomes(t, "the condition", func() string { return w.condition("there-1", "Available") }, "True ")
	if after := w.target.MustKubectl("get", "configmaps", "first", "second", "-o", "jsonpath={.items[*].metadata.uid}"); after != before {
		t.Errorf("the UIDs changed from %s to %s", before, after)
	}
	if after := w.MustKubectl("get", "events", "-o", "name"); after != events {
		t.Errorf("the loss caused events; now:\n%s\nbefore:\n%s", after, events)
	}
}

// targetAnother: the kubeconfig leads to a cluster with nothing rolled out. Penstock does not roll
// out everything there.
func targetAnother(t *testing.T, w *hostAndTarget) {
	right, err := os.ReadFile(w.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	w.lead(t, w.User("third", "system:masters"), address(t, w.Cluster))
	becomes(t, "the condition", func() string { return w.condition("there-1", "Available") },
		"Unknown ", "what was rolled out is in cluster", "--confirm-target-change=")
	if got := numberOf(w.Cluster, "first")() + numberOf(w.Cluster, "second")(); got != "theirs" {
		t.Errorf("the other cluster has %q", got)
	}
	if out := w.Kubectl("get", "configmap", "--namespace=kube-system", "penstock-target"); out.ExitCode == 0 {
		t.Errorf("an unused cluster was claimed: %s", out)
	}
	if err := os.WriteFile(w.kubeconfig, right, 0o600); err != nil {
		t.Fatal(err)
	}
	becomes(t, "the condition", func() string { return w.condition("there-1", "Available") }, "True ")
}

// targetClaimed: two installations of Penstock do not roll out into the same cluster.
func targetClaimed(t *testing.T, w *hostAndTarget) {
	claim := func(store string) {
		t.Helper()
		w.target.MustKubectl("patch", "configmap", "--namespace=kube-system", "penstock-target", "--type=merge", "-p", fmt.Sprintf(`{"data":{"store":%q}}`, store))
	}
	ours := w.target.MustKubectl("get", "configmap", "--namespace=kube-system", "penstock-target", "-o", "jsonpath={.data.store}")
	claim("another")
	w.lead(t, w.target.User("first", "system:masters"), w.way.Address())
	becomes(t, "the condition", func() string { return w.condition("there-1", "Available") }, "Unknown ", "belongs to another Penstock")
	claim(ours)
	becomes(t, "the condition", func() string { return w.condition("there-1", "Available") }, "True ")
}

// targetWithoutFlag: the flag is forgotten. Penstock does not roll out into the host.
func targetWithoutFlag(t *testing.T, w *hostAndTarget) {
	w.server.Stop(t)
	w.server = w.program.Serve(t, w, w.dir)
	becomes(t, "the answer", func() string { return w.Kubectl("get", "cer").Stderr }, "give --target-kubeconfig", "--confirm-target-change=host")
	if got := numberOf(w.Cluster, "first")() + numberOf(w.Cluster, "second")(); got != "theirs" {
		t.Errorf("the host has %q", got)
	}
}
