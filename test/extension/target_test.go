//go:build integration

package extension_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/retention"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/cable"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// abroad is the shared cluster with a second cluster as the target of extensions, and the cable to
// it. The Secret with its kubeconfig has the scenario's name.
type abroad struct {
	shared
	target *cluster.Cluster
	way    *cable.Cable
}

// goAbroad starts the target cluster.
func (w shared) goAbroad(options ...cluster.Option) abroad {
	w.t.Helper()
	a := abroad{shared: w, target: cluster.Start(w.t, options...)}
	address, err := url.Parse(a.target.Config().Host)
	if err != nil {
		w.t.Fatal(err)
	}
	a.way = cable.New(w.t, address.Host)
	return a
}

// elsewhere tests extensions for another cluster.
func elsewhere(w shared) {
	a := w.goAbroad(cluster.Workloads())
	for _, step := range []struct {
		name string
		do   func(abroad)
	}{{"Use", abroad.use}, {"Far", abroad.far}, {"Away", abroad.away}} {
		w.t.Run(step.name, func(t *testing.T) {
			one := a
			one.shared, one.target = w.in(t, w.name+"-"+step.name), a.target.In(t)
			one.target.MustKubectl("create", "namespace", one.name)
			step.do(one)
		})
	}
}

// point creates the target's Secret.
func (a abroad) point() {
	a.t.Helper()
	config, err := clientcmd.LoadFromFile(a.target.User("penstock", "system:masters").Kubeconfig())
	if err != nil {
		a.t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Server = "https://" + a.way.Address()
	}
	raw, err := clientcmd.Write(*config)
	if err != nil {
		a.t.Fatal(err)
	}
	a.MustKubectlInput(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: penstock-system}, data: {kubeconfig: %s}}", a.name, base64.StdEncoding.EncodeToString(raw)), "create", "-f", "-")
}

// mayUse returns the rule that allows to use the scenario's target.
func (a abroad) mayUse() string {
	return fmt.Sprintf("- {apiGroups: [policy.penstock.dev], resources: [targets], resourceNames: [%s], verbs: [use]}\n", a.name)
}

// leads returns the annotation that sets this target cluster.
func (a abroad) leads() string { return extension.TargetAnnotation + ": " + a.name }

// user returns a user who can write extensions for the target, and has no rights to objects in the
// host.
func (a abroad) user() person {
	a.t.Helper()
	return a.person("bob", mayWrite+mayCreate+a.mayUse())
}

// has returns a field of an object in the target, or "".
func (a abroad) has(object, path string) string {
	a.t.Helper()
	return a.target.Kubectl("-n", a.name, "get", "--ignore-not-found", object, "-o", "jsonpath={"+path+"}").Stdout
}

// use: an extension for another cluster needs the right to use it, which is checked before its
// Secret is read. Definitions are compared with the target's definitions.
func (a abroad) use() {
	image := func(fields ...string) string {
		properties := ""
		for _, field := range fields {
			properties += "              " + field + ": {type: string}\n"
		}
		return a.pushFiles("plain/"+a.name, map[string]string{
			"definition.yaml": definitionOf(a.name, properties),
			"lamp.yaml":       fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lamp, namespace: %s}\ndata: {fields: %q}\n", a.name, strings.Join(fields, " ")),
		})
	}
	extend := func(fields []string, more string) string {
		return fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: %[1]s, annotations: {%[2]s}}, spec: {namespace: %[1]s, source: {sourceType: Image, image: {ref: %[3]q}}%[4]s}}",
			a.name, a.leads(), image(fields...), more)
	}
	done := is("Progressing=True/Succeeded", "Ready=True/Succeeded")
	// The host has a definition of the same name. It would lose a field.
	a.MustKubectlInput(definitionOf(a.name, "              weight: {type: string}\n"), "create", "-f", "-")
	a.t.Cleanup(func() { a.Kubectl("delete", "--ignore-not-found", "--wait=false", "crd", a.name+"s.example.com") })
	bob := a.person("bob", mayWrite+mayCreate)
	a.apply(bob, a.name, extend([]string{"size", "color"}, ""))
	e := a.awaitExtension(a.name, "bob cannot use it", is("Ready=False/Denied: bob-"+a.name+" cannot use target "+a.name))
	if text := message(e, "Ready"); strings.Contains(text, "Secret") {
		a.t.Errorf("the message mentions the Secret: %s", text)
	}
	a.point()
	a.grant(bob.name, "User", mayWrite+mayCreate+a.mayUse())
	a.again(bob, a.name)
	a.awaitExtension(a.name, "it is installed", done)
	a.target.MustKubectl("-n", a.name, "get", "configmap/lamp", "customresourcedefinition/"+a.name+"s.example.com")
	if out := a.Kubectl("-n", a.name, "get", "configmap", "lamp"); out.ExitCode == 0 {
		a.t.Errorf("the object is in the host: %s", out)
	}
	a.apply(bob, a.name, extend([]string{"size"}, ""))
	a.awaitExtension(a.name, "it is not safe there", is("Ready=False/UnsafeDefinitions: color", "Stalled=True/UnsafeDefinitions"))
	a.apply(bob, a.name, extend([]string{"size"}, ", install: {preflight: {crdUpgradeSafety: {enforcement: None}}}"))
	a.awaitRevision(a.name+"-2", "it is rolled out", succeeded)
	a.awaitExtension(a.name, "it is upgraded", done)
	if got := a.has("configmap/lamp", ".data.fields"); got != "size" {
		a.t.Errorf("the object has %q", got)
	}
	if got := a.MustKubectl("get", "crd", a.name+"s.example.com", "-o", "jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties}"); !strings.Contains(got, "weight") {
		a.t.Errorf("the definition of the host has %s", got)
	}
	bob.MustKubectl("delete", "clusterextension", a.name)
	a.awaitGone(revisions, a.name+"-2", "it goes with the extension")
	if got := a.has("configmap/lamp", ".metadata.name"); got != "" {
		a.t.Errorf("%s is still there", got)
	}
}

// older: a bundle needs a newer Kubernetes version than the target has, so it is held there. In the
// host it is installed. Users of the target see the reason, and other users see that the version is
// unknown to them.
func older(w shared) {
	// No controllers run in it, because they would be newer than its kube-apiserver.
	a := w.goAbroad(cluster.APIServerArgs("--emulated-version=1.36"))
	a.target.MustKubectl("create", "namespace", a.name)
	a.point()
	here := a.name + "-here"
	bob, carol := a.person("bob", mayWrite+mayInstall+mayFollow+a.mayUse()), a.person("carol", mayWrite+mayFollow)
	a.publish(a.name, bundle{Package: a.name, Version: "1.0.0"}, bundle{Package: a.name, Version: "1.1.0", Replaces: "1.0.0", MinKubeVersion: "1.37.0"})
	a.apply(bob, here, a.extend(here, a.name))
	a.apply(bob, a.name, a.extend(a.name, a.name, a.leads()))
	a.awaitExtension(here, "the host has the Kubernetes", installed("1.1.0"))
	a.target.MustKubectl("-n", a.name, "wait", "--for=create", poll.TimeoutFlag, "deployment/"+a.name)
	a.target.MustKubectl("-n", a.name, "patch", "deployment", a.name, "--subresource=status", "--type=merge", "-p",
		`{"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}]}}`)
	const why = "needs Kubernetes 1.37.0 or later, and the cluster has 1.36.0"
	a.awaitExtension(a.name, "the target does not", all(installed("1.0.0"), is("UpgradeAvailable=True/Blocked: 1.1.0 is newer, and blocked: "+why)))
	upgrades := "kubectl penstock upgrades " + a.name
	a.says(a.types(bob, 0, upgrades).Stdout, a.name+": 1.0.0 is installed, as its spec asks for", "1.1.0 is blocked: it "+why+" (ClusterVersion)")
	a.says(a.types(carol, 0, upgrades).Stdout, "1.1.0 needs Kubernetes 1.37.0 or later, and the version of the cluster is not known here: you cannot use target "+a.name)
	a.apply(bob, a.name, a.extend(a.name, a.name, a.leads(), "version: 1.1.0"))
	a.awaitExtension(a.name, "a pinned version says so, and changes nothing", all(is("Ready=False/Unresolved: 1.1.0 "+why), func(e *extension.Extension) bool { return e.Status.Install.Bundle.Version == "1.0.0" }))
}

// far: with a latency of 50 ms to the cluster, no deadline is missed, edits are repaired and
// deletions complete.
func (a abroad) far() {
	a.way.Far(a.t, 50*time.Millisecond)
	defer a.way.Far(a.t, 0)
	a.point()
	a.publish(a.name, bundle{Package: a.name, Version: "1.0.0"}, bundle{Package: a.name, Version: "1.1.0", Replaces: "1.0.0"})
	bob := a.user()
	for _, version := range []string{"1.0.0", "1.1.0"} {
		a.apply(bob, a.name, a.extend(a.name, a.name, "version: "+version, a.leads(), extension.ProgressDeadlineAnnotation+`: "1"`))
		a.awaitExtension(a.name, version+" is installed", all(installed(version), is("Ready=True/Succeeded", "Available=True/ProbesSucceeded", "Stalled=False/NotStalled")))
	}
	text := func(want string) func() bool {
		return func() bool { return a.has("configmap/"+a.name+"-config", ".data.text") == want }
	}
	a.target.MustKubectl("-n", a.name, "patch", "configmap", a.name+"-config", "--type=merge", "-p", `{"data":{"text":"drifted"}}`)
	a.eventually("the edit is repaired", text("1.1.0"))
	bob.MustKubectl("delete", "clusterextension", a.name)
	for _, name := range []string{"-1", "-2"} {
		a.awaitGone(revisions, a.name+name, "it goes with the extension")
	}
	a.eventually("the objects are gone", text(""))
}

// away: while the target's kube-apiserver is unreachable, neither a deletion nor retention removes
// a revision with objects there. When it returns, each request is completed once.
func (a abroad) away() {
	a.point()
	bob, leaving := a.user(), a.name+"-leaving"
	write := func(name string, size int) {
		// An image of manifests, because a chart can be rendered only with the target's API.
		ref := a.pushFiles("plain/"+name, map[string]string{
			"lamp.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {size: %q}\n", name, a.name, fmt.Sprint(size)),
		})
		a.apply(bob, name, fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: %s, annotations: {%s}}, spec: {namespace: %s, source: {sourceType: Image, image: {ref: %q}}}}",
			name, a.leads(), a.name, ref))
	}
	done := is("Progressing=True/Succeeded", "Ready=True/Succeeded")
	write(leaving, 1)
	a.awaitExtension(leaving, "it is installed", done)
	const before = retention.Keep + 2 // one archived revision too many, and the active one
	for size := 1; size <= before; size++ {
		write(a.name, size)
		a.awaitExtension(a.name, "it is installed", done)
	}
	a.awaitGone(revisions, a.name+"-1", "no more are kept")
	uid := a.has("configmap/"+a.name, ".metadata.uid")
	a.way.Cut()
	a.awaitExtension(a.name, "the cluster is away", is("Ready=Unknown/Unknown", "Installed=True/Succeeded"))
	bob.MustKubectl("delete", "clusterextension", leaving, "--wait=false")
	write(a.name, before+1)
	a.awaitRevision(leaving+"-1", "its deletion waits, and says why", func(r *olmv1alpha1.ClusterExtensionRevision) bool {
		return r.DeletionTimestamp != nil && len(r.Finalizers) > 0 && strings.Contains(fmt.Sprint(r.Status.Conditions), "connection refused")
	})
	next := fmt.Sprintf("%s-%d", a.name, before+1)
	a.awaitRevision(next, "it waits for the cluster", func(r *olmv1alpha1.ClusterExtensionRevision) bool {
		return !succeeded(r) && strings.Contains(fmt.Sprint(r.Status.Conditions), "connection refused")
	})
	a.awaitExtension(a.name, "both revisions are told", func(e *extension.Extension) bool { return len(e.Status.ActiveRevisions) == 2 })
	a.revisionsAre(before, 2, before+1)
	if got := a.has("configmap/"+a.name, ".data.size") + a.has("configmap/"+leaving, ".data.size"); got != fmt.Sprintf("%d%d", before, 1) {
		a.t.Errorf("the cluster has %s", got)
	}
	a.way.Mend(a.t)
	a.awaitGone(revisions, leaving+"-1", "its deletion goes on")
	a.awaitExtension(a.name, "the rollout goes on", done)
	if got := a.has("configmap/"+leaving, ".metadata.name"); got != "" {
		a.t.Errorf("%s is still there", got)
	}
	if got := a.has("configmap/"+a.name, ".data.size") + " " + a.has("configmap/"+a.name, ".metadata.uid"); got != fmt.Sprint(before+1)+" "+uid {
		a.t.Errorf("the object is %s, and was %s", got, uid)
	}
	a.awaitGone(revisions, a.name+"-2", "no more are kept")
	a.revisionsAre(before+1, 3, before+1)
	bob.MustKubectl("delete", "clusterextension", a.name)
	a.awaitGone(revisions, next, "it goes with the extension")
	a.await(corev1.SchemeGroupVersion.WithResource("configmaps"), a.name, "nothing was in the host", absent)
}

// revisionsAre checks the revisions' numbers. Those below active must be archived.
func (a abroad) revisionsAre(active, from, to int) {
	a.t.Helper()
	var want, got []string
	for n := from; n <= to; n++ {
		state := olmv1alpha1.LifecycleStateActive
		if n < active {
			state = olmv1alpha1.LifecycleStateArchived
		}
		want = append(want, fmt.Sprintf("%s-%d %s", a.name, n, state))
	}
	a.eventually(fmt.Sprintf("the revisions are %s", want), func() bool {
		list, err := a.own.OlmV1alpha1().ClusterExtensionRevisions().List(a.t.Context(), metav1.ListOptions{LabelSelector: olmv1alpha1.ChainLabel + "=" + a.name})
		if err != nil {
			return false
		}
		got = nil
		for _, r := range list.Items {
			got = append(got, fmt.Sprintf("%s %s", r.Name, r.Spec.LifecycleState))
		}
		return slices.Equal(got, want)
	})
}
