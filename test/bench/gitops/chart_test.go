package gitops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/pod"
	"github.com/penstock-project/penstock/test/framework/poll"
)

const (
	chartFolder = "../../../artifacts/chart"
	// formerCharts has the chart of each release, and one older chart.
	formerCharts = "testdata/charts"
	system       = "penstock-system"
)

// TestChart: Helm upgrades Penstock's chart from the previous version, rolls it back, and
// uninstalls it, with and without a running program. Everything unrelated to the new version stays
// unchanged. FULL=1 starts from all earlier charts, and also uses Helm 3's way to apply.
func TestChart(t *testing.T) {
	if os.Getenv("PENSTOCK_PROGRAM") == "" {
		t.Skip("it needs the program: make test")
	}
	// The name of the real program, instead of this test's.
	kube.ManagedFieldsManager = "helm"
	former, err := formers()
	if err != nil {
		t.Fatal(err)
	}
	ways := []bool{true}
	if os.Getenv("FULL") == "1" {
		ways = append(ways, false)
	} else {
		former = former[len(former)-1:]
	}
	i := &installation{Cluster: cluster.Start(t, cluster.APIServerArgs(pod.Routing)), program: penstock.Build(t), dir: filepath.Dir(penstock.DataDir(t))}
	for _, path := range former {
		for _, serverSide := range ways {
			t.Run(fmt.Sprintf("%s,server-side=%v", strings.TrimSuffix(filepath.Base(path), ".tgz"), serverSide), func(t *testing.T) {
				in := *i
				in.Cluster, in.t, in.serverSide = i.In(t), t, serverSide
				in.upgrades(path)
			})
		}
	}
}

func formers() ([]string, error) {
	found, err := filepath.Glob(filepath.Join(formerCharts, "penstock-*.tgz"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no chart of a former release in %s", formerCharts)
	}
	version := func(path string) *semver.Version {
		return semver.MustParse(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "penstock-"), ".tgz"))
	}
	slices.SortFunc(found, func(a, b string) int { return version(a).Compare(version(b)) })
	return found, nil
}

// installation is Helm's installation of the chart in a cluster without a kubelet. The program runs
// in this test, as the Deployment describes.
type installation struct {
	*cluster.Cluster
	t       *testing.T
	program *penstock.Program
	dir     string
	// serverSide is true to apply as Helm 4 does, false as Helm 3 does.
	serverSide bool
}

func (i *installation) upgrades(former string) {
	i.install(former)
	before := i.objects()
	i.upgrade(packed(i.t, chartFolder, "v1.0.0"), nil, func(*action.Upgrade) {})
	i.is("v1.0.0", "--v=1")
	after := i.objects()
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		// One policy has replaced the policies of the single jobs
		// (docs/adr/0042-one-policy-for-all-identities.md).
		if after[kind+"/<nil>/penstock-identities"] == nil {
			i.t.Errorf("there is no %s that limits jobs", kind)
		}
		for _, job := range []string{"engine", "reader", "templates"} {
			delete(before, kind+"/<nil>/penstock-"+job)
		}
	}
	for name := range before {
		// The program registers itself now, so Helm deletes the APIServices of the earlier chart.
		if strings.HasPrefix(name, "APIService/") {
			delete(before, name)
		}
	}
	i.sameIDs(before, after)

	server := i.run()
	before, authority := i.objects(), i.authority()
	// Keep the previous values and the previous defaults.
	i.upgrade(packed(i.t, chartFolder, "v1.1.0"), map[string]any{"extraArgs": []any{"--v=2"}}, func(u *action.Upgrade) { u.ReuseValues = true })
	i.is("v1.1.0", "--v=2")
	i.same(before, i.objects())
	// Keep the previous values, and take the new defaults.
	i.upgrade(packed(i.t, chartFolder, "v1.2.0"), nil, func(u *action.Upgrade) { u.ResetThenReuseValues = true })
	i.is("v1.2.0", "--v=2")
	i.same(before, i.objects())
	if diff := cmp.Diff(authority, i.authority()); diff != "" {
		i.t.Errorf("an upgrade made another authority (-before +after):\n%s", diff)
	}

	i.anotherRole()
	if err := i.rollback(4); err != nil {
		i.t.Fatalf("helm rollback: %v", err)
	}
	i.is("v1.2.0", "--v=2")
	i.same(before, i.objects())
	server.Stop(i.t)
	if log := server.Complaints(); strings.Contains(log, "forbidden") {
		i.t.Errorf("something was refused:\n%s", log)
	}
	i.uninstall()
	if diff := cmp.Diff(authority, i.authority()); diff != "" {
		i.t.Errorf("Secret penstock-ca after helm uninstall (-before +after):\n%s", diff)
	}
}

// anotherRole upgrades to a chart whose program needs other rights, while the previous program
// runs. That program keeps its own role until it is replaced.
func (i *installation) anotherRole() {
	i.t.Helper()
	next := packed(i.t, chartFolder, "v1.3.0")
	for _, template := range next.Templates {
		if template.Name == "templates/rbac-engine.yaml" {
			template.Data = bytes.Replace(template.Data, []byte("resources: [signers], verbs: [attest]"), []byte("resources: [signers], verbs: [sign]"), 1)
		}
	}
	if i.serverSide {
		err := i.tryUpgrade(next, nil, func(*action.Upgrade) {})
		if err == nil || !strings.Contains(err.Error(), "conflict") || !strings.Contains(err.Error(), `"penstock"`) {
			i.t.Errorf("an upgrade that changes a role of the running program: %v", err)
		}
	}
	i.upgrade(next, nil, func(u *action.Upgrade) { u.ForceConflicts = i.serverSide })
	i.is("v1.3.0", "--v=2")
	i.MustKubectl("wait", "clusterrole/penstock-engine", "--for=jsonpath={.rules[2].verbs[0]}=attest", poll.TimeoutFlag)
}

// objects returns the live objects of the release, by kind and name, without fields that the
// cluster sets.
func (i *installation) objects() map[string]map[string]any {
	i.t.Helper()
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(i.MustKubectlInput(i.manifest(), "get", "-f", "-", "-o", "json")), &list); err != nil {
		i.t.Fatal(err)
	}
	found := map[string]map[string]any{}
	for _, object := range list.Items {
		metadata := object["metadata"].(map[string]any)
		for _, field := range []string{"managedFields", "resourceVersion"} {
			delete(metadata, field)
		}
		delete(object, "status")
		found[fmt.Sprint(object["kind"], "/", metadata["namespace"], "/", metadata["name"])] = object
	}
	return found
}

// sameIDs checks that no object was deleted and created again.
func (i *installation) sameIDs(before, after map[string]map[string]any) {
	i.t.Helper()
	uid := func(object map[string]any) any { return object["metadata"].(map[string]any)["uid"] }
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now := after[name]; now == nil || uid(now) != uid(before[name]) {
			i.t.Errorf("%s was deleted, or made anew", name)
		}
	}
}

// same checks that only the Deployment has changed, and was not replaced.
func (i *installation) same(before, after map[string]map[string]any) {
	i.t.Helper()
	i.sameIDs(before, after)
	without := func(objects map[string]map[string]any) map[string]map[string]any {
		made := maps.Clone(objects)
		delete(made, "Deployment/"+system+"/penstock")
		return made
	}
	if diff := cmp.Diff(without(before), without(after)); diff != "" {
		i.t.Errorf("an upgrade changed more than the Deployment (-before +after):\n%s", diff)
	}
}

// authority returns the Secret with the CA of the program's certificates.
func (i *installation) authority() string {
	i.t.Helper()
	return i.MustKubectl("get", "secret", "penstock-ca", "-n", system, "-o", "jsonpath={.metadata.uid} {.data}")
}

func (i *installation) deployment() appsv1.Deployment {
	i.t.Helper()
	var found appsv1.Deployment
	if err := json.Unmarshal([]byte(i.MustKubectl("get", "deployment", "penstock", "-n", system, "-o", "json")), &found); err != nil {
		i.t.Fatal(err)
	}
	return found
}

// is checks that the Deployment has a version and the installation's values.
func (i *installation) is(version, argument string) {
	i.t.Helper()
	container := i.deployment().Spec.Template.Spec.Containers[0]
	if want := "registry.example.com/penstock:" + version; container.Image != want {
		i.t.Errorf("the image is %s, want %s", container.Image, want)
	}
	if !slices.Contains(container.Args, argument) || container.Resources.Requests.Cpu().String() != "250m" {
		i.t.Errorf("the values are lost: arguments %v, requests %v", container.Args, container.Resources.Requests)
	}
	if size := i.MustKubectl("get", "pvc", "penstock-data", "-n", system, "-o", "jsonpath={.spec.resources.requests.storage}"); size != "20Gi" {
		i.t.Errorf("the volume is to have %s", size)
	}
}

// run runs the Pod of the Deployment, and waits until the host reaches it.
func (i *installation) run() *penstock.Server {
	i.t.Helper()
	template := i.deployment().Spec.Template
	made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "penstock", Namespace: system, Labels: template.Labels}, Spec: template.Spec}
	container, err := pod.Prepare(i.t.Context(), i.Config(), made, pod.Options{Dir: i.dir, Program: i.program.Path()})
	if err != nil {
		i.t.Fatal(err)
	}
	server := penstock.Start(i.t, container.Command())
	if err := pod.Reach(i.t.Context(), i.Config(), system, "penstock", made.Name, container); err != nil {
		i.t.Fatal(err)
	}
	server.Await(i.t, penstock.Served)
	i.MustKubectl("wait", "--for=condition=Available", poll.TimeoutFlag, "apiservice/v1alpha1.olm.operatorframework.io",
		"apiservice/v1alpha1.hco.kubevirt.io", "apiservice/v1alpha1.catalog.penstock.dev")
	return server
}
