package chart_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/hack/release/chart"
)

const folder = "../../../artifacts/chart"

type values = map[string]any

func load(t *testing.T, path string) *chart.Chart {
	t.Helper()
	found, err := chart.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// with returns the required values, and more.
func with(more values) values {
	made := values{"image": values{"repository": "registry.example.com/penstock"}}
	for key, value := range more {
		made[key] = value
	}
	return made
}

// TestRefused: values that cannot work are refused before anything reaches the cluster. The error
// names the value.
func TestRefused(t *testing.T) {
	cases := map[string]struct {
		reason    string
		namespace string
		version   string
		values    values
		want      []string
	}{
		"no image":         {"there is no public one", "", "", values{}, []string{"/image/repository"}},
		"two embedded":     {"two processes cannot have one store", "", "", with(values{"replicas": 2}), []string{"/replicas", "1"}},
		"no replicas":      {"the API would be down", "", "", with(values{"replicas": 0, "store": values{"mode": "external"}}), []string{"/replicas", "minimum"}},
		"unknown store":    {"a typing error", "", "", with(values{"store": values{"mode": "embeded"}}), []string{"/store/mode", "'embedded'", "'external'"}},
		"unknown tls":      {"a typing error", "", "", with(values{"tls": values{"mode": "none"}}), []string{"/tls/mode", "'cert-manager'"}},
		"unknown value":    {"a typing error must not be ignored", "", "", with(values{"replica": 3}), []string{"replica"}},
		"plain etcd":       {"its content has Secrets", "", "", with(values{"replicas": 3, "store": values{"mode": "external", "external": values{"servers": []any{"http://etcd:2379"}}}}), []string{"/store/external/servers/0"}},
		"root":             {"the Pod would be refused", "", "", with(values{"runAsUser": 0}), []string{"/runAsUser"}},
		"another place":    {"the code names its namespace", "tools", "", with(nil), []string{"namespace is tools", "penstock-system"}},
		"old cluster":      {"it is not tested there", "", "v1.33.0", with(nil), []string{"1.33", "1.34"}},
		"an argument":      {"it is no flag", "", "", with(values{"extraArgs": []any{"v=4"}}), []string{"/extraArgs/0"}},
		"half a digest":    {"it names no image", "", "", values{"image": values{"repository": "a", "digest": "sha256:12"}}, []string{"/image/digest"}},
		"a tag twice":      {"the tag has a value of its own", "", "", values{"image": values{"repository": "registry.example.com:5000/penstock:v1"}}, []string{"/image/repository"}},
		"odd pull secret":  {"no Secret has that name", "", "", with(values{"imagePullSecrets": []any{"My Secret"}}), []string{"/imagePullSecrets/0", "My Secret"}},
		"odd secret":       {"no Secret has that name", "", "", with(values{"tls": values{"mode": "secret", "secretName": "a}, b"}}), []string{"/tls/secretName"}},
		"odd class":        {"no class has that name", "", "", with(values{"store": values{"mode": "embedded", "embedded": values{"storageClassName": "Fast Disks"}}}), []string{"/store/embedded/storageClassName"}},
		"image with a tag": {"the tag has a value of its own", "", "", values{"image": values{"repository": "a@sha256:12"}}, []string{"/image/repository"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			namespace, version := tc.namespace, tc.version
			if namespace == "" {
				namespace = "penstock-system"
			}
			if version == "" {
				version = "v1.36.0"
			}
			_, err := load(t, folder).Render(t.Context(), namespace, version, tc.values)
			if err == nil {
				t.Fatalf("%s, and it was taken", tc.reason)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: the error does not say %q: %v", tc.reason, want, err)
				}
			}
		})
	}
}

// TestRender: the rendered objects follow the switches.
func TestRender(t *testing.T) {
	cases := map[string]struct {
		values values
		want   []string
		not    []string
	}{
		"default":  {with(nil), []string{`image: "registry.example.com/penstock:v`, "--data-dir=", "kind: NetworkPolicy", "kind: PodDisruptionBudget", "runAsUser: 65532"}, []string{"monitoring.coreos.com", "cert-manager.io", "--etcd-servers"}},
		"digest":   {values{"image": values{"repository": "r/p", "digest": "sha256:" + strings.Repeat("0", 64), "tag": "v9"}}, []string{`image: "r/p@sha256:000`}, []string{"v9"}},
		"any user": {with(values{"runAsUser": nil}), []string{"runAsNonRoot: true"}, []string{"runAsUser:", "fsGroup"}},
		"ports": {with(values{"replicas": 3, "store": values{"mode": "external", "external": values{"servers": []any{"https://a:2379", "https://b:2379", "https://c/"}}}}),
			[]string{"--etcd-servers=https://a:2379,https://b:2379,https://c/", "- ports: [{port: 2379, protocol: TCP}]\n  - ports: [{port: 443, protocol: TCP}]"}, []string{"penstock-data"}},
		"nothing more": {with(values{"networkPolicy": values{"enabled": false}, "podDisruptionBudget": values{"enabled": false}}), nil, []string{"kind: NetworkPolicy", "kind: PodDisruptionBudget"}},
		"monitoring": {with(values{"monitoring": values{"enabled": true, "labels": values{"release": "prometheus"}}}),
			[]string{"kind: ServiceMonitor", "kind: PrometheusRule", "release: prometheus", `grafana_dashboard: "1"`, "{{ $labels.name }}"}, nil},
		"names of digits": {with(values{"imagePullSecrets": []any{"123"}, "priorityClassName": "1", "tls": values{"mode": "secret", "secretName": "456"}, "store": values{"mode": "embedded", "embedded": values{"storageClassName": "789"}}}),
			[]string{`- name: "123"`, `priorityClassName: "1"`, `secretName: "456"`, `storageClassName: "789"`}, nil},
		"a port":           {values{"image": values{"repository": "localhost:5000/team/penstock"}}, []string{`image: "localhost:5000/team/penstock:v`}, nil},
		"OpenShift's DNS":  {with(nil), []string{"- {port: 5353, protocol: UDP}", "- {port: 5353, protocol: TCP}"}, nil},
		"an argument more": {with(values{"extraArgs": []any{"--v=4"}}), []string{`- "--v=4"`}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			made, err := load(t, folder).Render(t.Context(), "penstock-system", "v1.36.0", tc.values)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(made, want) {
					t.Errorf("it does not have %q", want)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(made, not) {
					t.Errorf("it has %q", not)
				}
			}
			if t.Failed() {
				t.Log(made)
			}
		})
	}
}

// TestPackage: the archive contains the chart, and is the same each time.
func TestPackage(t *testing.T) {
	var archives [][]byte
	var path string
	for range 2 {
		found := load(t, folder)
		found.SetVersion("v1.2.3")
		var err error
		if path, err = found.Package(t.TempDir(), time.Unix(1_700_000_000, 0)); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, content)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the second archive is another one")
	}
	if name := filepath.Base(path); name != "penstock-1.2.3.tgz" {
		t.Errorf("it is called %s", name)
	}
	made, err := load(t, path).Render(t.Context(), "penstock-system", "v1.36.0", with(nil))
	if err != nil || !strings.Contains(made, "penstock:v1.2.3") {
		t.Errorf("rendered from the archive: %v\n%s", err, made)
	}
}
