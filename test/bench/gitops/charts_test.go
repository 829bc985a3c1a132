package gitops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/chart"
	"github.com/penstock-project/penstock/pkg/source/directory"
	"github.com/penstock-project/penstock/test/framework/penstock"
)

// publicCharts has public charts outside of the repository, without their dependencies.
const publicCharts = "../../../../shared/data/charts"

// kubeVersion and apiVersions are the capabilities of both renderers.
const kubeVersion = "v1.36.3"

func apiVersions() []string {
	return []string{
		"policy/v1/PodDisruptionBudget", "networking.k8s.io/v1/Ingress", "autoscaling/v2/HorizontalPodAutoscaler", "batch/v1/CronJob",
		"monitoring.coreos.com/v1", "monitoring.coreos.com/v1/ServiceMonitor", "monitoring.coreos.com/v1/PrometheusRule", "gateway.networking.k8s.io/v1",
		"gateway.networking.k8s.io/v1/HTTPRoute", "gateway.networking.k8s.io/v1/Gateway", "autoscaling.k8s.io/v1", "cert-manager.io/v1",
	}
}

// TestChartsAsHelm renders public charts, with default values and the values in their folder ci,
// and constructed charts. The results equal those of Helm 4's own action with the same
// capabilities, except the differences in docs/reference/charts.md, which compared removes.
func TestChartsAsHelm(t *testing.T) {
	if os.Getenv("PENSTOCK_PROGRAM") == "" {
		t.Skip("it needs the program: make test")
	}
	program := penstock.Build(t)
	folders := map[string]string{"made": made(t)}
	if found, err := os.ReadDir(publicCharts); err == nil {
		for _, one := range found {
			if one.IsDir() {
				folders[one.Name()] = whole(t, filepath.Join(publicCharts, one.Name()))
			}
		}
	} else {
		t.Log("no public charts beside the repository")
	}
	for name, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "ci", "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, values := range append([]string{""}, files...) {
			t.Run(path.Join(name, strings.TrimSuffix(filepath.Base(values), ".yaml")), func(t *testing.T) {
				t.Parallel()
				compareCharts(t, program, folder, values)
			})
		}
	}
}

func compareCharts(t *testing.T, program *penstock.Program, folder, file string) {
	read := func() map[string]any {
		if file == "" {
			return map[string]any{}
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		values, err := loader.LoadValues(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	rendered, err := chart.Renderer{Options: chart.Options{
		Release: "r", Namespace: "light", Values: read(), KubeVersion: kubeVersion, APIVersions: apiVersions(), Program: program.Path(),
	}}.Render(t.Context(), os.DirFS(folder))
	for _, refused := range []string{"a different value each time", "asks a cluster for"} {
		if file != "" && err != nil && strings.Contains(err.Error(), refused) {
			t.Skipf("refused, as documented: %v", err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	want, got := ofHelm(t, folder, read()), ofPenstock(rendered)
	if !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))) {
		t.Errorf("objects: -Helm, +Penstock:\n%s", cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))))
	}
	for id, object := range got {
		if diff := cmp.Diff(compared(want[id]), compared(object)); diff != "" {
			t.Errorf("%s: -Helm, +Penstock:\n%s", id, diff)
		}
	}
}

// ofHelm returns the objects that helm template renders, without tests.
func ofHelm(t *testing.T, folder string, values map[string]any) map[string]map[string]any {
	t.Helper()
	loaded, err := loader.LoadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	version, err := common.ParseKubeVersion(kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	do := action.NewInstall(action.NewConfiguration())
	do.DryRunStrategy, do.ReleaseName, do.Namespace, do.IncludeCRDs = action.DryRunClient, "r", "light", true
	do.KubeVersion, do.APIVersions = version, apiVersions()
	made, err := do.RunWithContext(t.Context(), loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	of := made.(*release.Release)
	texts := []directory.Text{{Name: "manifest.yaml", Data: []byte(of.Manifest)}}
	for i, hook := range of.Hooks {
		if !slices.ContainsFunc(hook.Events, func(event release.HookEvent) bool { return event != release.HookTest }) {
			continue
		}
		texts = append(texts, directory.Text{Name: fmt.Sprintf("hook%d.yaml", i), Data: []byte(hook.Manifest)})
	}
	located, err := directory.ReadTexts(t.Context(), texts, directory.Options{Unchecked: true, AsHelm: true})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for _, one := range located {
		add(t, out, id(one.Object, one.Name), one.JSON)
	}
	return out
}

// id returns the identity of an object. Helm omits the namespace of the release, which the client
// adds.
func id(object manifest.Object, name string) string {
	namespace := object.Namespace
	if namespace == "light" {
		namespace = ""
	}
	return object.Kind + " " + namespace + "/" + name
}

// hookJob matches the name of a Job to which Penstock has appended a digest.
var hookJob = regexp.MustCompile(`^(.*)-[0-9a-f]{10}$`)

func ofPenstock(rendered source.Rendered) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, phase := range rendered.Phases {
		for _, object := range phase.Objects {
			name := object.Name
			if isHook := strings.HasPrefix(phase.Name, "before-") || strings.HasPrefix(phase.Name, "after-"); isHook && object.Kind == "Job" {
				if parts := hookJob.FindStringSubmatch(name); parts != nil {
					name = parts[1]
				}
			}
			var content map[string]any
			if err := json.Unmarshal(object.JSON, &content); err != nil {
				panic(err) // impossible for canonical JSON
			}
			out[id(object, name)] = content
		}
	}
	return out
}

func add(t *testing.T, to map[string]map[string]any, id string, content []byte) {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(content, &object); err != nil {
		t.Fatal(err)
	}
	if to[id] != nil {
		t.Fatalf("Helm makes %s twice", id)
	}
	to[id] = object
}

// compared returns an object without Penstock's differences: the default namespace, the name and
// TTL of hook Jobs, and the mark of objects that are not deleted.
func compared(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	metadata := object["metadata"].(map[string]any)
	delete(metadata, "namespace")
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, "penstock.dev/teardown-policy")
	if spec, ok := object["spec"].(map[string]any); ok && object["kind"] == "Job" && annotations["helm.sh/hook"] != nil {
		delete(metadata, "name")
		delete(spec, "ttlSecondsAfterFinished")
	}
	return object
}

// whole returns a copy of a chart in which an empty chart replaces each missing, disabled
// dependency.
func whole(t *testing.T, from string) string {
	t.Helper()
	loaded, err := loader.LoadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	var missing []*helmchart.Dependency
	for _, wanted := range loaded.Metadata.Dependencies {
		if !slices.ContainsFunc(loaded.Dependencies(), func(there *helmchart.Chart) bool { return there.Name() == wanted.Name }) {
			missing = append(missing, wanted)
		}
	}
	if len(missing) == 0 {
		return from
	}
	to := filepath.Join(t.TempDir(), filepath.Base(from))
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range missing {
		write(t, filepath.Join(to, "charts", wanted.Name, "Chart.yaml"), fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %q\n", wanted.Name, wanted.Version))
		write(t, filepath.Join(to, "charts", wanted.Name, "templates", "_helpers.tpl"), fmt.Sprintf("{{ define %q }}%s{{ end }}\n", wanted.Name+".fullname", wanted.Name))
	}
	return to
}

// made returns a chart with features that are easily read differently: alias, condition, tags,
// defaults of a subchart removed by null, imported values, big numbers, hooks, and definitions.
func made(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "made")
	for name, text := range map[string]string{
		"Chart.yaml": `apiVersion: v2
name: made
version: 1.0.0
appVersion: "1.10"
kubeVersion: ">=1.25.0-0"
dependencies:
- {name: sub, version: 1.0.0, condition: sub.enabled, alias: kid}
- {name: sub, version: 1.0.0, condition: other.enabled}
- {name: tagged, version: 1.0.0, tags: [front], import-values: [{child: exported, parent: imported}, data]}
- {name: untagged, version: 1.0.0, tags: [back]}
`,
		"values.yaml": `sub: {enabled: true}
other: {enabled: false}
kid:
  limits: {cpu: null}
  big: 1000660000
tags: {front: true, back: false}
big: 123456789012
float: 1.50
octal: 0644
text: "0644"
list: [1, 20000000, 1e3]
gone: {a: 1, b: 2}
`,
		"ci/values.yaml":  "kid: {port: 5433, limits: null}\ngone: {a: null}\nbig: 9007199254740993\ntags: {back: true}\nextra: {number: 1000000, yes: y, nothing: null}\n",
		"crds/lamps.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: lamps.example.com}\nspec:\n  group: example.com\n  scope: Cluster\n  names: {kind: Lamp, plural: lamps, singular: lamp, listKind: LampList}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]\n",
		"files/a.txt":     "line one\nline two\n",
		"templates/all.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-all
  labels: {helm.sh/chart: "{{ .Chart.Name }}-{{ .Chart.Version }}", empty:}
data:
  values: {{ .Values | toYaml | quote }}
  json: {{ .Values | toJson | quote }}
  big: {{ .Values.big | quote }}
  int: {{ int64 .Values.big | quote }}
  octal: {{ .Values.octal | quote }}
  float: {{ .Values.float | quote }}
  files: {{ .Files.Get "files/a.txt" | quote }}
  globs: {{ range $name, $_ := .Files.Glob "files/*" }}{{ $name }}{{ end }}
  tpl: {{ tpl "{{ .Values.text }}" . | quote }}
  pdb: {{ .Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget" | quote }}
  old: {{ .Capabilities.APIVersions.Has "policy/v1beta2" | quote }}
  kube: {{ .Capabilities.KubeVersion | quote }}
  minor: {{ .Capabilities.KubeVersion.Minor | quote }}
  upgrade: "{{ .Release.IsUpgrade }} {{ .Release.Revision }} {{ .Release.Service }}"
  template: {{ .Template.Name | quote }}
  sum: {{ .Values | toJson | sha256sum }}
---
# only a comment
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: listed}, data: {a: b, a: c}}
---
apiVersion: example.com/v1
kind: Lamp
metadata: {name: l, annotations: {helm.sh/resource-policy: keep}}
`,
		"templates/hooks.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {name: h, annotations: {helm.sh/hook: "pre-install,pre-upgrade,post-install,post-upgrade"}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: h, annotations: {helm.sh/hook: "pre-install,post-install", helm.sh/hook-weight: "-5"}}
spec: {ttlSecondsAfterFinished: 5, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: t, annotations: {helm.sh/hook: test}}
spec: {containers: [{name: a, image: a}]}
`,
		"charts/sub/Chart.yaml":            "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
		"charts/sub/values.yaml":           "limits: {cpu: 1, memory: 2Gi}\nport: 5432\n",
		"charts/sub/templates/cm.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-{{ .Chart.Name }}\"}\ndata:\n  values: {{ .Values | toYaml | quote }}\n  big: {{ .Values.big | quote }}\n",
		"charts/tagged/Chart.yaml":         "apiVersion: v2\nname: tagged\nversion: 1.0.0\n",
		"charts/tagged/values.yaml":        "exported: {a: 1, b: [2]}\nexports: {data: {shared: from-child}}\n",
		"charts/tagged/templates/cm.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tagged}\ndata: {global: {{ .Values.global | toJson | quote }}}\n",
		"charts/untagged/Chart.yaml":       "apiVersion: v2\nname: untagged\nversion: 1.0.0\n",
		"charts/untagged/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: untagged}\n",
	} {
		write(t, filepath.Join(to, name), text)
	}
	return to
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
