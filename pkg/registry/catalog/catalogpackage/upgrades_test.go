package catalogpackage

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// TestUpgrades: each extension of a package has a row, computed from its own spec. The row also
// shows errors of the extension.
func TestUpgrades(t *testing.T) {
	asked := func(name, installed, version, approval string, channels ...string) Asked {
		one := Asked{Extension: &extension.Extension{Spec: extension.Spec{Source: extension.Source{
			Catalog: &extension.Catalog{PackageName: "lamp", Version: version, Channels: channels},
		}}}}
		one.Extension.Name = name
		if approval != "" {
			one.Extension.Annotations = map[string]string{extension.ApprovalAnnotation: approval}
		}
		if installed != "" {
			one.Installed = &resolve.Installed{Name: "lamp.v" + installed, Version: installed}
		}
		return one
	}
	read := NewUpgrades(three(t), func(_ context.Context, name string) ([]Asked, error) {
		if name != "lamp" {
			return nil, nil
		}
		return []Asked{
			asked("a", "1.0.0", "", "Manual", "stable"),
			asked("b", "", "newest", ""),
		}, nil
	})
	found, err := read.Get(t.Context(), "lamp", &v1alpha1.CatalogPackageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := found.(*v1alpha1.CatalogPackageUpgrades)
	if len(got.Extensions) != 2 {
		t.Fatalf("got %+v", got)
	}
	a, b := got.Extensions[0], got.Extensions[1]
	if a.Extension != "a" || a.Installed != "1.0.0" || a.Allowed != "1.1.0" || a.Approval != "Manual" || a.Newest != "1.2.0" || len(a.Blocked) != 3 || a.Blocked[2].Cause != "NotSuccessor" {
		t.Errorf("got %+v", a)
	}
	if b.Allowed != "" || b.Approval != "Automatic" || !strings.Contains(b.Message, `desired version range "newest" is invalid`) {
		t.Errorf("got %+v", b)
	}
	table, err := read.ConvertToTable(t.Context(), got, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"a", "1.0.0", "1.1.0", "Manual", "1.2.0", "3.0.0 is in channel c"}, table.Rows[0].Cells); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := read.Get(t.Context(), "none", &v1alpha1.CatalogPackageOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a package that no catalog has and nobody asks for: %v", err)
	}
	failing := NewUpgrades(three(t), func(context.Context, string) ([]Asked, error) { return nil, errors.New("no answer") })
	if _, err := failing.Get(t.Context(), "lamp", &v1alpha1.CatalogPackageOptions{}); err == nil {
		t.Error("what is not known is told as nothing")
	}

	// The answer shows the versions of another range, and changes no spec.
	for _, tc := range []struct {
		version []string
		allowed string
		said    string
	}{
		{[]string{"<1.1"}, "1.0.0", ""},
		{[]string{""}, "1.1.0", ""},
		{[]string{">=9"}, "", "none of the 3 versions in channel stable is in the range"},
		{[]string{"newest"}, "", `desired version range "newest" is invalid`},
	} {
		found, err := read.Get(t.Context(), "lamp", &v1alpha1.CatalogPackageOptions{Version: tc.version})
		if err != nil {
			t.Fatal(err)
		}
		if row := found.(*v1alpha1.CatalogPackageUpgrades).Extensions[0]; row.Allowed != tc.allowed || !strings.Contains(row.Message, tc.said) || row.Installed != "1.0.0" {
			t.Errorf("%q: got %+v, want %s, %s", tc.version, row, tc.allowed, tc.said)
		}
	}
	for want, query := range map[string]*v1alpha1.CatalogPackageOptions{
		"version is given 2 times: want one range":                                {Version: []string{"1.x", "2.x"}},
		`to="1.0.0": this subresource has no such parameter: want one of version`: {To: "1.0.0"},
	} {
		if _, err := read.Get(t.Context(), "lamp", query); !apierrors.IsBadRequest(err) || err.Error() != want {
			t.Errorf("%+v: %v, want %s", query, err, want)
		}
	}
}

// TestClusters: a row is about the cluster of its extension. The row shows whether the unknown
// version of that cluster matters.
func TestClusters(t *testing.T) {
	config, err := fbc.Load(t.Context(), strings.NewReader(`{"schema":"olm.package","name":"lamp","defaultChannel":"a"}
{"schema":"olm.channel","package":"lamp","name":"a","entries":[{"name":"lamp.v1.0.0"},{"name":"lamp.v1.1.0","replaces":"lamp.v1.0.0"}]}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v1.0.0","image":"x","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v1.1.0","image":"x","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.1.0"}},{"type":"olm.csv.metadata","value":{"minKubeVersion":"1.37.0"}}]}
`), "c", fbc.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for reason, tc := range map[string]struct {
		cluster                    *clusterversion.Kubernetes
		installed                  string
		allowed, blocked, messages string
	}{
		"the cluster is old":   {&clusterversion.Kubernetes{Major: 1, Minor: 36}, "1.0.0", "1.0.0", "1.1.0 ClusterVersion needs Kubernetes 1.37.0 or later, and the cluster has 1.36.0", ""},
		"the cluster has it":   {&clusterversion.Kubernetes{Major: 1, Minor: 37}, "1.0.0", "1.1.0", "", ""},
		"it is not known":      {nil, "1.0.0", "1.1.0", "", "1.1.0 needs Kubernetes 1.37.0 or later, and the version of the cluster is not known here: you cannot use target edge"},
		"it does not matter":   {nil, "1.1.0", "1.1.0", "", ""},
		"nothing is installed": {nil, "", "1.1.0", "", "1.1.0 needs Kubernetes 1.37.0 or later, and the version of the cluster is not known here: you cannot use target edge"},
	} {
		asked := Asked{Extension: &extension.Extension{}, Cluster: tc.cluster, NoCluster: "you cannot use target edge"}
		if tc.installed != "" {
			asked.Installed = &resolve.Installed{Name: "lamp.v" + tc.installed, Version: tc.installed}
		}
		row := rowOf(asked, extension.Catalog{PackageName: "lamp"}, []resolve.Catalog{{Name: "c", Config: config}})
		var blocked []string
		for _, one := range row.Blocked {
			blocked = append(blocked, one.Version+" "+one.Cause+" "+one.Message)
		}
		if row.Allowed != tc.allowed || strings.Join(blocked, ", ") != tc.blocked || row.Message != tc.messages {
			t.Errorf("%s: got %+v", reason, row)
		}
	}
}
