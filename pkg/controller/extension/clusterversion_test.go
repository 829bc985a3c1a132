package extension

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/catalog/inventory/inventorytest"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
)

func TestMain(m *testing.M) {
	if template.IsProcess(os.Args) {
		os.Exit(template.RunProcess(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

type versions struct {
	p       *plane
	text    string
	err     error
	changed chan struct{}
	asked   []string
}

func newVersions(p *plane, text string) *versions {
	return &versions{p: p, text: text, changed: make(chan struct{}, 1)}
}

func (v *versions) Version(_ context.Context, target string) (clusterversion.Kubernetes, bool, error) {
	v.p.mu.Lock()
	defer v.p.mu.Unlock()
	v.asked = append(v.asked, target)
	found, err := clusterversion.ParseKubernetes(v.text)
	return found, err == nil, v.err
}

func (v *versions) Changed() <-chan struct{} { return v.changed }

func (v *versions) set(text string, err error) {
	v.p.mu.Lock()
	v.text, v.err = text, err
	v.p.mu.Unlock()
	v.changed <- struct{}{}
}

// offerNeeding makes the catalog offer 1.0.0, and 2.0.0, which needs Kubernetes 1.31.
func (p *plane) offerNeeding() {
	p.publish("1.0.0", "2.0.0")
	text := "---\n{schema: olm.package, name: lamp, defaultChannel: stable}\n---\n{schema: olm.channel, package: lamp, name: stable, entries: [{name: lamp.v1.0.0}, {name: lamp.v2.0.0, replaces: lamp.v1.0.0}]}\n"
	for version, needs := range map[string]string{"1.0.0": "", "2.0.0": `, {type: olm.csv.metadata, value: {minKubeVersion: "1.31.0"}}`} {
		text += fmt.Sprintf("---\n{schema: olm.bundle, package: lamp, name: lamp.v%[1]s, image: \"r.example/lamp:v%[1]s\", properties: [{type: olm.package, value: {packageName: lamp, version: %[1]s}}%[2]s]}\n", version, needs)
	}
	p.inventory.Put(inventorytest.FromText(p, "hub", text))
}

// TestClusterVersion: a version that needs a newer Kubernetes waits, and is installed after the
// upgrade of the cluster. While the cluster's version is unknown, no version that depends on it is
// chosen.
func TestClusterVersion(t *testing.T) {
	p := newPlane(t)
	p.versions = newVersions(p, "")
	p.offerNeeding()
	p.apply(nil)
	p.process()
	p.awaitSays("the version of the cluster is not known yet")
	p.versions.set("", errors.New("no connection"))
	p.awaitSays("reading the version of the cluster")
	p.versions.set("v1.30.9-gke.5", nil)
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	p.awaitSays("2.0.0 is newer, and blocked: needs Kubernetes 1.31.0 or later, and the cluster has 1.30.9")

	p.apply(version("2.0.0"))
	p.awaitSays("2.0.0 needs Kubernetes 1.31.0 or later, and the cluster has 1.30.9: upgrade the cluster first")
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.versions.set("v1.31.0", nil)
	p.await("2.0.0 comes", func() bool { return strings.Contains(p.shown(), "2 Active 2.0.0 alice") })
}

func (p *plane) awaitSays(text string) {
	p.Helper()
	said := ""
	p.await(text, func() bool {
		object, err := p.host.Tracker().Get(extension.Resource, "", "lamp")
		if err != nil {
			return false
		}
		status, _ := object.(*unstructured.Unstructured).Object["status"].(map[string]any)
		said = fmt.Sprint(status)
		return strings.Contains(said, text)
	})
}

// TestVersionOfOthers: Penstock does not read the version of a cluster for an author who cannot use
// that cluster.
func TestVersionOfOthers(t *testing.T) {
	p := newPlane(t)
	p.versions = newVersions(p, "v1.30.0")
	p.apply(func(object *unstructured.Unstructured) { annotate(object, extension.TargetAnnotation, "far") })
	object, err := p.host.Tracker().Get(extension.Resource, "", "lamp")
	if err != nil {
		t.Fatal(err)
	}
	asked, err := extension.From(object.(*unstructured.Unstructured)) //nolint:forcetypeassert // the fake holds only this type
	if err != nil {
		t.Fatal(err)
	}
	v := &scope{Controller: p.controller(), object: object.(*unstructured.Unstructured), extension: asked} //nolint:forcetypeassert // the fake holds only this type
	p.lacks["use"], p.lacks["bypass"] = true, true
	if found := v.clusterVersion(t.Context()); found.version != nil || found.waits == nil || len(p.versions.asked) > 0 {
		t.Errorf("%+v is known of a cluster that the author cannot use; asked for %v", found, p.versions.asked)
	}
	delete(p.lacks, "use")
	if found := v.clusterVersion(t.Context()); found.version == nil || p.versions.asked[0] != "far" {
		t.Errorf("%+v is known of a cluster that the author may use; asked for %v", found, p.versions.asked)
	}
}

// TestChartForNewerCluster: a chart that needs a newer Kubernetes is refused, and is installed
// after the upgrade of the cluster.
func TestChartForNewerCluster(t *testing.T) {
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	for name, text := range map[string]string{
		"lamp/Chart.yaml":       "apiVersion: v2\nname: lamp\nversion: 1.0.0\nkubeVersion: '>=1.37.0-0'\n",
		"lamp/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lamp}\n",
	} {
		if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	p := newPlane(t)
	p.images["r.example/lamp:chart"] = fstest.MapFS{image.ChartFile: &fstest.MapFile{Data: archive.Bytes()}}
	p.apply(func(object *unstructured.Unstructured) {
		_ = unstructured.SetNestedMap(object.Object, map[string]any{"sourceType": extension.SourceChart, "chart": map[string]any{"ref": "r.example/lamp:chart"}}, "spec", "source")
	})
	p.process()
	p.awaitSays("chart lamp needs Kubernetes >=1.37.0-0, and is rendered for v1.36.3: upgrade the cluster first")
	p.mu.Lock()
	p.kubernetes = "v1.37.0"
	p.mu.Unlock()
	p.awaitRevisions("1 Active 1.0.0 alice")
}
