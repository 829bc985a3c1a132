package resolve

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/clusterversion"
)

// needing returns a catalog in which some bundles need a version of Kubernetes.
func needing(t *testing.T, needs map[string]string) []Catalog {
	t.Helper()
	config := catalogOf(t, "stable: 1.0.0", "stable: 1.1.0 > 1.0.0", "stable: 2.0.0 > 1.1.0, 1.0.0")
	for i, bundle := range config.Bundles {
		if least := needs[bundle.Name]; least != "" {
			config.Bundles[i].Properties = append(config.Bundles[i].Properties, fbc.Property{
				Type: fbc.PropertyCSVMetadata, Value: []byte(fmt.Sprintf(`{"minKubeVersion":%q}`, least))})
		}
	}
	return []Catalog{{Name: "c", Config: config}}
}

func cluster(t *testing.T, version string) *clusterversion.Kubernetes {
	t.Helper()
	if version == "" {
		return nil
	}
	found, err := clusterversion.ParseKubernetes(version)
	if err != nil {
		t.Fatal(err)
	}
	return &found
}

// TestClusterVersion: a bundle that needs a newer Kubernetes is not chosen, and the reason names
// it.
func TestClusterVersion(t *testing.T) {
	needs := map[string]string{"2.0.0": "1.31.0"}
	for name, c := range map[string]struct {
		needs   map[string]string
		cluster string
		request Request
		want    string
		says    string
	}{
		"new enough":            {needs, "v1.31.0", Request{}, "2.0.0", ""},
		"a suffix":              {needs, "v1.31.0-gke.5", Request{}, "2.0.0", ""},
		"too old":               {needs, "v1.30.9", Request{}, "1.1.0", "2.0.0 needs Kubernetes 1.31.0 or later, and the cluster has 1.30.9"},
		"upgrade":               {needs, "v1.30.9", Request{Installed: installed("1.0.0")}, "1.1.0", "2.0.0 needs Kubernetes 1.31.0 or later"},
		"not known":             {needs, "", Request{}, "2.0.0", ""},
		"pinned":                {needs, "v1.30.9", Request{Version: "2.0.0", Installed: installed("1.0.0")}, "", "2.0.0 needs Kubernetes 1.31.0 or later, and the cluster has 1.30.9: upgrade the cluster first, or ask for a lower version"},
		"installed stays":       {needs, "v1.30.9", Request{Installed: installed("2.0.0")}, "2.0.0", ""},
		"installed stays, free": {needs, "v1.30.9", Request{Installed: installed("2.0.0"), SelfCertified: true}, "2.0.0", ""},
		"unreadable":            {map[string]string{"2.0.0": "latest"}, "v1.30.9", Request{}, "2.0.0", ""},
		"two numbers":           {map[string]string{"2.0.0": "1.31"}, "v1.30.9", Request{}, "1.1.0", "2.0.0 needs Kubernetes 1.31.0"},
		"all":                   {map[string]string{"1.0.0": "2.0", "1.1.0": "2.0", "2.0.0": "2.0"}, "v1.30.9", Request{}, "", "2.0.0 needs Kubernetes 2.0.0 or later"},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Package, c.request.Cluster = "p", cluster(t, c.cluster)
			got, err := Resolve(c.request, needing(t, c.needs))
			reason := ""
			var none *Error
			switch {
			case err == nil:
				reason = got.Reason
			case errors.As(err, &none):
				reason = none.Reason
			default:
				t.Fatal(err)
			}
			if (err == nil) != (c.want != "") || err == nil && got.Bundle.Name != c.want {
				t.Fatalf("chosen %+v, %v; want %q", got, err, c.want)
			}
			if !strings.Contains(reason, c.says) {
				t.Errorf("the reason is %q, want %q", reason, c.says)
			}
			if c.want == "" && !slices.ContainsFunc(none.Refused, func(r Refusal) bool { return r.Rule == ClusterVersion }) {
				t.Errorf("no refusal names the version: %+v", none.Refused)
			}
		})
	}
}
