//go:build integration

package extension_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/plugin"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// fleetScenarios test ClusterExtensionSets with several control planes.
func fleetScenarios() map[string]scenario {
	return map[string]scenario{"Waves": waves, "Away": away, "Clusters": clusters}
}

const (
	mayWriteSets = "- {apiGroups: [penstock.dev], resources: [clusterextensionsets], verbs: [create, get, patch, update, delete]}\n"
	mayDecide    = `
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrollouts], verbs: [get, list, watch, approve, halt, resume, retry, skip]}
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrollouts/approve, clusterextensionrollouts/halt, clusterextensionrollouts/resume, clusterextensionrollouts/retry, clusterextensionrollouts/skip], verbs: [create]}
`
)

// ship is a set and the clusters that it selects.
type ship struct {
	shared
	targets map[string]*cluster.Cluster
}

// secret returns the name of a target's Secret.
func (s ship) secret(target string) string { return s.name + "-" + target }

// uses returns the rule that allows to use some targets.
func (s ship) uses(targets ...string) string {
	names := make([]string, len(targets))
	for i, target := range targets {
		names[i] = s.secret(target)
	}
	return fmt.Sprintf("- {apiGroups: [policy.penstock.dev], resources: [targets], resourceNames: [%s], verbs: [use]}\n", strings.Join(names, ", "))
}

// join starts a control plane and adds it to the set's clusters.
func (s ship) join(target, ring string) {
	s.t.Helper()
	s.targets[target] = cluster.Start(s.t)
	s.targets[target].MustKubectl("create", "namespace", s.name)
	s.open(target, ring, s.kubeconfig(s.targets[target]))
}

// kubeconfig returns an administrator's kubeconfig of a control plane.
func (s ship) kubeconfig(of *cluster.Cluster) *clientcmdapi.Config {
	s.t.Helper()
	config, err := clientcmd.LoadFromFile(of.User("penstock-"+s.name, "system:masters").Kubeconfig())
	if err != nil {
		s.t.Fatal(err)
	}
	return config
}

// open writes a kubeconfig into the Secret of a cluster of the set.
func (s ship) open(target, ring string, config *clientcmdapi.Config) {
	s.t.Helper()
	raw, err := clientcmd.Write(*config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.MustKubectlInput(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: penstock-system, labels: {penstock.dev/cluster: '', fleet: %s, ring: %q}}, data: {kubeconfig: %s}}",
		s.secret(target), s.name, ring, base64.StdEncoding.EncodeToString(raw)), "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// set returns the manifest of the set with an image, the deadline of a cluster in seconds, and
// maxUnavailable.
func (s ship) set(image string, deadline, unavailable int) string {
	return fmt.Sprintf(`
apiVersion: penstock.dev/v1alpha1
kind: ClusterExtensionSet
metadata: {name: %[1]s}
spec:
  clusterSelector: {matchLabels: {fleet: %[1]s}}
  template: {spec: {namespace: %[1]s, source: {sourceType: Image, image: {ref: %[2]q}}}}
  strategy:
    deadlineSeconds: %[3]d
    waves:
    - {name: canary, clusterSelector: {matchLabels: {ring: "0"}}, soakSeconds: 1}
    - {name: rest, maxUnavailable: %[4]d}
`, s.name, image, deadline, unavailable)
}

// image pushes an image with a version of the lamp and additional objects.
func (s ship) image(version, more string) string {
	return s.pushFiles("plain/"+s.name, map[string]string{
		"lamp.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lamp, namespace: %s}\ndata: {version: %q}\n%s", s.name, version, more),
	})
}

// shade is an additional ConfigMap.
func (s ship) shade() string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shade, namespace: %s}\n", s.name)
}

// deployment is an additional Deployment. Only the test makes it available, so the test decides
// when a change ends.
func (s ship) deployment() string {
	return fmt.Sprintf("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: lamp, namespace: %s}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: lamp, image: lamp}]}}}\n", s.name)
}

// available waits for the Deployment of a target, and makes it available or unavailable.
func (s ship) available(target string, is bool) {
	s.t.Helper()
	count, status := 0, "False"
	if is {
		count, status = 1, "True"
	}
	s.targets[target].MustKubectl("-n", s.name, "wait", "--for=create", poll.TimeoutFlag, "deployment/lamp")
	s.targets[target].MustKubectl("-n", s.name, "patch", "deployment", "lamp", "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
		`{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":%[1]d,"availableReplicas":%[1]d,"unavailableReplicas":%[2]d,"conditions":[{"type":"Available","status":%[3]q}]}}`, count, 1-count, status))
}

// apply writes the set as a user.
func (s ship) apply(author person, manifest string) {
	s.t.Helper()
	author.MustKubectlInput(manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// hang stops the kube-apiserver of a target, which then accepts connections and does not answer.
// The returned function continues it.
func (s ship) hang(target string) (answer func()) {
	s.t.Helper()
	pid, err := s.targets[target].Plane().Pid("kube-apiserver")
	if err != nil {
		s.t.Fatal(err)
	}
	send := func(signal syscall.Signal) {
		if err := syscall.Kill(pid, signal); err != nil {
			s.t.Error(err)
		}
	}
	send(syscall.SIGSTOP)
	once := sync.OnceFunc(func() { send(syscall.SIGCONT) })
	s.t.Cleanup(once)
	return once
}

// is returns a function that reports whether a target is in a state.
func (s ship) is(target string, state fleet.State) func(*olmv1alpha1.ClusterExtensionRollout) bool {
	return func(r *olmv1alpha1.ClusterExtensionRollout) bool {
		return slices.ContainsFunc(r.Status.Clusters, func(one olmv1alpha1.RolloutClusterStatus) bool {
			return one.Name == s.secret(target) && one.State == string(state)
		})
	}
}

// rollout waits for a state of a rollout of the set and returns it.
func (s ship) rollout(number int, what string, is func(*olmv1alpha1.ClusterExtensionRollout) bool) *olmv1alpha1.ClusterExtensionRollout {
	s.t.Helper()
	found := &olmv1alpha1.ClusterExtensionRollout{}
	s.await(olmv1alpha1.SchemeGroupVersion.WithResource("clusterextensionrollouts"), fmt.Sprintf("%s-%d", s.name, number), what, func(object *unstructured.Unstructured) (bool, error) {
		if object == nil {
			return false, nil
		}
		found = &olmv1alpha1.ClusterExtensionRollout{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found); err != nil {
			return false, err
		}
		return is(found), nil
	})
	return found
}

// inPhase returns a function that reports whether a rollout is in a phase.
func inPhase(phase fleet.Phase) func(*olmv1alpha1.ClusterExtensionRollout) bool {
	return func(r *olmv1alpha1.ClusterExtensionRollout) bool { return r.Status.Phase == string(phase) }
}

// states lists the clusters in a rollout's status with their states.
func (s ship) states(r *olmv1alpha1.ClusterExtensionRollout) string {
	var states []string
	for _, one := range r.Status.Clusters {
		states = append(states, strings.TrimPrefix(one.Name, s.name+"-")+" "+one.State)
	}
	slices.Sort(states)
	return strings.Join(states, ", ")
}

// as returns a client of a user.
func (s ship) as(who person) versioned.Interface {
	s.t.Helper()
	client, err := versioned.NewForConfig(who.Config())
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

func (s ship) approve(who person, r *olmv1alpha1.ClusterExtensionRollout, digest string) error {
	_, err := s.as(who).OlmV1alpha1().ClusterExtensionRollouts().Approve(s.t.Context(), r.Name, &olmv1alpha1.RolloutRequest{Spec: olmv1alpha1.RolloutRequestSpec{Digest: digest}}, metav1.CreateOptions{})
	return err
}

// approved waits for a rollout that needs review, and approves it as a user.
func (s ship) approved(who person, number int) *olmv1alpha1.ClusterExtensionRollout {
	s.t.Helper()
	waits := s.rollout(number, "it waits for an approval", inPhase(fleet.ReviewRequired))
	if err := s.approve(who, waits, waits.Status.Digest); err != nil {
		s.t.Fatal(err)
	}
	return waits
}

// types runs a command from the plugin's help with the names of the scenario.
func (s ship) types(who person, code int, line string) plugin.Output {
	s.t.Helper()
	return s.shared.types(who, code, strings.NewReplacer("argocd", s.name, "edge-17", s.secret("b")).Replace(line))
}

// has returns the version in a target.
func (s ship) has(target string) string {
	s.t.Helper()
	return s.targets[target].Kubectl("-n", s.name, "get", "--ignore-not-found", "configmap/lamp", "-o", "jsonpath={.data.version}").Stdout
}

// waves: a change reaches the canary first, and the other clusters after its soak time. Only
// another user with the right to use all clusters can approve it. A failing cluster halts the
// rollout, which can complete without that cluster. Only Penstock writes children. They outlive the
// set.
func waves(w shared) {
	s := ship{w, map[string]*cluster.Cluster{}}
	for target, ring := range map[string]string{"a": "0", "b": "1", "c": "1"} {
		s.join(target, ring)
	}
	all := s.uses("a", "b", "c")
	alice := s.person("alice", mayWriteSets+mayCreate+mayDecide+all)
	bob, carol := s.person("bob", mayDecide+all), s.person("carol", mayDecide+s.uses("a", "b"))
	s.apply(alice, s.set(s.image("1", ""), 20, 1))
	s.t.Cleanup(func() { s.Kubectl("delete", "--ignore-not-found", "--wait=false", "clusterextensionset", s.name) })

	first := s.rollout(1, "it waits for an approval", inPhase(fleet.ReviewRequired))
	if len(first.Spec.Groups) != 1 || len(first.Spec.Groups[0].Clusters) != 3 || first.Spec.RequestedBy != alice.name || !strings.Contains(string(first.Spec.Groups[0].Diff.Raw), `"lamp"`) {
		s.t.Errorf("the rollout is %+v", first.Spec)
	}
	if got := s.Kubectl("get", "clusterextensions", "-o", "name").Stdout; strings.Contains(got, s.name+".") {
		s.t.Errorf("children exist before an approval: %s", got)
	}
	for who, want := range map[*person]string{&alice: "another user must approve", &carol: s.secret("c")} {
		if err := s.approve(*who, first, first.Status.Digest); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			s.t.Errorf("%s approves: %v, want %s", who.name, err, want)
		}
	}
	if err := s.approve(bob, first, "sha256:before"); !apierrors.IsConflict(err) {
		s.t.Errorf("approving another digest: %v", err)
	}
	s.says(s.types(bob, 0, `kubectl penstock fleet diff argocd`).Stdout, "3 clusters", "lamp")
	s.types(bob, 0, `kubectl penstock fleet halt argocd`)
	s.types(bob, 0, `kubectl penstock fleet approve argocd --comment CHG-4711`)
	if halted := s.rollout(1, "a user halted it", inPhase(fleet.PhaseHalted)); len(halted.Status.Clusters) > 0 || halted.Status.HaltedBy != bob.name {
		s.t.Errorf("the rollout is %+v", halted.Status)
	}
	s.types(bob, 0, `kubectl penstock fleet resume argocd`)
	s.rollout(1, "every cluster has it", func(r *olmv1alpha1.ClusterExtensionRollout) bool {
		states := s.states(r)
		if strings.Contains(states, "b ") && !strings.Contains(states, "a Succeeded") {
			s.t.Errorf("the second wave began before the end of the first: %s", states)
		}
		return r.Status.Phase == string(fleet.Completed)
	})
	for target := range s.targets {
		if got := s.has(target); got != "1" {
			s.t.Errorf("cluster %s has %q", target, got)
		}
	}

	// Cluster b has an object that collides with the next version.
	s.targets["b"].MustKubectl("-n", s.name, "create", "configmap", "shade")
	s.apply(alice, s.set(s.image("2", s.shade()), 20, 1))
	s.approved(bob, 2)
	second := s.rollout(2, "one cluster halts it", inPhase(fleet.PhaseHalted))
	if got := s.states(second); got != "a Succeeded, b Failed" {
		s.t.Errorf("the clusters are %s", got)
	}
	if got := s.has("c"); got != "1" {
		s.t.Errorf("a cluster of a later wave has %q", got)
	}
	child := extensionset.ChildName(s.name, s.secret("c"))
	admin := s.admin()
	for _, args := range [][]string{
		{"patch", "clusterextension", child, "--type=merge", "-p", `{"spec":{"source":{"image":{"ref":"registry.example.com/x:1"}}}}`},
		{"annotate", "--overwrite", "clusterextension", child, extension.ContentAnnotation + "=x"},
		{"delete", "clusterextension", child},
	} {
		if out := admin.Kubectl(args...); out.ExitCode == 0 || !strings.Contains(out.Stderr, s.name) {
			s.t.Errorf("%v: %s", args, out)
		}
	}
	s.says(s.types(bob, 0, `kubectl penstock fleet status argocd`).Stdout, "Halted", "Failed", "fleet skip")
	s.types(bob, 0, `kubectl penstock fleet retry argocd edge-17`)
	s.rollout(2, "it fails again", func(r *olmv1alpha1.ClusterExtensionRollout) bool {
		return slices.ContainsFunc(r.Status.Clusters, func(one olmv1alpha1.RolloutClusterStatus) bool {
			return one.Attempt == 2 && one.State == string(fleet.Failed)
		})
	})
	before := &olmv1alpha1.RolloutRequest{Spec: olmv1alpha1.RolloutRequestSpec{Digest: second.Status.Troubles, Clusters: []string{s.secret("b")}}}
	if _, err := s.as(bob).OlmV1alpha1().ClusterExtensionRollouts().Skip(s.t.Context(), second.Name, before, metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		s.t.Errorf("a decision about earlier failures: %v", err)
	}
	s.types(bob, 0, `kubectl penstock fleet skip argocd edge-17`)
	second = s.rollout(2, "it goes on without the cluster", inPhase(fleet.Completed))
	if got := s.states(second); got != "a Succeeded, b Skipped, c Succeeded" {
		s.t.Errorf("the clusters are %s", got)
	}
	if got := s.has("a") + s.has("c"); got != "22" {
		s.t.Errorf("the clusters have %s", got)
	}

	// A cluster leaves the set. Nothing changes in it, and its extension can be deleted.
	s.MustKubectl("-n", "penstock-system", "label", "secret", s.secret("c"), "fleet-")
	s.await(extension.Resource, child, "its cluster left", func(object *unstructured.Unstructured) (bool, error) {
		return object != nil && object.GetAnnotations()[extension.RolloutAnnotation] == "", nil
	})
	if got := s.has("c"); got != "2" {
		s.t.Errorf("the cluster that left has %q", got)
	}
	admin.MustKubectl("delete", "clusterextension", child)
	child = extensionset.ChildName(s.name, s.secret("a"))

	// Dave pauses the set that alice wrote, and becomes its requester. Alice still cannot approve,
	// because she wrote the content.
	dave := s.person("dave", mayWriteSets+mayCreate+all)
	s.apply(alice, s.set(s.image("3", ""), 20, 1))
	s.rollout(3, "it waits for an approval", inPhase(fleet.ReviewRequired))
	dave.MustKubectl("patch", "clusterextensionset", s.name, "--type=merge", "-p", `{"spec":{"paused":true}}`)
	fourth := s.rollout(4, "it waits for an approval", inPhase(fleet.ReviewRequired))
	if err := s.approve(alice, fourth, fourth.Status.Digest); !apierrors.IsForbidden(err) || fourth.Spec.RequestedBy != dave.name {
		s.t.Errorf("alice approved her own change, requested again by %s: %v", fourth.Spec.RequestedBy, err)
	}

	alice.MustKubectl("delete", "--wait=false", "clusterextensionset", s.name)
	s.awaitGone(extensionset.Resource, s.name, "its children are extensions of their own")
	if got := s.MustKubectl("get", "clusterextension", child, "-o", "jsonpath={.metadata.annotations}"); strings.Contains(got, extension.SetAnnotation+`"`) {
		s.t.Errorf("the child still belongs to the deleted set: %s", got)
	}
	if got := s.has("a"); got != "2" {
		s.t.Errorf("the objects of the child were deleted with the set: %q", got)
	}
	sizes(s, alice, bob, mayWriteSets+mayCreate+mayDecide+all)
}

// sizes: clusters with different overrides get different content in one rollout. When a cluster
// leaves, its content is deleted if the set's author has the right to delete it. Deleting the set
// deletes its content.
func sizes(s ship, alice, bob person, rights string) {
	sizes := s
	sizes.name += "-sizes"
	chart := s.pushFiles("charts/"+s.name, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: sizes\nversion: 1.0.0\n", "values.yaml": "size: 1\ncolour: red\n",
		"templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: size}\ndata: {size: {{ .Values.size | quote }}, colour: {{ .Values.colour | quote }}}\n",
	})
	manifest := func(overrides string) string {
		return fmt.Sprintf(`
apiVersion: penstock.dev/v1alpha1
kind: ClusterExtensionSet
metadata: {name: %s}
spec:
  clusterSelector: {matchLabels: {fleet: %s}}
  template: {spec: {namespace: %[2]s, source: {sourceType: Chart, chart: {ref: %q}}, config: {configType: Inline, inline: {size: 2, colour: green}}}}
  removalPolicy: Delete
  overrides: [%s]
`, sizes.name, s.name, chart, overrides)
	}
	for faults, want := range map[string]string{
		"{config: {size: 3}}":                             "exactly one of clusterSelector and clusterNames",
		"{clusterNames: [a]}":                             "config or version must be set",
		"{clusterNames: [a], config: 3}":                  "spec.overrides[0].config",
		"{clusterNames: [a], version: 1.x}":               "spec.overrides[0].version",
		"{clusterSelector: {}, config: {size: 3}}":        "spec.overrides[0].clusterSelector",
		"{clusterNames: [a], config: {size: 3}, b: true}": "spec.overrides[0].b",
	} {
		if out := alice.KubectlInput(manifest(faults), "create", "-f", "-"); out.ExitCode == 0 || !strings.Contains(out.Stderr, want) {
			s.t.Errorf("%s: %s, want %s", faults, out, want)
		}
	}
	s.MustKubectl("-n", "penstock-system", "label", "secret", s.secret("c"), "fleet="+s.name)
	s.apply(alice, manifest(fmt.Sprintf("{clusterSelector: {matchLabels: {ring: '1'}}, config: {size: 3, colour: null}}, {clusterNames: [%s], config: {size: 4}}", s.secret("b"))))
	s.t.Cleanup(func() { s.Kubectl("delete", "--ignore-not-found", "--wait=false", "clusterextensionset", sizes.name) })
	first := sizes.rollout(1, "it waits for an approval", inPhase(fleet.ReviewRequired))
	if len(first.Spec.Groups) != 3 {
		s.t.Errorf("the groups are %+v", first.Spec.Groups)
	}
	if err := s.approve(bob, first, first.Status.Digest); err != nil {
		s.t.Fatal(err)
	}
	sizes.rollout(1, "every cluster has it", inPhase(fleet.Completed))
	for target, want := range map[string]string{"a": "2 green", "b": "4 red", "c": "3 red"} {
		if got := s.targets[target].MustKubectl("-n", s.name, "get", "configmap/size", "-o", "jsonpath={.data.size} {.data.colour}"); got != want {
			s.t.Errorf("cluster %s has %q, want %q", target, got, want)
		}
	}

	child := extensionset.ChildName(sizes.name, s.secret("c"))
	s.MustKubectl("-n", "penstock-system", "label", "secret", s.secret("c"), "fleet-")
	s.await(extensionset.Resource, sizes.name, "its author cannot delete the child", func(object *unstructured.Unstructured) (bool, error) {
		exceptions, _, err := unstructured.NestedSlice(object.Object, "status", "exceptions")
		return strings.Contains(fmt.Sprint(exceptions), "cannot delete ClusterExtension "+child), err
	})
	s.MustKubectl("get", "clusterextension", child)
	s.grant(alice.name, "User", rights+"- {apiGroups: [olm.operatorframework.io], resources: [clusterextensions], verbs: [delete]}\n")
	s.MustKubectl("label", "clusterextensionset", sizes.name, "pass=again") // triggers a pass, which else comes within a minute
	s.awaitGone(extension.Resource, child, "its cluster left")
	s.targets["c"].MustKubectl("-n", s.name, "wait", "--for=delete", poll.TimeoutFlag, "configmap/size")
	s.MustKubectl("get", "clusterextension", extensionset.ChildName(sizes.name, s.secret("a")))

	// Only Penstock can label children. Deleting the set deletes its content.
	if out := s.admin().Kubectl("label", "clusterextension", extensionset.ChildName(sizes.name, s.secret("a")), "mine=yes"); out.ExitCode == 0 || !strings.Contains(out.Stderr, sizes.name) {
		s.t.Errorf("a child is labelled: %s", out)
	}
	alice.MustKubectl("patch", "clusterextensionset", sizes.name, "--type=merge", "-p", `{"spec":{"teardownPolicy":"Delete"}}`)
	alice.MustKubectl("delete", "--wait=false", "clusterextensionset", sizes.name)
	s.awaitGone(extensionset.Resource, sizes.name, "its content is gone")
	for _, target := range []string{"a", "b"} {
		if got := s.targets[target].Kubectl("-n", s.name, "get", "--ignore-not-found", "-o", "name", "configmap/size").Stdout; got != "" {
			s.t.Errorf("cluster %s has %s", target, got)
		}
	}
}

// away: a cluster that hangs before its turn does not delay the rollout, and catches up later. A
// cluster that hangs during its change keeps its slot. It completes the change after its
// kube-apiserver was restarted.
func away(w shared) {
	s := ship{w, map[string]*cluster.Cluster{}}
	for target, ring := range map[string]string{"a": "0", "b": "1", "c": "1"} {
		s.join(target, ring)
	}
	all := s.uses("a", "b", "c")
	alice, bob := s.person("alice", mayWriteSets+mayCreate+mayDecide+all), s.person("bob", mayDecide+all)
	s.apply(alice, s.set(s.image("1", ""), 1800, 2))
	s.t.Cleanup(func() { s.Kubectl("delete", "--ignore-not-found", "--wait=false", "clusterextensionset", s.name) })
	s.rollout(1, "it waits for an approval", inPhase(fleet.ReviewRequired))
	s.types(bob, 0, `kubectl penstock fleet halt argocd`)
	s.approved(bob, 1)
	answers := s.hang("c")
	s.types(bob, 0, `kubectl penstock fleet resume argocd`)
	first := s.rollout(1, "it completes without the cluster that hangs", inPhase(fleet.Completed))
	if got := s.states(first); got != "a Succeeded, b Succeeded, c Deferred" {
		s.t.Errorf("the clusters are %s", got)
	}
	answers()
	s.rollout(1, "the cluster follows", s.is("c", fleet.Succeeded))
	if got := s.has("a") + s.has("b") + s.has("c"); got != "111" {
		s.t.Errorf("the clusters have %s", got)
	}

	// The change of b lasts until the test ends it.
	s.apply(alice, s.set(s.image("2", s.deployment()), 1800, 2))
	s.approved(bob, 2)
	s.available("a", true)
	s.available("c", true)
	s.rollout(2, "the change of b has begun, and that of c has ended", func(r *olmv1alpha1.ClusterExtensionRollout) bool {
		return s.is("b", fleet.Updating)(r) && s.is("c", fleet.Succeeded)(r)
	})
	answers = s.hang("b")
	lost := s.rollout(2, "b is lost", s.is("b", fleet.Unknown))
	if lost.Status.Phase != string(fleet.InProgress) {
		s.t.Errorf("the rollout is %s: %s", lost.Status.Phase, lost.Status.Message)
	}
	answers()
	if err := s.targets["b"].Plane().Reconfigure(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.available("b", true)
	second := s.rollout(2, "every cluster has it", inPhase(fleet.Completed))
	if got := s.states(second) + " " + s.has("a") + s.has("b") + s.has("c"); got != "a Succeeded, b Succeeded, c Succeeded 222" {
		s.t.Errorf("the clusters are %s", got)
	}
	for _, one := range second.Status.Clusters {
		if one.Attempt != 1 {
			s.t.Errorf("cluster %s began %d times", one.Name, one.Attempt)
		}
	}
}
