//go:build integration

package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// minors returns the Kubernetes minor versions whose control plane programs are installed, with
// their folders, in order.
func minors(t *testing.T) (names, folders []string) {
	t.Helper()
	current, err := plane.Tools(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for _, minor := range []string{"1.34", "1.35", "1.36", "1.37"} {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(current), "v"+minor+".*", "kube-apiserver"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Logf("hack/build-tools.sh v%s has not been run: the cluster does not have that minor", minor)
			continue
		}
		slices.Sort(found)
		names, folders = append(names, minor), append(folders, filepath.Dir(found[len(found)-1]))
	}
	if !slices.Contains(names, "1.36") || !slices.Contains(names, "1.37") {
		t.Skipf("the machine has %v, and kube-apiserver stops serving ServiceCIDR v1beta1 from 1.36 to 1.37", names)
	}
	return names, folders
}

// TestClusterUpgrade upgrades a control plane through several minor versions while Penstock runs.
// An earlier revision uses an API version that 1.37 does not serve. Readiness reports it, the
// rollback fails, and the teardown works.
func TestClusterUpgrade(t *testing.T) {
	if os.Getenv("UPGRADE") == "" {
		t.Skip("UPGRADE=1 restarts kube-apiserver of one minor after the other, some minutes")
	}
	names, folders := minors(t)
	c := cluster.Start(t, func(o *plane.Options) { o.Tools = folders[0] }, cluster.APIServerArgs("--runtime-config=networking.k8s.io/v1beta1/servicecidrs=true"))
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	w := sharedPlane{Cluster: c, t: t, program: penstock.Build(t), dataDir: penstock.DataDir(t), client: client}
	w.server = w.program.Serve(t, c, w.dataDir)
	cidr := func(version string) object {
		return object{
			"apiVersion": "networking.k8s.io/" + version, "kind": "ServiceCIDR", "metadata": object{"name": "ranges"},
			"spec": object{"cidrs": []any{"10.112.0.0/24"}},
		}
	}
	w.roll(revision("ranges", 1).Phase("deploy", cidr("v1beta1")))
	w.roll(revision("ranges", 2).Phase("deploy", cidr("v1")))

	ready := func(target string) string {
		return w.MustKubectl("get", "--raw", "/apis/olm.operatorframework.io/v1alpha1/upgradereadinesses/"+target+"?extension=ranges")
	}
	const removed = `"revision":"ranges-1","apiVersion":"networking.k8s.io/v1beta1","kind":"ServiceCIDR","name":"ranges","field":"apiVersion","removedIn":"1.37","replacement":"networking.k8s.io/v1 ServiceCIDR"`
	for i, minor := range names {
		if i > 0 {
			if minor == "1.37" {
				w.says(ready("next"), `"severity":"BreaksRollback","certainty":"Certain"`, removed, `"target":"1.37"`, `"verdict":"NothingFound"`)
			}
			if err := w.Plane().Upgrade(t.Context(), folders[i]); err != nil {
				t.Fatal(err)
			}
		}
		// Penstock keeps working: it knows the new minor version, and rolls out.
		w.eventually(func() (string, string) {
			out := w.Kubectl("get", "--raw", "/apis/olm.operatorframework.io/v1alpha1/upgradereadinesses/next")
			return out.Stdout, out.Stderr
		}, func(stdout string) bool { return strings.Contains(stdout, `"current":"`+minor+".") })
		w.roll(small("step-"+strings.ReplaceAll(minor, ".", "-"), 1))
		w.says(w.MustKubectl("get", "cer", "ranges-2", "--no-headers"), "Active")
	}
	w.says(ready("next"), `"severity":"Look"`, removed, "already now")

	// The rollback fails, as readiness predicted. It deletes nothing.
	w.MustKubectlInput(`{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"RevisionRollback"}`,
		"create", "--raw", "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/ranges-1/rollback", "-f", "-")
	w.condition("ranges-3", "Progressing", "True", "networking.k8s.io/v1beta1", "ServiceCIDR")
	w.says(w.MustKubectl("get", "servicecidr", "ranges", "-o", "jsonpath={.spec.cidrs}"), "10.112.0.0/24")

	// The teardown reads the objects in a served version.
	w.MustKubectl("delete", "cer", "-l", "penstock.dev/chain=ranges", poll.TimeoutFlag)
	w.absent("servicecidr", "ranges")
}
