package store

import (
	"bytes"
	"compress/gzip"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// zipped returns the manifests, compressed by gzip at its best level.
func zipped(t testing.TB, r release) []byte {
	t.Helper()
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = writer.Write(r.lines())
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// helmBytes returns the size of Helm's record of a release whose chart has the manifests as
// templates. Helm's own driver encodes it. The metadata of the Secret does not count.
func helmBytes(t testing.TB, r release) int {
	t.Helper()
	const name = "release"
	secrets := fake.NewClientset().CoreV1().Secrets("default")
	rls := &helm.Release{
		Name: name, Namespace: "default", Version: r.number, Manifest: string(r.lines()),
		Info: &helm.Info{FirstDeployed: time.Unix(0, 0), LastDeployed: time.Unix(0, 0), Status: releasecommon.StatusDeployed},
		Chart: &chart.Chart{
			Metadata:  &chart.Metadata{Name: r.operator, Version: r.version, APIVersion: chart.APIVersionV2},
			Templates: []*common.File{{Name: "templates/all.yaml", Data: r.lines()}},
		},
	}
	if err := driver.NewSecrets(secrets).Create(name, rls); err != nil {
		t.Fatal(err)
	}
	stored, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(stored.Data["release"])
}
