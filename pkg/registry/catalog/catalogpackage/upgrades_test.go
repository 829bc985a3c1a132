package catalogpackage

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/catalog"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// TestUpgrades: each extension of a package has a row, by what its own spec asks for; what it
// has wrong is told in its row.
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
	found, err := read.Get(t.Context(), "lamp", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := found.(*catalog.CatalogPackageUpgrades)
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
	if _, err := read.Get(t.Context(), "none", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a package that no catalog has and nobody asks for: %v", err)
	}
	failing := NewUpgrades(three(t), func(context.Context, string) ([]Asked, error) { return nil, errors.New("no answer") })
	if _, err := failing.Get(t.Context(), "lamp", &metav1.GetOptions{}); err == nil {
		t.Error("what is not known is told as nothing")
	}
}
