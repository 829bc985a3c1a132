package lifecycle

import (
	"os"
	"strings"
	"testing"

	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1beta1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1beta1"

	"github.com/penstock-project/penstock/pkg/clusterversion"
)

func table(t *testing.T) *Table {
	t.Helper()
	found, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestLinkedLibrary: the table agrees with the linked library about each kind. If it differs, run
// hack/lifecycle for the new libraries.
func TestLinkedLibrary(t *testing.T) {
	known := table(t)
	modules, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "k8s.io/api v0." + strings.TrimPrefix(known.Version().String(), "1.") + "\n"; !strings.Contains(string(modules), want) {
		t.Errorf("the table is not of the k8s.io/api in go.mod (want %q): add the version to the first line of table.txt, and run its command", strings.TrimSpace(want))
	}
	linked := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1beta1.AddToScheme, apiregistrationv1beta1.AddToScheme} {
		if err := add(linked); err != nil {
			t.Fatal(err)
		}
	}
	compared := 0
	for kind := range linked.AllKnownTypes() {
		object, err := linked.New(kind)
		if err != nil || strings.HasSuffix(kind.Kind, "List") || kind.Version == runtime.APIVersionInternal {
			continue
		}
		want := API{}
		if says, ok := object.(interface{ APILifecycleDeprecated() (int, int) }); ok {
			want.Deprecated = version(says.APILifecycleDeprecated())
		}
		if says, ok := object.(interface{ APILifecycleRemoved() (int, int) }); ok {
			want.Removed = version(says.APILifecycleRemoved())
		}
		got, found := known.Find(kind)
		if says, ok := object.(interface {
			APILifecycleReplacement() schema.GroupVersionKind
		}); ok && found {
			want.Replacement = says.APILifecycleReplacement()
			want.Replacement.Kind = strings.TrimSuffix(want.Replacement.Kind, "List")
			if got.Replacement != want.Replacement {
				t.Errorf("%s is replaced by %s, the library says %s", kind, got.Replacement, want.Replacement)
			}
		}
		if got.Deprecated != want.Deprecated || got.Removed != want.Removed {
			t.Errorf("%s is deprecated in %s and removed in %s, the library says %s and %s", kind, got.Deprecated, got.Removed, want.Deprecated, want.Removed)
		}
		if want.Removed != (clusterversion.Kubernetes{}) {
			compared++
		}
	}
	if compared < 80 {
		t.Errorf("the library has a removal for %d kinds only: are its methods read?", compared)
	}
}

func version(major, minor int) clusterversion.Kubernetes {
	return clusterversion.Kubernetes{Major: uint(major), Minor: uint(minor)}
}

// TestForgotten: the table keeps kinds that newer libraries no longer have.
func TestForgotten(t *testing.T) {
	known := table(t)
	for _, one := range []struct{ apiVersion, kind, removed, replacement, reason string }{
		{"autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.26.0", "autoscaling/v2", "no library since 1.36 has it"},
		{"resource.k8s.io/v1alpha3", "ResourceClaim", "1.34.0", "resource.k8s.io/v1beta1", "its methods said 1.37, and 1.34 dropped it"},
		{"storagemigration.k8s.io/v1alpha1", "StorageVersionMigration", "1.35.0", "storagemigration.k8s.io/v1", "dropped before its date too"},
		{"policy/v1beta1", "PodSecurityPolicy", "1.25.0", "", "only the supplement has it"},
		{"scheduling.k8s.io/v1alpha2", "PodGroup", "1.37.0", "scheduling.k8s.io/v1beta1", "an alpha version that never had a lifecycle"},
		{"resource.k8s.io/v1beta1", "ResourceClaim", "1.38.0", "resource.k8s.io/v1", "the methods name no replacement"},
		{"networking.k8s.io/v1beta1", "IngressClass", "1.22.0", "networking.k8s.io/v1", "the methods name the list"},
	} {
		got, found := known.Find(schema.FromAPIVersionAndKind(one.apiVersion, one.kind))
		if !found || got.Removed.String() != one.removed || got.Replacement.GroupVersion().String() != one.replacement || one.replacement != "" && got.Replacement.Kind != one.kind {
			t.Errorf("%s %s is %+v; want removal %s and replacement %s: %s", one.apiVersion, one.kind, got, one.removed, one.replacement, one.reason)
		}
	}
	if _, found := known.Find(schema.GroupVersionKind{Version: "v1", Kind: "PodStatusResult"}); found {
		t.Error("a GA kind that left the library counts as removed")
	}
}

func TestKnows(t *testing.T) {
	known := &Table{version: clusterversion.Kubernetes{Major: 1, Minor: 37, Patch: 2}}
	for text, want := range map[string]bool{"1.25": true, "1.37": true, "1.38": true, "1.40": true, "1.41": false, "2.0": false} {
		if target, err := clusterversion.ParseKubernetes(text); err != nil || known.Knows(target) != want {
			t.Errorf("%s: %t, %v", text, !want, err)
		}
	}
}
