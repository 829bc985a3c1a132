package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
)

// TestMain lets the test binary render charts in its own process.
func TestMain(m *testing.M) {
	if template.IsProcess(os.Args) {
		os.Exit(template.RunProcess(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// chart returns a chart with templates, given as pairs of name and text.
func chart(files ...string) fstest.MapFS {
	out := fstest.MapFS{"Chart.yaml": {Data: []byte("apiVersion: v2\nname: lamp\nversion: 1.2.3\n")}}
	for i := 0; i < len(files); i += 2 {
		out[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return out
}

func render(t *testing.T, files fstest.MapFS, options Options) (source.Rendered, error) {
	t.Helper()
	options.Release, options.Namespace = "r", "light"
	return Renderer{options}.Render(t.Context(), files)
}

func configMap(data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: " + data + "\n"
}

func job(name, hooks, more string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: " + name + "\n  annotations: {helm.sh/hook: '" + hooks + "'" + more + "}\n" +
		"spec:\n  ttlSecondsAfterFinished: 5\n  template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}\n"
}

func lines(rendered source.Rendered) []string {
	var out []string
	for _, phase := range rendered.Phases {
		line := phase.Name + ":"
		for _, object := range phase.Objects {
			line += " " + object.ID.String()
		}
		out = append(out, line)
	}
	return out
}

func TestRender(t *testing.T) {
	files := chart(
		"values.yaml", "colour: red\n",
		"crds/lamps.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: lamps.example.com}\nspec:\n  group: example.com\n  scope: Cluster\n  names: {kind: Lamp, plural: lamps}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]\n",
		"templates/a.yaml", configMap("{{ .Values.colour }}-{{ .Release.Name }}-{{ keys (dict \"b\" 1 \"a\" 2 \"c\" 3) | join \"\" }}"),
		"templates/lamp.yaml", "apiVersion: example.com/v1\nkind: Lamp\nmetadata: {name: l, annotations: {helm.sh/resource-policy: keep}}\n---\napiVersion: other.example.com/v1\nkind: Bulb\nmetadata: {name: b}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n"+
			"---\napiVersion: storagemigration.k8s.io/v1beta1\nkind: StorageVersionMigration\nmetadata: {name: m}\n---\napiVersion: policy.networking.k8s.io/v1alpha1\nkind: AdminNetworkPolicy\nmetadata: {name: guard}\n",
		"templates/before.yaml", job("migrate", "pre-install,pre-upgrade", "")+"---\n"+strings.Replace(configMap("x"), "{name: c}", "{name: early, annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: '-5'}}", 1),
		"templates/after.yaml", job("notify", "post-install,test", ", helm.sh/hook-weight: '2'")+"---\n"+job("t", "test", ""),
		"templates/NOTES.txt", "hello",
		"templates/_helpers.tpl", "{{ define \"x\" }}{{ end }}",
		".helmignore", "ignored.yaml\n", "templates/ignored.yaml", "{{ fail \"not ignored\" }}",
	)
	rendered, err := render(t, files, Options{Values: map[string]any{"colour": "blue"}})
	if err != nil {
		t.Fatal(err)
	}
	got := lines(rendered)
	for i, line := range got {
		for _, name := range []string{"migrate-", "notify-"} {
			if at := strings.Index(line, name); at >= 0 && len(line) >= at+len(name)+10 {
				got[i] = line[:at+len(name)] + "DIGEST" + line[at+len(name)+10:]
			}
		}
	}
	want := []string{
		"chart-crds: CustomResourceDefinition.apiextensions.k8s.io lamps.example.com",
		"before-1: ConfigMap light/early",
		"before-2: Job.batch light/migrate-DIGEST",
		"policies: AdminNetworkPolicy.policy.networking.k8s.io light/guard",
		"configuration: ConfigMap light/c",
		"roles: ClusterRole.rbac.authorization.k8s.io r",
		"infrastructure: Lamp.example.com l Bulb.other.example.com light/b StorageVersionMigration.storagemigration.k8s.io m",
		"after-1: Job.batch light/notify-DIGEST",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if rendered.Package != "lamp" || rendered.Version != "1.2.3" {
		t.Errorf("package %q, version %q", rendered.Package, rendered.Version)
	}
	var warnings []string
	for _, one := range rendered.Warnings {
		warnings = append(warnings, one.String())
	}
	wantWarnings := []string{
		"templates/after.yaml:1: Job notify: spec.ttlSecondsAfterFinished is left out: a hook that is gone would be run again",
		"templates/before.yaml:1: Job migrate: spec.ttlSecondsAfterFinished is left out: a hook that is gone would be run again",
		"test hooks are left out: 1",
		"templates/lamp.yaml:5: Bulb b: the chart does not say whether Bulb.other.example.com is in a namespace; it is assumed to be in the namespace of the release: set metadata.namespace if it is not",
		"templates/lamp.yaml:17: AdminNetworkPolicy guard: the chart does not say whether AdminNetworkPolicy.policy.networking.k8s.io is in a namespace; it is assumed to be in the namespace of the release: set metadata.namespace if it is not",
	}
	if diff := cmp.Diff(wantWarnings, warnings); diff != "" {
		t.Errorf("warnings: -want, +got:\n%s", diff)
	}
	again, err := render(t, files, Options{Values: map[string]any{"colour": "blue"}})
	if err != nil || !cmp.Equal(rendered, again) {
		t.Errorf("rendered twice, it is not the same: %v", err)
	}
	other, err := render(t, files, Options{Values: map[string]any{"colour": "green"}})
	if err != nil {
		t.Fatal(err)
	}
	if lines(other)[2] == lines(rendered)[2] || lines(other)[6] != lines(rendered)[6] {
		t.Errorf("a hook of upgrades is run when something changed, one of installations when it changed itself:\n%s\n%s", lines(rendered), lines(other))
	}

}

func TestRefused(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  fstest.MapFS
		want   []string
	}{
		"Rand":       {"it is another one each time", chart("templates/a.yaml", configMap("\"{{ randAlphaNum 5 }}\"")), []string{"templates/a.yaml:5: ", "randAlphaNum", "makes a different value each time"}},
		"Gen":        {"it is another one each time", chart("templates/a.yaml", "{{ $ca := genCA \"x\" 1 }}\n"), []string{"templates/a.yaml:1: ", "genCA"}},
		"UUID":       {"it is another one each time", chart("templates/a.yaml", configMap("{{ uuidv4 }}")), []string{"templates/a.yaml:5: ", "uuidv4"}},
		"Shuffle":    {"it is another one each time", chart("templates/a.yaml", configMap("{{ shuffle \"abc\" }}")), []string{"shuffle"}},
		"Bcrypt":     {"it is another one each time", chart("templates/a.yaml", configMap("{{ htpasswd \"a\" \"b\" }}")), []string{"htpasswd"}},
		"Now":        {"it is another one each time", chart("templates/a.yaml", configMap("{{ now | date \"2006\" }}")), []string{"templates/a.yaml:5: ", "<now>", "is a different value each time"}},
		"Date":       {"what is no time is now", chart("templates/a.yaml", configMap("{{ date \"2006\" \"x\" }}")), []string{"templates/a.yaml:5: ", "would use the current one"}},
		"Lookup":     {"there is no cluster", chart("templates/a.yaml", configMap("{{ (lookup \"v1\" \"Secret\" \"n\" \"s\").x }}")), []string{"templates/a.yaml:5: ", "asks a cluster for v1 Secret n/s"}},
		"Included":   {"the place is where it is called", chart("templates/_x.tpl", "\n{{ define \"x\" }}{{ randInt 1 5 }}{{ end }}", "templates/a.yaml", configMap("{{ include \"x\" . }}")), []string{"templates/_x.tpl:2: ", "randInt"}},
		"Subchart":   {"the place is in it", chart("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/templates/a.yaml", configMap("{{ now }}")), []string{"charts/sub/templates/a.yaml:5: ", "now"}},
		"Syntax":     {"the line is named", chart("templates/a.yaml", "a: {{ .Values.x }\n"), []string{"templates/a.yaml:1: "}},
		"Fail":       {"what the chart says is told", chart("templates/a.yaml", "\n{{ fail \"no lamp\" }}"), []string{"templates/a.yaml:2: ", "no lamp"}},
		"YAML":       {"it is what the template made", chart("templates/a.yaml", "a: [\n"), []string{"templates/a.yaml:1: not valid YAML"}},
		"Delete":     {"nothing is run then", chart("templates/a.yaml", job("bye", "pre-delete", "")), []string{"templates/a.yaml:1: Job bye: annotation helm.sh/hook: a pre-delete hook cannot be run"}},
		"Rollback":   {"nothing is run then", chart("templates/a.yaml", job("back", "post-install,post-rollback", "")), []string{"a post-rollback hook cannot be run"}},
		"Unknown":    {"Helm would ignore it", chart("templates/a.yaml", job("x", "pre-instal", "")), []string{`"pre-instal" is not a hook of Helm`}},
		"Pod":        {"nobody waits for it", chart("templates/a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {helm.sh/hook: pre-install}}\n"), []string{"make it a Job"}},
		"Weight":     {"it is a number", chart("templates/a.yaml", job("x", "pre-install", ", helm.sh/hook-weight: a")), []string{`is "a", want a number`}},
		"Twice":      {"which counts would be a question of order", chart("templates/a.yaml", configMap("a"), "templates/b.yaml", configMap("b")), []string{"templates/b.yaml:1: ConfigMap c is already at templates/a.yaml:1"}},
		"Nothing":    {"that is no extension", chart("templates/a.yaml", "{{ if false }}a{{ end }}"), []string{"no manifests"}},
		"NoChart":    {"it says what was looked for", fstest.MapFS{"a.yaml": {}}, []string{"Chart.yaml is missing"}},
		"Library":    {"it has nothing to install", chart("Chart.yaml", "apiVersion: v2\nname: l\nversion: 1.0.0\ntype: library\n"), []string{"is a library"}},
		"Dependency": {"it has to be there", chart("Chart.yaml", "apiVersion: v2\nname: l\nversion: 1.0.0\ndependencies: [{name: base, version: 1.x, repository: https://example.com}]\n", "templates/a.yaml", configMap("a")), []string{"depends on base 1.x", "helm dependency build"}},
		"Schema":     {"the path is named", chart("values.schema.json", `{"properties":{"a":{"type":"integer"}}}`, "values.yaml", "a: b\n", "templates/a.yaml", configMap("a")), []string{"values.schema.json", "'/a'"}},
		"Network":    {"a schema does not make us ask somebody", chart("values.schema.json", `{"$ref":"https://example.com/s.json"}`, "templates/a.yaml", configMap("a")), []string{"https://example.com/s.json"}},
		"Apply":      {"server-side apply cannot take it", chart("templates/a.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: none}\n"), []string{"templates/a.yaml:4: Service light/s: spec.ports"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered, err := render(t, tc.files, Options{})
			if err == nil {
				t.Fatalf("%s: got no error, but %s", tc.reason, lines(rendered))
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q is missing in: %v", tc.reason, want, err)
				}
			}
		})
	}
}

// TestBothHooks: a hook that runs before and after the other objects is applied before them and
// kept. A Job runs twice, under two names that change with the manifests.
func TestBothHooks(t *testing.T) {
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, annotations: {helm.sh/hook: 'pre-install,pre-upgrade,post-install,post-upgrade'}}\n"
	files := func(data, hooks string) fstest.MapFS {
		return chart("templates/a.yaml", account, "templates/c.yaml", configMap(data), "templates/job.yaml", job("both", hooks, ", helm.sh/hook-weight: '1'"))
	}
	names := func(data, hooks string) (before, after string) {
		t.Helper()
		rendered, err := render(t, files(data, hooks), Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := lines(rendered)
		if len(got) != 4 || got[0] != "before-1: ServiceAccount light/a" || got[2] != "configuration: ConfigMap light/c" {
			t.Fatalf("phases: %q", got)
		}
		before, isBefore := strings.CutPrefix(got[1], "before-2: Job.batch light/both-")
		after, isAfter := strings.CutPrefix(got[3], "after-1: Job.batch light/both-")
		if !isBefore || !isAfter || before == after || len(rendered.Warnings) != 1 {
			t.Fatalf("phases: %q, warnings: %v", got, rendered.Warnings)
		}
		return before, after
	}
	const always, once = "pre-install,pre-upgrade,post-install,post-upgrade", "pre-install,post-install"
	before, after := names("x", always)
	if b, a := names("other", always); b == before || a == after {
		t.Error("a hook of upgrades does not run again when a manifest changes")
	}
	before, after = names("x", once)
	if b, a := names("other", once); b != before || a != after {
		t.Error("a hook of installations runs again when another manifest changes")
	}
}

// TestCapabilitiesOfTheField renders charts from user reports, with the cluster of the report.
func TestCapabilitiesOfTheField(t *testing.T) {
	const cases = "../../../../shared/data/field-cases/apply/07-capabilities"
	if _, err := os.Stat(cases); err != nil {
		t.Skip("no field cases beside the repository")
	}
	cluster := &template.Capabilities{Version: "v1.36.3", Major: "1", Minor: "36", APIVersions: []string{"policy/v1", "policy/v1/PodDisruptionBudget",
		"networking.k8s.io/v1", "networking.k8s.io/v1/Ingress", "autoscaling/v2", "autoscaling/v2/HorizontalPodAutoscaler"}}
	options := Options{Release: "r", Namespace: "light", Cluster: cluster}
	rendered, err := Renderer{options}.Render(t.Context(), os.DirFS(filepath.Join(cases, "cap")))
	if err != nil {
		t.Fatal(err)
	}
	got := string(rendered.Phases[0].Objects[0].JSON)
	for _, want := range []string{`"pdbkind":"true"`, `"ing":"true"`, `"hpa":"true"`, `"pdbbeta":"false"`, `"extbeta":"false"`, `"cronbeta":"false"`, `"kube":"v1.36.3"`} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in %s", want, got)
		}
	}
	if rendered, err = (Renderer{options}).Render(t.Context(), os.DirFS(filepath.Join(cases, "a"))); err != nil {
		t.Fatal(err)
	}
	for _, phase := range rendered.Phases {
		for _, object := range phase.Objects {
			if object.Kind == "PodDisruptionBudget" && object.Version != "v1" {
				t.Errorf("%s is in %s", object.ID, object.APIVersion())
			}
		}
	}
}

// TestCapabilities: templates see the capabilities of the given cluster. A flag replaces its
// version, and a flag adds kinds.
func TestCapabilities(t *testing.T) {
	text := configMap("'{{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.APIVersions.Has \"policy/v1/PodDisruptionBudget\" }} {{ .Capabilities.APIVersions.Has \"policy/v1beta1\" }}'")
	cluster := &template.Capabilities{Version: "v1.36.3-gke.1", Major: "1", Minor: "36+", APIVersions: []string{"policy/v1", "policy/v1/PodDisruptionBudget"}, Unknown: []string{"metrics.k8s.io/v1beta1"}}
	for name, tc := range map[string]struct {
		reason  string
		options Options
		want    string
	}{
		"Cluster":     {"the cluster says what it is", Options{Cluster: cluster}, "v1.36.3-gke.1 36+ true false"},
		"KubeVersion": {"the flag replaces the version only", Options{Cluster: cluster, KubeVersion: "1.30.1"}, "v1.30.1 30 true false"},
		"APIVersions": {"the flag adds", Options{Cluster: cluster, APIVersions: []string{"policy/v1beta1"}}, "v1.36.3-gke.1 36+ true true"},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, chart("templates/a.yaml", text), tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(rendered.Phases[0].Objects[0].JSON); !strings.Contains(got, `"a":"`+tc.want+`"`) {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
	t.Run("Unknown", func(t *testing.T) {
		_, err := render(t, chart("templates/a.yaml", configMap("{{ .Capabilities.APIVersions.Has \"metrics.k8s.io/v1beta1/NodeMetrics\" }}")), Options{Cluster: cluster})
		var unknown *UnknownError
		if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "templates/a.yaml:5: ") || !strings.Contains(err.Error(), "metrics.k8s.io/v1beta1, because the API server of that group does not answer") {
			t.Errorf("got %v, want that the cluster cannot say", err)
		}
	})
	t.Run("Scope", func(t *testing.T) {
		served := &template.Capabilities{Version: "v1.36.3", APIVersions: []string{"example.com/v1", "example.com/v1/Bulb", "example.com/v1/Lamp"}, ClusterScoped: []string{"Bulb.example.com"}}
		rendered, err := render(t, chart("templates/a.yaml", "apiVersion: example.com/v1\nkind: Bulb\nmetadata: {name: b, namespace: x}\n---\napiVersion: example.com/v1\nkind: Lamp\nmetadata: {name: l}\n"), Options{Cluster: served})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"infrastructure: Bulb.example.com b Lamp.example.com light/l"}, lines(rendered)); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if len(rendered.Warnings) != 1 || rendered.Warnings[0].String() != "templates/a.yaml:3: Bulb b: metadata.namespace is left out, because Bulb.example.com is cluster-scoped" {
			t.Errorf("warnings: %v", rendered.Warnings)
		}
	})
	t.Run("Suffix", func(t *testing.T) {
		for _, wanted := range []string{">=1.25.0", ">=1.25.0-0", "~1.36.1"} {
			if _, err := render(t, chart("Chart.yaml", "apiVersion: v2\nname: lamp\nversion: 1.2.3\nkubeVersion: '"+wanted+"'\n", "templates/a.yaml", configMap("a")), Options{Cluster: cluster}); err != nil {
				t.Errorf("%s: %v; the suffix of a distribution does not count", wanted, err)
			}
		}
	})
	t.Run("TooNew", func(t *testing.T) {
		_, err := render(t, chart("Chart.yaml", "apiVersion: v2\nname: lamp\nversion: 1.2.3\nkubeVersion: '>=1.99.0-0'\n", "templates/a.yaml", configMap("a")), Options{Cluster: cluster})
		if err == nil || !strings.Contains(err.Error(), "needs Kubernetes >=1.99.0-0, and is rendered for v1.36.3-gke.1") {
			t.Errorf("got %v, want that the chart is for another version", err)
		}
		var version *VersionError
		if !errors.As(err, &version) {
			t.Errorf("got %T, which does not say that another version of the cluster helps", err)
		}
	})
}

// TestLimits: the process ends for any template.
func TestLimits(t *testing.T) {
	const forever = "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"
	cases := map[string]struct {
		template string
		limits   template.Limits
		want     string
	}{
		"Time":   {forever, template.Limits{Time: 200 * time.Millisecond}, "not rendered within 200ms"},
		"Memory": {"{{ $a := repeat 3000000000 \"x\" }}", template.Limits{Memory: 256 << 20}, "more than 256 MiB of memory"},
		"Output": {"# {{ repeat 3000000 \"x\" }}", template.Limits{Output: 1 << 20}, "more than 1 MiB"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := render(t, chart("templates/a.yaml", tc.template), Options{Limits: tc.limits})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestGenerated(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  p: {{ randAlphaNum 1 | b64enc }}\n  fixed: {{ b64enc \"f\" }}\n"
	declared := GeneratedSecret{Namespace: "light", Name: "s"}
	first, err := render(t, chart("templates/a.yaml", secret), Options{Generated: []GeneratedSecret{declared}})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(first.Phases[0].Objects[0].JSON, &declared.Previous); err != nil {
		t.Fatal(err)
	}
	later := strings.Replace(secret, "b64enc \"f\"", "b64enc \"g\"", 1)
	second, err := render(t, chart("templates/a.yaml", later), Options{Generated: []GeneratedSecret{declared}})
	if err != nil {
		t.Fatal(err)
	}
	before := declared.Previous["data"].(map[string]any)
	var decoded map[string]any
	if err := json.Unmarshal(second.Phases[0].Objects[0].JSON, &decoded); err != nil {
		t.Fatal(err)
	}
	after := decoded["data"].(map[string]any)
	if after["p"] != before["p"] || after["fixed"] != "Zw==" {
		t.Errorf("before %v, after %v: want the generated value as before, and the other one as the chart has it", before, after)
	}

	t.Run("Lookup", func(t *testing.T) {
		const looked = "{{ $old := lookup \"v1\" \"Secret\" .Release.Namespace \"s\" }}\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  p: {{ if $old }}{{ $old.data.p }}{{ else }}{{ randAlphaNum 9 | b64enc }}{{ end }}\n"
		rendered, err := render(t, chart("templates/a.yaml", looked), Options{Generated: []GeneratedSecret{declared}})
		if err != nil || !strings.Contains(string(rendered.Phases[0].Objects[0].JSON), fmt.Sprint(before["p"])) {
			t.Errorf("got %s and %v, want the value as before", lines(rendered), err)
		}
	})
	t.Run("Elsewhere", func(t *testing.T) {
		_, err := render(t, chart("templates/a.yaml", secret, "templates/b.yaml", configMap("{{ randInt 1 3 }}x")), Options{Generated: []GeneratedSecret{declared}})
		if err == nil || !strings.Contains(err.Error(), "templates/b.yaml:1: ConfigMap c is different each time") {
			t.Errorf("got %v, want the object that is no such Secret", err)
		}
	})
	t.Run("Shape", func(t *testing.T) {
		_, err := render(t, chart("templates/a.yaml", strings.Replace(secret, "{{ randAlphaNum 1 | b64enc }}", "{a: {{ randAlphaNum 9 }}}", 1)), Options{Generated: []GeneratedSecret{declared}})
		if err == nil || !strings.Contains(err.Error(), "data.p") {
			t.Errorf("got %v, want the field that is no text", err)
		}
	})
	t.Run("Name", func(t *testing.T) {
		_, err := render(t, chart("templates/a.yaml", strings.Replace(secret, "{name: s}", "{name: s, labels: {a: \"{{ randAlpha 3 }}\"}}", 1)), Options{Generated: []GeneratedSecret{declared}})
		if err == nil || !strings.Contains(err.Error(), "outside of data and stringData") {
			t.Errorf("got %v, want that only values are generated", err)
		}
	})
}

func TestArchive(t *testing.T) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for name, file := range chart("templates/a.yaml", configMap("a")) {
		if err := archive.WriteHeader(&tar.Header{Name: "lamp/" + name, Mode: 0o644, Size: int64(len(file.Data)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(file.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	renderer := Renderer{Options{Release: "r", Namespace: "light"}}
	rendered, err := renderer.RenderArchive(t.Context(), packed.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"configuration: ConfigMap light/c"}, lines(rendered)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, err := renderer.RenderArchive(t.Context(), []byte("no archive")); err == nil || !strings.Contains(err.Error(), "reading the archive") {
		t.Errorf("got %v, want that it is no archive", err)
	}
}
