//go:build integration

package node

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/hack/release/chart"
	"github.com/penstock-project/penstock/hack/release/layout"
	"github.com/penstock-project/penstock/test/framework/client"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/drafts"
	"github.com/penstock-project/penstock/test/framework/objects"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/plugin"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/replicas"
)

const (
	system = "penstock-system"
	// penstockImage is the repository of Penstock's image.
	penstockImage = "penstock.local/penstock"
	// earlier and later are two versions of Penstock, and the tags of their images.
	earlier, later = "v0.0.1-test", "v0.0.2-test"
)

// installation is Penstock in a Pod of a real node.
type installation struct {
	*cluster.Cluster
	t *testing.T
	// system is a client in Penstock's namespace. shop is a client in the namespace of the
	// workload.
	system, shop *client.Client
	// apply installs or changes Penstock. patch is a kustomize patch of its Deployment.
	apply func(i *installation, version, patch string)
	// delete deletes the objects that apply applied.
	delete func(i *installation)
	// before identifies the workload's objects at rollout. No later step may change it.
	before string
}

// in returns the same installation for a subtest.
func (i *installation) in(t *testing.T) *installation {
	other := *i
	other.Cluster, other.t = i.Cluster.In(t), t
	other.system, other.shop = client.New(t, i.Config(), system), client.New(t, i.Config(), "shop")
	return &other
}

// TestInstalled installs Penstock's image on a real node as docs/operations/install.md describes.
// It causes the usual failures of a Pod, and uninstalls Penstock. No rolled-out object is lost or
// changed, and nothing of Penstock remains.
func TestInstalled(t *testing.T) {
	c := cluster.Start(t, cluster.Node(tools))
	importImages(t, c)
	t.Run("Kustomize", func(t *testing.T) {
		withKustomize(t, c, "embedded", nil).acts([]act{
			{"PodDeleted", (*installation).podDeleted}, {"NodeRestarted", (*installation).nodeRestarted}, {"KilledForMemory", (*installation).killedForMemory},
			{"Upgraded", (*installation).upgraded}, {"Console", (*installation).console}, {"Unwritable", (*installation).unwritable},
		})
	})
	t.Run("Chart", func(t *testing.T) { withChart(t, c).acts([]act{{"Upgraded", (*installation).upgraded}}) })
	t.Run("External", func(t *testing.T) {
		etcd := replicas.StartEtcd(t, c.In(t))
		withKustomize(t, c, "external", &etcd).acts([]act{{"PodDeleted", (*installation).podDeleted}, {"Upgraded", (*installation).upgraded}})
	})
}

// act is an event in the life of an installation.
type act struct {
	name string
	do   func(*installation)
}

// acts installs Penstock, runs the given acts, and uninstalls Penstock.
func (i *installation) acts(troubles []act) {
	clean := i.everything()
	all := append([]act{{"Installed", func(i *installation) {
		i.apply(i, earlier, "")
		i.available(earlier)
		i.rollOut()
	}}}, troubles...)
	for _, one := range append(all, act{"Uninstalled", func(i *installation) { i.uninstalled(clean) }}) {
		passed := i.t.Run(one.name, func(t *testing.T) {
			in := i.in(t)
			one.do(in)
			i.before = in.before
		})
		if !passed {
			return
		}
	}
}

// overlay creates a folder for kustomize inside the repository, because kustomize accepts only
// relative paths.
func overlay(t *testing.T) string {
	t.Helper()
	root, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	local := filepath.Join(root, ".local") // git ignores it
	if err := os.MkdirAll(local, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(local, "overlay-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// importImages builds two versions of the image as make image does, and imports them into the node.
func importImages(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	root, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{earlier, later} {
		dir := filepath.Join(t.TempDir(), "image")
		build := exec.CommandContext(t.Context(), "go", "run", "./hack/release", "image", "-version", version, "-out", dir, "-platforms", "linux/"+runtime.GOARCH)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("make image VERSION=%s: %v\n%s", version, err, out)
		}
		image, err := layout.Image(dir, "linux", runtime.GOARCH)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Plane().Import(t.Context(), penstockImage+":"+version, image); err != nil {
			t.Fatal(err)
		}
	}
	image, err := plane.ProgramImage(goBuild(t, "./workload"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Plane().Import(t.Context(), workloadImage, image); err != nil {
		t.Fatal(err)
	}
}

// withKustomize installs a variant of artifacts/deploy. The variant external uses etcd.
func withKustomize(t *testing.T, c *cluster.Cluster, variant string, etcd *replicas.Etcd) *installation {
	t.Helper()
	dir := overlay(t)
	i := &installation{Cluster: c, delete: func(i *installation) { i.MustKubectl("delete", "--ignore-not-found", "-k", dir, poll.TimeoutFlag) }}
	i.apply = func(i *installation, version, patch string) {
		if etcd != nil {
			patch = `[{"op": "replace", "path": "/spec/template/spec/containers/0/args/5", "value": "--etcd-servers=` + etcd.Server + `"}]`
			secret := objects.Secret(system, "penstock-etcd", "ca.crt="+string(etcd.Authority), "tls.crt="+string(etcd.Certificate), "tls.key="+string(etcd.Key))
			for _, first := range []map[string]any{objects.Namespace(system), secret} {
				i.MustKubectlInput(drafts.Object(first).String(), "apply", "--server-side", "-f", "-")
			}
		}
		write(i.t, dir, variant, version, patch)
		i.MustKubectl("apply", "--server-side", "-k", dir)
	}
	return i.in(t)
}

// write writes a kustomization into dir: a variant of artifacts/deploy with an image version and a
// patch of the Deployment.
func write(t *testing.T, dir, variant, version, patch string) {
	t.Helper()
	root, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Rel(dir, filepath.Join(root, "artifacts", "deploy", variant))
	if err != nil {
		t.Fatal(err)
	}
	content := fmt.Sprintf("resources: [%q]\nimages: [{name: penstock, newName: %q, newTag: %q}]\n", base, penstockImage, version)
	if patch != "" {
		content += "patches: [{target: {kind: Deployment, name: penstock}, patch: '" + patch + "'}]\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withChart installs the Helm chart, rendered by Helm's library.
func withChart(t *testing.T, c *cluster.Cluster) *installation {
	t.Helper()
	root, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	applied := ""
	i := &installation{Cluster: c}
	i.apply = func(i *installation, version, _ string) {
		found, err := chart.Load(filepath.Join(root, "artifacts", "chart"))
		if err != nil {
			i.t.Fatal(err)
		}
		found.SetVersion(version)
		applied, err = found.Render(i.t.Context(), system, "v1.36.0", map[string]any{"image": map[string]any{"repository": penstockImage}})
		if err != nil {
			i.t.Fatal(err)
		}
		i.MustKubectlInput("{apiVersion: v1, kind: Namespace, metadata: {name: "+system+", labels: {pod-security.kubernetes.io/enforce: restricted}}}", "apply", "--server-side", "-f", "-")
		i.MustKubectlInput(applied, "apply", "--server-side", "-f", "-")
	}
	i.delete = func(i *installation) {
		i.MustKubectlInput(applied, "delete", "--ignore-not-found", "-f", "-", poll.TimeoutFlag)
		i.MustKubectl("delete", "namespace", system, poll.TimeoutFlag)
	}
	return i.in(t)
}

// available follows docs/operations/install.md after the manifests are applied. It returns when the
// Pod of that version is ready.
func (i *installation) available(version string) {
	i.t.Helper()
	i.MustKubectl("rollout", "status", "deployment/penstock", "--namespace="+system, poll.TimeoutFlag)
	if out := (plugin.User{Kubeconfig: i.Kubeconfig()}).Run(i.t, "kubectl penstock check "+poll.TimeoutFlag); out.ExitCode != 0 {
		i.t.Fatal(out)
	}
	i.check(0, "version: Penstock "+version)
}

// check waits until `kubectl penstock check` ends with an exit code and prints the texts.
func (i *installation) check(code int, texts ...string) {
	i.t.Helper()
	poll.Eventually(i.t, "kubectl penstock check", func() (bool, string) {
		out := plugin.User{Kubeconfig: i.Kubeconfig()}.Run(i.t, "kubectl penstock check")
		return out.ExitCode == code && lacking(strings.Join(strings.Fields(out.Stdout), " "), texts) == "", out.String()
	})
}

// rollOut rolls out a workload and records it in before.
func (i *installation) rollOut() {
	i.t.Helper()
	i.webhooks()
	i.system.Create(drafts.Revision("shop", 1).Phase("before", drafts.Object(objects.Namespace("shop"))).
		Phase("work", deployment("shop", "args: [-ready-after=1s]", ""), drafts.Object(objects.ConfigMap("shop", "settings", "x=1"))).String())
	i.shop.Condition("cer/shop-1", "Succeeded", "True")
	i.before = i.running()
}

// webhooks waits until Penstock's webhooks answer through the Service.
func (i *installation) webhooks() {
	i.t.Helper()
	i.shop.Stamped(`{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: never},
spec: {namespace: shop, source: {sourceType: Catalog, catalog: {packageName: never}}, serviceAccount: {name: default}}}`)
}

// running returns the UIDs of the workload's objects and Pods.
func (i *installation) running() string {
	i.t.Helper()
	return i.MustKubectl("get", "namespace/shop", "deployment/shop", "configmap/settings", "--namespace=shop", "--output=jsonpath={.items[*].metadata.uid}") +
		i.MustKubectl("get", "pods", "--namespace=shop", "--output=jsonpath={.items[*].metadata.uid}")
}

// intact fails if an object of the workload was lost or replaced. It returns once Penstock answers
// and repairs drift.
func (i *installation) intact(version string) {
	i.t.Helper()
	i.available(version)
	i.webhooks()
	if now := i.running(); now != i.before {
		i.t.Errorf("the rolled-out workload is %s, was %s", now, i.before)
	}
	i.shop.Condition("cer/shop-1", "Available", "True")
	i.shop.Patch("configmap/settings", `{"data":{"x":"drifted"}}`)
	i.shop.Becomes("configmap/settings", ".data.x", "1")
}

func (i *installation) podDeleted() {
	pod := i.pod()
	i.system.Delete("pod/" + pod)
	i.system.Gone("pod/" + pod)
	i.intact(earlier)
}

// pod returns the name of Penstock's Pod.
func (i *installation) pod() string {
	i.t.Helper()
	return i.MustKubectl("get", "pods", "--namespace="+system, "--selector=app.kubernetes.io/name=penstock", "--output=jsonpath={.items[0].metadata.name}")
}

// nodeRestarted: after a reboot of the node every container is a new one, and the workload is
// available again.
func (i *installation) nodeRestarted() {
	const container = ".status.containerStatuses[0].containerID"
	pod := "pod/" + i.pod()
	before, former := i.system.Field(pod, container), i.shop.Field("deployment/shop", ".status.availableReplicas")
	if err := i.Plane().Reboot(i.t.Context()); err != nil {
		i.t.Fatal(err)
	}
	i.system.Until(pod, func(found *unstructured.Unstructured) error {
		if now := i.system.Field(pod, container); now == before {
			return fmt.Errorf("the container was not replaced: %s", now)
		}
		return nil
	})
	i.shop.Becomes("deployment/shop", ".status.availableReplicas", former)
	i.intact(earlier)
}

func (i *installation) killedForMemory() {
	i.apply(i, earlier, `[{"op": "replace", "path": "/spec/template/spec/containers/0/resources", "value": {"requests": {"memory": "24Mi"}, "limits": {"memory": "24Mi"}}}]`)
	i.check(1, "OOMKilled")
	i.apply(i, earlier, "")
	i.intact(earlier)
}

func (i *installation) upgraded() {
	i.apply(i, later, "")
	i.intact(later)
	i.apply(i, earlier, "")
	i.intact(earlier)
}

// unwritable: while Penstock cannot write its store, its Pod is not ready. Namespace deletion in
// the cluster does not wait for Penstock.
func (i *installation) unwritable() {
	volume := i.Plane().Volume(i.MustKubectl("get", "pvc", "penstock-data", "--namespace="+system, "--output=jsonpath={.spec.volumeName}"))
	own := func(uid int, folders fs.FileMode) {
		i.t.Helper()
		err := filepath.WalkDir(volume, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				err = os.Chmod(path, folders)
			}
			if err != nil {
				return err
			}
			return os.Lchown(path, uid, uid)
		})
		if err != nil {
			i.t.Fatal(err)
		}
	}
	own(0, 0o555)
	pod := i.pod()
	i.system.Delete("pod/" + pod)
	i.system.Gone("pod/" + pod)
	i.MustKubectl("wait", "--for=condition=Available", "apiservice/v1alpha1.olm.operatorframework.io", poll.TimeoutFlag)
	i.check(1, "store-identity", "the embedded etcd does not run")
	i.system.Becomes("pod/"+i.pod(), `.status.containerStatuses[0].started`, "true")
	i.system.Becomes("pod/"+i.pod(), `.status.conditions[?(@.type=="Ready")].status`, "False")
	i.MustKubectl("create", "namespace", "meanwhile")
	i.MustKubectl("delete", "namespace", "meanwhile", poll.TimeoutFlag)
	own(65532, 0o700)
	i.intact(earlier)
}

func (i *installation) uninstalled(clean string) {
	if out := (plugin.User{Kubeconfig: i.Kubeconfig()}).Run(i.t, "kubectl penstock unregister --release-finalizers"); out.ExitCode != 0 {
		i.t.Fatal(out)
	}
	i.delete(i)
	if now := i.running(); now != i.before {
		i.t.Errorf("the rolled-out workload is %s, was %s", now, i.before)
	}
	shown := i.MustKubectl("get", "deployment/shop", "configmap/settings", "--namespace=shop", "--output=yaml", "--show-managed-fields")
	for _, mark := range []string{"penstock.dev/", "manager: penstock"} {
		if strings.Contains(shown, mark) {
			i.t.Errorf("%q is still there:\n%s", mark, shown)
		}
	}
	i.MustKubectl("delete", "namespace", "shop", poll.TimeoutFlag)
	if left := i.everything(); left != clean {
		i.t.Errorf("objects now:\n%s\nbefore:\n%s", left, clean)
	}
}

// everything returns the names of all objects that Penstock could leave behind.
func (i *installation) everything() string {
	i.t.Helper()
	return i.MustKubectl("get", "namespaces,crds,apiservices,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,"+
		"mutatingwebhookconfigurations,validatingwebhookconfigurations,priorityclasses,flowschemas,prioritylevelconfigurations", "--output=name") +
		i.MustKubectl("get", "roles,rolebindings,leases,configmaps,secrets,services,endpointslices,pvc", "--all-namespaces", "--output=jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}")
}
