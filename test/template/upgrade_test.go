//go:build integration

package template_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// TestUpgrade restarts kube-apiserver in several versions, one after the other. The image is
// updated, and the condition keeps its time. It is the first story of the design, for the catalog
// only. It needs the tools of the slice v1.35.
func TestUpgrade(t *testing.T) {
	if !isFull() {
		t.Skip("FULL=1 restarts kube-apiserver of 1.34 as 1.35 and 1.36, some minutes")
	}
	current, err := plane.Tools(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	tools := map[string]string{}
	for _, minor := range []string{"34", "35", "36"} {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(current), "v1."+minor+".*", "kube-apiserver"))
		if err != nil || len(found) == 0 {
			t.Skipf("hack/build-tools.sh v1.%s has not been run: %v", minor, err)
		}
		slices.Sort(found)
		tools[minor] = filepath.Dir(found[0])
	}
	w := shared{Cluster: cluster.Start(t), t: t, name: "default"}
	if err := w.Plane().Upgrade(t.Context(), tools["34"]); err != nil {
		t.Fatal(err)
	}
	if w.host, err = dynamic.NewForConfig(w.Config()); err != nil {
		t.Fatal(err)
	}
	definition, err := os.ReadFile("testdata/catalogsource.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w.MustKubectlInput(string(definition), "apply", "-f", "-")
	w.server = penstock.Build(t).Serve(t, w.Cluster, penstock.DataDir(t))
	w.awaitStamps()
	w.apply(w.Access, w.source("catalog", "quay.io/kube-release-v{kube_major_version}/catalog:v{kube_major_version}.{kube_minor_version}"))
	w.MustKubectlInput(`{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {name: catalog, annotations: {olm.catalogImageTemplate: "127.0.0.1:1/c:v{kube_minor_version}"}}, spec: {availabilityMode: Unavailable, source: {type: Image, image: {ref: "127.0.0.1:1/c:v0"}}}}`, "apply", "-f", "-")
	first := conditions(w.await("catalog", "it follows 1.34", resolvedTo("quay.io/kube-release-v1/catalog:v1.34")))
	for _, minor := range []string{"35", "36"} {
		if err := w.Plane().Upgrade(t.Context(), tools[minor]); err != nil {
			t.Fatal(err)
		}
		// The version is requested once a minute, and the first request may fail.
		w.eventually("kube-apiserver has answered", func() bool { return w.Kubectl("get", "--raw", "/readyz").ExitCode == 0 })
		w.eventually("the image follows 1."+minor, func() bool {
			found, err := w.host.Resource(annotated.CatalogSources().Resource).Namespace(w.name).Get(t.Context(), "catalog", metav1.GetOptions{})
			return err == nil && resolvedTo("quay.io/kube-release-v1/catalog:v1."+minor)(found)
		})
		if got := conditions(w.live("catalog")); !got[0].LastTransitionTime.Equal(&first[0].LastTransitionTime) {
			t.Errorf("after 1.%s the condition is since %s, want %s", minor, got[0].LastTransitionTime, first[0].LastTransitionTime)
		}
		w.eventually("the ClusterCatalog follows 1."+minor, func() bool {
			return w.Kubectl("get", "clustercatalog", "catalog", "-o", "jsonpath={.spec.source.image.ref}").Stdout == "127.0.0.1:1/c:v"+minor
		})
	}
}
