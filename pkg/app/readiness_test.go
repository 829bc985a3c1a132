package app

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/controller/extension"
	"github.com/penstock-project/penstock/pkg/registry/olm/upgradereadiness"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
)

// TestMain has this test be the process that renders charts, as main does.
func TestMain(m *testing.M) {
	if template.IsProcess(os.Args) {
		os.Exit(template.RunProcess(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestRenderPulled: a chart is rendered for the version that the cluster is upgraded to, and for what the
// cluster serves then.
func TestRenderPulled(t *testing.T) {
	const lamp = `
{{- if .Capabilities.APIVersions.Has "example.com/v2/Lamp" }}
{apiVersion: example.com/v2, kind: Lamp, metadata: {name: a}}
{{- else }}
{apiVersion: example.com/v1, kind: Lamp, metadata: {name: a}}
{{- end }}`
	served := &template.Capabilities{APIVersions: []string{"v1", "example.com/v1", "example.com/v1/Lamp", "example.com/v2", "example.com/v2/Lamp"}}
	for reason, tc := range map[string]struct {
		kubeVersion, version string
		notLooked            bool
	}{
		"the cluster serves it":                {">=1.30.0-0", "v2", false},
		"the chart states an earlier one":      {"<1.38.0-0", "", true},
		"the chart states a patch of the same": {">=1.38.5", "", true},
	} {
		t.Run(reason, func(t *testing.T) {
			var archive bytes.Buffer
			zipped := gzip.NewWriter(&archive)
			files := tar.NewWriter(zipped)
			for name, text := range map[string]string{"lamp/Chart.yaml": "apiVersion: v2\nname: lamp\nversion: 1.0.0\nkubeVersion: '" + tc.kubeVersion + "'\n", "lamp/templates/lamp.yaml": lamp} {
				if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
					t.Fatal(err)
				}
				if _, err := files.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			if files.Close() != nil || zipped.Close() != nil {
				t.Fatal("the archive is not closed")
			}
			pulled := &extension.Pulled{Kind: image.Chart, FS: fstest.MapFS{image.ChartFile: {Data: archive.Bytes()}}}
			out, err := renderPulled(t.Context(), pulled, upgradereadiness.Wanted{Extension: "lamp", Settings: upgradereadiness.Settings{Namespace: "lamps"}, Kubernetes: "1.38.0", Cluster: served})
			if err != nil || out.Range != tc.kubeVersion {
				t.Fatalf("%+v, %v", out, err)
			}
			if (out.NotLooked != "") != tc.notLooked || tc.notLooked && !strings.Contains(out.NotLooked, tc.kubeVersion) {
				t.Errorf("not looked at: %q", out.NotLooked)
			}
			if tc.version != "" && (len(out.Kinds) != 1 || out.Kinds[0] != schema.GroupVersionKind{Group: "example.com", Version: tc.version, Kind: "Lamp"}) {
				t.Errorf("%v", out.Kinds)
			}
		})
	}
}
