package adopt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/adopt/olmv0"
)

// TestClusterExtension: the ClusterExtension requests the same as the Subscription.
func TestClusterExtension(t *testing.T) {
	const metadata = `{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{"annotations":{"penstock.dev/upgrade-approval":"Manual"},"name":"x"},`
	for name, tc := range map[string]struct {
		subscription, watches, want string
	}{
		"of all namespaces": {
			subscription: `{"spec":{"name":"p"}}`,
			want:         metadata + `"spec":{"namespace":"n","source":{"sourceType":"Catalog","catalog":{"packageName":"p","version":"1.2.0"}}}}`,
		},
		"of one, with a channel": {
			subscription: `{"spec":{"name":"p","channel":"stable","config":{"selector":{"matchLabels":{"a":"b"}}}}}`, watches: "other",
			want: metadata + `"spec":{"namespace":"n","source":{"sourceType":"Catalog","catalog":{"packageName":"p","version":"1.2.0","channels":["stable"]}},` +
				`"config":{"configType":"Inline","inline":{"watchNamespace":"other"}}}}`,
		},
		"with a configuration": {
			subscription: `{"spec":{"name":"p","config":{"selector":{},"env":[{"name":"A","value":"b"}],"nodeSelector":{"x":"y"}}}}`,
			want: metadata + `"spec":{"namespace":"n","source":{"sourceType":"Catalog","catalog":{"packageName":"p","version":"1.2.0"}},` +
				`"config":{"configType":"Inline","inline":{"deploymentConfig":{"env":[{"name":"A","value":"b"}],"nodeSelector":{"x":"y"}}}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			of, csv := &olmv0.Subscription{}, &olmv0.ClusterServiceVersion{}
			if err := json.Unmarshal([]byte(tc.subscription), of); err != nil {
				t.Fatal(err)
			}
			of.Namespace, csv.Spec.Version = "n", "1.2.0"
			object, err := clusterExtension(of, csv, "x", tc.watches)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			for text, into := range map[string]*any{string(raw): &got, tc.want: &want} {
				if err := json.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBelongsToOther: an object that two operators own is not adopted.
func TestBelongsToOther(t *testing.T) {
	csv := &olmv0.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: "p.v1", Namespace: "n", UID: "u"}}
	controller := true
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		labels map[string]string
		says   string
	}{
		"its own":              {owners: []metav1.OwnerReference{{Kind: olmv0.Kind, Name: "p.v1", UID: "u"}}},
		"its own, by labels":   {labels: map[string]string{olmv0.OwnerLabel: "p.v1", olmv0.OwnerNamespaceLabel: "n", olmv0.OwnerKindLabel: olmv0.Kind}},
		"its own, controlled":  {owners: []metav1.OwnerReference{{Kind: olmv0.Kind, Name: "p.v1", UID: "u", Controller: &controller}}},
		"of nobody":            {},
		"of two":               {owners: []metav1.OwnerReference{{Kind: olmv0.Kind, Name: "p.v1", UID: "u"}, {Kind: olmv0.Kind, Name: "q.v1", UID: "v"}}, says: "belongs to ClusterServiceVersion q.v1, too"},
		"of another, labelled": {labels: map[string]string{olmv0.OwnerLabel: "p.v1", olmv0.OwnerNamespaceLabel: "m", olmv0.OwnerKindLabel: olmv0.Kind}, says: "belongs to ClusterServiceVersion m/p.v1"},
		"of a controller":      {owners: []metav1.OwnerReference{{Kind: "Shop", Name: "s", UID: "s", Controller: &controller}}, says: "is controlled by Shop s"},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{}}
			live.SetOwnerReferences(tc.owners)
			live.SetLabels(tc.labels)
			state, says := belongsToOther(live, csv)
			if says != tc.says || (state == "") != (tc.says == "") {
				t.Errorf("%q, %q, want %q", state, says, tc.says)
			}
		})
	}
}

// TestShared: if two ClusterServiceVersions own a definition, neither is adopted.
func TestShared(t *testing.T) {
	of := func(namespace, name string, definitions ...string) olmv0.ClusterServiceVersion {
		one := olmv0.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(namespace + name)}}
		for _, definition := range definitions {
			one.Spec.CRDs.Owned = append(one.Spec.CRDs.Owned, olmv0.API{Name: definition})
		}
		return one
	}
	all := []olmv0.ClusterServiceVersion{of("t1", "p.v1", "tenants.example.com"), of("t2", "p.v1", "tenants.example.com"), of("t3", "q.v1", "lamps.example.com"), of("t4", "r.v1")}
	for i, want := range []string{"CustomResourceDefinition tenants.example.com is owned by ClusterServiceVersion t2/p.v1, too", "CustomResourceDefinition tenants.example.com is owned by ClusterServiceVersion t1/p.v1, too", "", ""} {
		err := shared(&all[i], all)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s/%s: %v, want %q", all[i].Namespace, all[i].Name, err, want)
		}
	}
}

// TestNotTaken: the plan names objects that are not adopted, with the reason.
func TestNotTaken(t *testing.T) {
	found := &installed{
		csv:   &olmv0.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: "p.v1", Namespace: "n"}},
		group: &olmv0.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: "n"}},
		beside: []olmv0.ClusterServiceVersion{
			{ObjectMeta: metav1.ObjectMeta{Name: "q.v1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "r.v1"}},
		},
		copies: []string{"b", "a"}, condition: true,
	}
	owned, needed, nobodys := olmv0.API{Name: "ps.example.com"}, olmv0.API{Name: "qs.example.com"}, olmv0.API{Group: "example.org", Version: "v1"}
	found.csv.Spec.CRDs.Owned, found.csv.Spec.CRDs.Required, found.csv.Spec.APIs.Required = []olmv0.API{owned}, []olmv0.API{needed}, []olmv0.API{nobodys}
	found.beside[0].Spec.CRDs.Owned, found.beside[1].Spec.CRDs.Required = []olmv0.API{needed}, []olmv0.API{owned}
	rotates := metav1.Unix(1795353079, 0)
	found.csv.Status.CertsRotateAt = &rotates
	of := &olmv0.Subscription{}
	of.Spec.Config = map[string]any{"selector": map[string]any{}}

	left, warnings := found.notTaken(of)
	var lines []string
	for _, one := range left {
		lines = append(lines, one.What+": "+one.Why)
	}
	for i, want := range []string{
		"CustomResourceDefinition qs.example.com: it is required, and ClusterServiceVersion q.v1 has it",
		"APIService v1.example.org: it is required, and no other",
		"OperatorCondition n/p.v1: ", "OperatorGroup n/g: ", "ClusterServiceVersion a/p.v1: it is a copy", "ClusterServiceVersion b/p.v1: ", "spec.config.selector",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d does not begin with %q:\n%s", i, want, strings.Join(lines, "\n"))
		}
	}
	said := strings.Join(warnings, "\n")
	for _, want := range []string{"ClusterServiceVersion r.v1 requires CustomResourceDefinition ps.example.com", "would renew them at 2026-11-22T"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in:\n%s", want, said)
		}
	}
}
