package chain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func TestYieldRules(t *testing.T) {
	deployments := metav1.GroupKind{Group: "apps", Kind: "Deployment"}
	rules := []olmv1alpha1.YieldRule{
		{Selector: olmv1alpha1.YieldSelector{GroupKind: deployments}, Fields: []string{"spec.replicas"}},
		{Selector: olmv1alpha1.YieldSelector{GroupKind: deployments, Namespace: "a"}, Fields: []string{"spec.paused"}},
		{Selector: olmv1alpha1.YieldSelector{GroupKind: deployments, Name: "x"}, Fields: []string{"spec.minReadySeconds"}},
	}
	cases := map[string]struct {
		reason, apiVersion, namespace, name string
		want                                []string
	}{
		"all":     {"every rule selects it", "apps/v1", "a", "x", []string{"spec.replicas", "spec.paused", "spec.minReadySeconds"}},
		"kind":    {"a kind of any name", "apps/v1", "b", "y", []string{"spec.replicas"}},
		"name":    {"a name in any namespace", "apps/v1", "b", "x", []string{"spec.replicas", "spec.minReadySeconds"}},
		"version": {"whatever its version", "apps/v1beta1", "b", "y", []string{"spec.replicas"}},
		"group":   {"another group is another kind", "example.com/v1", "a", "x", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, path := range yield(rules, olmv1alpha1.RevisionObject{APIVersion: tc.apiVersion, Kind: "Deployment", Namespace: tc.namespace, Name: tc.name}) {
				got = append(got, path.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
