//go:build integration

package cluster_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

func client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return client
}

// TestCluster runs all tests that can share a cluster, and checks that its folder is removed.
func TestCluster(t *testing.T) {
	t.Parallel()
	var dir string
	t.Run("Inner", func(t *testing.T) {
		began := time.Now()
		c := cluster.Start(t)
		t.Logf("etcd and kube-apiserver are ready after %.1f s", time.Since(began).Seconds())
		dir = c.Plane().Dir()
		t.Run("Boots", func(t *testing.T) { boots(t, c.In(t)) })
		t.Run("User", func(t *testing.T) { user(t, c.In(t)) })
		t.Run("AuditCountsExactly", func(t *testing.T) { auditCountsExactly(t, c.In(t)) })
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("folder %s after the test: got %v, want it deleted", dir, err)
	}
}

func boots(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	var version struct {
		ServerVersion, ClientVersion struct{ GitVersion string }
	}
	if err := json.Unmarshal([]byte(c.MustKubectl("version", "-o", "json")), &version); err != nil {
		t.Fatalf("parsing kubectl version: %v", err)
	}
	if got, want := version.ServerVersion.GitVersion, "v1.37.2"; got != want {
		t.Errorf("server version: got %s, want %s", got, want)
	}
	if got, want := version.ClientVersion.GitVersion, "v1.37.2"; got != want {
		t.Errorf("kubectl version: got %s, want %s", got, want)
	}

	out := c.Kubectl("get", "namespace", "nowhere")
	if out.ExitCode != 1 || !strings.Contains(out.Stderr, "NotFound") {
		t.Errorf("a failing kubectl: got %v, want exit 1 and NotFound on stderr", out)
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	pool := cluster.Pool{Most: 1}
	var dirs []string
	cleaned := 0
	for range 2 {
		t.Run("Inner", func(t *testing.T) {
			c := pool.Borrow(t, func(c *cluster.Cluster) {
				cleaned++
				c.MustKubectl("delete", "namespace", "left", "--wait=false")
			})
			dirs = append(dirs, c.Plane().Dir())
			c.MustKubectl("get", "namespaces")
			if cleaned == 0 {
				c.MustKubectl("create", "namespace", "left")
			}
		})
	}
	if dirs[0] != dirs[1] || cleaned != 1 {
		t.Errorf("got folders %q and %d cleanings, want the same cluster twice, cleaned once", dirs, cleaned)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dirs[0]); !os.IsNotExist(err) {
		t.Errorf("folder %s after the end of the pool: got %v, want it deleted", dirs[0], err)
	}
}

// TestTwoAtOnce: two concurrent tests remove the folders of killed tests, and do not disturb each
// other.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	abandoned, err := os.MkdirTemp("", "penstock-cluster-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(abandoned, "plane.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first := cluster.Start(t)
	if _, err := os.Stat(abandoned); !os.IsNotExist(err) {
		t.Errorf("folder %s that no process locks: got %v, want it deleted", abandoned, err)
	}
	second := cluster.Start(t)
	first.MustKubectl("create", "namespace", "only-here")
	if out := second.Kubectl("get", "namespace", "only-here"); out.ExitCode == 0 {
		t.Errorf("the second cluster has an object of the first:\n%v", out)
	}
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Workloads())

	c.MustKubectl("create", "deployment", "web", "--image=example.com/web:1", "--replicas=3")
	c.MustKubectl("wait", "--for=condition=Available", poll.TimeoutFlag, "deployment/web")
	c.MustKubectl("create", "job", "once", "--image=example.com/once:1")
	c.MustKubectl("wait", "--for=condition=Complete", poll.TimeoutFlag, "job/once")

	c.MustKubectl("create", "deployment", "stuck", "--image="+plane.UnpullableImages+"web:1")
	c.MustKubectl("wait", "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ErrImagePull",
		poll.TimeoutFlag, "pod", "-l", "app=stuck")
	if ready := c.MustKubectl("get", "deployment", "stuck", "-o", "jsonpath={.status.readyReplicas}"); ready != "" {
		t.Errorf("ready replicas of an image that cannot be pulled: got %s, want none", ready)
	}

	// This needs garbage collection and the namespace controller.
	c.MustKubectl("create", "namespace", "short-lived")
	c.MustKubectl("create", "configmap", "content", "-n", "short-lived")
	c.MustKubectl("delete", "namespace", "short-lived", poll.TimeoutFlag)
	c.MustKubectl("delete", "deployment", "web", "--cascade=foreground", poll.TimeoutFlag)
	if pods := c.MustKubectl("get", "pods", "-l", "app=web", "-o", "name"); pods != "" {
		t.Errorf("pods after their Deployment was deleted: got %q, want none", pods)
	}
}

func user(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	alice := client(t, c.User("system:serviceaccount:team/a:alice", "developers").Config())

	_, err := alice.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("listing without a grant: got %v, want Forbidden", err)
	}
	c.MustKubectl("create", "clusterrole", "reader", "--verb=list", "--resource=configmaps")
	c.MustKubectl("create", "clusterrolebinding", "developers", "--clusterrole=reader", "--group=developers")
	// kube-apiserver learns of RBAC changes from a watch, with a delay.
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := alice.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		t.Errorf("listing as a member of the group: %v", err)
	}
	if out := c.User("bob").Kubectl("get", "configmaps"); out.ExitCode == 0 {
		t.Errorf("bob is in no group, but got %v", out)
	}
	c.In(t).User("carol", "developers").MustKubectl("get", "configmaps")
}

func auditCountsExactly(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	config := c.User("counted", "system:masters").Config()
	config.UserAgent = "counted/1"
	counted := client(t, config).CoreV1().ConfigMaps("default")
	ours := plane.ByUser("counted")

	watch, err := counted.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mark := c.Audit().Mark()
	if got := c.Audit().Since(0, ours); len(got) != 1 || got[0].Verb != "watch" || !got[0].Ended.IsZero() {
		t.Errorf("before the mark: got\n%s\nwant one open watch", got)
	}

	const n = 20
	for range n {
		created, err := counted.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := counted.Get(t.Context(), created.Name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	watch.Stop()
	c.MustKubectl("get", "configmaps")

	for name, tc := range map[string]struct {
		reason  string
		filters []plane.Filter
		want    int
	}{
		"Own":         {reason: "the watch began before the mark and its end is no request", filters: []plane.Filter{ours}, want: 2 * n},
		"Writes":      {reason: "half of them", filters: []plane.Filter{ours, plane.Writes()}, want: n},
		"Agent":       {reason: "by the beginning of the user agent", filters: []plane.Filter{plane.ByAgent("counted/")}, want: 2 * n},
		"Resource":    {reason: "kubectl's too", filters: []plane.Filter{plane.ByResource("configmaps"), plane.Not(ours), plane.ByAgent("kubectl")}, want: 1},
		"Subresource": {reason: "a resource is not its subresource", filters: []plane.Filter{ours, plane.ByResource("configmaps/status")}, want: 0},
		"Verb":        {reason: "nothing was patched", filters: []plane.Filter{ours, plane.ByVerb("patch")}, want: 0},
	} {
		got := c.Audit().Since(mark, tc.filters...)
		if len(got) != tc.want {
			t.Errorf("%s: %s: got %d requests, want %d:\n%s", name, tc.reason, len(got), tc.want, got)
		}
	}

	created := c.Audit().Since(mark, ours, plane.ByVerb("create"))[0]
	created.ID, created.Received, created.Ended = "", time.Time{}, time.Time{}
	want := plane.Request{
		Verb: "create", URI: "/api/v1/namespaces/default/configmaps", User: "counted", UserAgent: "counted/1",
		Source: "127.0.0.1", Version: "v1", Resource: "configmaps", Namespace: "default", Code: 201,
	}
	if diff := cmp.Diff(want, created); diff != "" {
		t.Errorf("a request (-want +got):\n%s", diff)
	}
}
