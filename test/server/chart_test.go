//go:build integration

package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/hack/release/chart"
	"github.com/penstock-project/penstock/test/framework/cluster"
)

const chartFolder = "../../artifacts/chart"

// values are the values of a chart installation.
type values map[string]any

// set returns a copy with one more value. path is separated by dots.
func (v values) set(path string, value any) values {
	made := maps.Clone(v)
	if made == nil {
		made = values{}
	}
	first, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		made[first] = value
		return made
	}
	inner, _ := made[first].(map[string]any)
	made[first] = map[string]any(values(inner).set(rest, value))
	return made
}

// charts tests the chart on a real kube-apiserver, rendered by Helm's library.
func charts(t *testing.T, c *cluster.Cluster) {
	t.Run("AsKustomize", func(t *testing.T) { asKustomize(t, c.In(t)) })
	t.Run("AsConsole", func(t *testing.T) { asConsole(t, c.In(t)) })
	t.Run("Combinations", func(t *testing.T) { combinations(t, c.In(t)) })
	t.Run("Run", func(t *testing.T) { chartsRun(t, c.In(t)) })
	t.Run("Former", func(t *testing.T) { formerCharts(t, c.In(t)) })
}

func rendered(t *testing.T, version string, v values) string {
	t.Helper()
	return render(t, loadChart(t, version), v)
}

func loadChart(t *testing.T, version string) *chart.Chart {
	t.Helper()
	found, err := chart.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	found.SetVersion(version)
	return found
}

func render(t *testing.T, found *chart.Chart, v values) string {
	t.Helper()
	manifests, err := found.Render(t.Context(), "penstock-system", "v1.36.0", v.set("image.repository", "registry.example.com/penstock"))
	if err != nil {
		t.Fatal(err)
	}
	return manifests
}

// asKustomize: the chart renders the same objects as artifacts/deploy, so a switch between them
// changes nothing.
func asKustomize(t *testing.T, c *cluster.Cluster) {
	external := values{}.set("store.mode", "external").set("replicas", 3)
	for variant, v := range map[string]values{
		"embedded": {}, "external": external,
		"embedded-cert-manager": values{}.set("tls.mode", "cert-manager"), "external-cert-manager": external.set("tls.mode", "cert-manager"),
	} {
		t.Run(variant, func(t *testing.T) {
			want := comparable(t, c.In(t).MustKubectl("kustomize", deployFolder+variant))
			// Helm creates the namespace itself, and the user who installs sets its labels.
			delete(want, "Namespace/penstock-system")
			if diff := cmp.Diff(want, comparable(t, rendered(t, "v1.0.0", v))); diff != "" {
				t.Errorf("the chart differs from artifacts/deploy/%s (-kustomize +chart):\n%s", variant, diff)
			}
		})
	}
}

// asConsole: the chart's switch for the console adds exactly the objects of
// artifacts/deploy/console.
func asConsole(t *testing.T, c *cluster.Cluster) {
	without, with := comparable(t, rendered(t, "v1.0.0", values{})), comparable(t, rendered(t, "v1.0.0", values{}.set("console.enabled", true)))
	for name := range without {
		delete(with, name)
	}
	if diff := cmp.Diff(comparable(t, c.MustKubectl("kustomize", deployFolder+"console")), with); diff != "" {
		t.Errorf("the chart differs from artifacts/deploy/console (-kustomize +chart):\n%s", diff)
	}
	// Without an issuer there is no OpenID Connect flag. With an issuer there are all of them.
	signIn := values{}.set("console.enabled", true).set("console.oidc.clientID", "penstock").set("console.oidc.extraScopes", []any{"groups", "offline_access"})
	for issuer, want := range map[string][]string{"": nil, "https://id.example.com": {"--oidc-issuer-url=https://id.example.com", "--oidc-client-id=penstock", "--oidc-extra-scope=groups", "--oidc-extra-scope=offline_access"}} {
		said := regexp.MustCompile(`--oidc-[^"\n]+`).FindAllString(rendered(t, "v1.0.0", signIn.set("console.oidc.issuerURL", issuer)), -1)
		if !slices.Equal(said, want) {
			t.Errorf("issuer %q: the arguments of the console are %q, want %q", issuer, said, want)
		}
	}
}

// comparable returns the objects of a stream by kind and name, in a normalized form.
func comparable(t *testing.T, stream string) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for kind, documents := range split(t, stream) {
		if kind == "" { // a comment
			continue
		}
		for _, document := range documents {
			var object unstructured.Unstructured
			if err := yaml.Unmarshal(document, &object.Object); err != nil {
				t.Fatal(err)
			}
			if kind == "Deployment" {
				object.Object = comparableDeployment(t, document)
			}
			unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "helm.sh/resource-policy")
			if len(object.GetAnnotations()) == 0 {
				object.SetAnnotations(nil)
			}
			found[kind+"/"+object.GetName()] = object.Object
		}
	}
	return found
}

func comparableDeployment(t *testing.T, document []byte) map[string]any {
	t.Helper()
	var deployment appsv1.Deployment
	decode(t, document, &deployment)
	pod := &deployment.Spec.Template.Spec
	container := &pod.Containers[0]
	container.Image, container.ImagePullPolicy = "penstock", ""
	slices.SortFunc(pod.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(container.VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.Name, b.Name) })
	raw, err := json.Marshal(deployment)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// combinations: with every combination of the chart's switches, kube-apiserver accepts all objects
// strictly and without a warning. An object that several combinations share is tried once.
func combinations(t *testing.T, c *cluster.Cluster) {
	all := []values{{}}
	choose := func(path string, choices ...any) {
		var more []values
		for _, v := range all {
			for _, choice := range choices {
				more = append(more, v.set(path, choice))
			}
		}
		all = more
	}
	choose("store.mode", "embedded", "external")
	choose("replicas", 1, 3)
	choose("tls.mode", "self", "cert-manager", "secret")
	choose("networkPolicy.enabled", true, false)
	choose("podDisruptionBudget.enabled", true, false)
	choose("monitoring.enabled", true, false)
	choose("console.enabled", true, false)
	all = slices.DeleteFunc(all, func(v values) bool {
		return v["replicas"] == 3 && v["store"].(map[string]any)["mode"] == "embedded"
	})

	all = append(all, values{}.set("runAsUser", nil), values{}.set("verificationPolicy.configMapName", "signers"))

	seen, found := map[string]bool{}, loadChart(t, "v1.0.0")
	var stream strings.Builder
	for _, v := range all {
		for kind, documents := range split(t, render(t, found, v)) {
			for _, document := range documents {
				if seen[string(document)] {
					continue
				}
				seen[string(document)] = true
				fmt.Fprintf(&stream, "---\n%s\n", document)
				if kind == "Deployment" {
					fmt.Fprintf(&stream, "---\n%s\n", podOf(t, document, len(seen)))
				}
			}
		}
	}
	out := c.KubectlInput(stream.String(), "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-")
	if out.ExitCode != 0 || out.Stderr != "" {
		t.Error(out)
	}
	t.Logf("%d combinations, %d different objects", len(all), len(seen))
}

// podOf returns a Pod as the Deployment would create it, because Pod Security checks Pods.
func podOf(t *testing.T, document []byte, number int) string {
	t.Helper()
	var deployment appsv1.Deployment
	decode(t, document, &deployment)
	raw, err := json.Marshal(corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("penstock-", number), Namespace: deployment.Namespace, Labels: deployment.Spec.Template.Labels},
		Spec:       deployment.Spec.Template.Spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
