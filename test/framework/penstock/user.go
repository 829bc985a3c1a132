package penstock

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// Username is Penstock's own.
const Username = "system:serviceaccount:penstock-system:penstock"

// administered is a host that we may give rights in.
type administered interface {
	Host
	Kubectl(args ...string) cluster.Output
	MustKubectl(args ...string) string
	User(name string, groups ...string) *cluster.Access
}

// User is Penstock's own user in a cluster, with the rights that it was given there.
func User(host administered) *cluster.Access {
	return host.User(Username, "system:serviceaccounts", "system:serviceaccounts:penstock-system")
}

// Install gives Penstock's own user what artifacts/deploy says, and returns it: what
// runs under it shows that this is enough.
func Install(t testing.TB, host administered) Host {
	t.Helper()
	root, err := plane.Root()
	if err != nil {
		t.Fatalf("penstock: %v", err)
	}
	base := filepath.Join(root, "artifacts", "deploy", "base")
	args := []string{"apply", "--server-side", "--force-conflicts"}
	for _, name := range []string{"namespace.yaml", "rbac.yaml", "rbac-engine.yaml"} {
		args = append(args, "-f", filepath.Join(base, name))
	}
	host.MustKubectl(args...)
	// The cluster learns of rights from a watch.
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		out := host.Kubectl("auth", "can-i", "create", "subjectaccessreviews.authorization.k8s.io", "--as="+Username)
		if out.ExitCode == 0 {
			return User(host)
		}
		if time.Now().After(deadline) {
			t.Fatalf("penstock: the cluster does not know the rights that it was given: %s", out)
		}
	}
}
