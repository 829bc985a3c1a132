package olmv0

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestContent: a manifest has the fields of OLM and of people, and no field of a controller.
func TestContent(t *testing.T) {
	const (
		begins = `{"apiVersion":"v1","kind":"A","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"1","finalizers":["f"],` +
			`"ownerReferences":[{"uid":"csv"}],"labels":{"olm.owner":"x","olm.owner.kind":"K","olm.owner.namespace":"n","app":"a"},"managedFields":[`
		ends = `]},"spec":{"replicas":5,"image":"i","bundle":"CA"},"status":{"ready":1}}`
		olm  = `{"manager":"olm","operation":"Update","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{},"f:olm.owner":{}},"f:ownerReferences":{}},"f:spec":{"f:image":{}}}}`
	)
	for name, tc := range map[string]struct {
		entries, want string
		people        []string
	}{
		"of OLM alone": {entries: olm, want: `{"apiVersion":"v1","kind":"A","metadata":{"name":"a","namespace":"n","labels":{"app":"a"}},"spec":{"image":"i"}}`},
		"changed by hand": {
			entries: olm + `,{"manager":"kubectl-edit","operation":"Update","fieldsV1":{"f:spec":{"f:replicas":{}}}}`,
			want:    `{"apiVersion":"v1","kind":"A","metadata":{"name":"a","namespace":"n","labels":{"app":"a"}},"spec":{"image":"i","replicas":5}}`, people: []string{"kubectl-edit"},
		},
		"noted on by hand": {
			entries: olm + `,{"manager":"kubectl-annotate","operation":"Update","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}}}}}` +
				`,{"manager":"kubectl-rollout","operation":"Update","fieldsV1":{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{}}}}}}`,
			want: `{"apiVersion":"v1","kind":"A","metadata":{"name":"a","namespace":"n","labels":{"app":"a"}},"spec":{"image":"i"}}`,
		},
		"scaled, and with a certificate": {
			entries: olm + `,{"manager":"kubectl","operation":"Update","subresource":"scale","fieldsV1":{"f:spec":{"f:replicas":{}}}}` +
				`,{"manager":"cainjector","operation":"Update","fieldsV1":{"f:spec":{"f:bundle":{}}}}`,
			want: `{"apiVersion":"v1","kind":"A","metadata":{"name":"a","namespace":"n","labels":{"app":"a"}},"spec":{"image":"i"}}`,
		},
		"of OLM nothing is known": {
			entries: `{"manager":"before-first-apply","operation":"Update","fieldsV1":{"f:spec":{"f:image":{}}}}`,
			want:    `{"apiVersion":"v1","kind":"A","metadata":{"name":"a","namespace":"n","labels":{"app":"a"}},"spec":{"image":"i","replicas":5,"bundle":"CA"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{}
			if err := live.UnmarshalJSON([]byte(begins + tc.entries + ends)); err != nil {
				t.Fatal(err)
			}
			content, people, err := Content(live)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.people, people); diff != "" {
				t.Errorf("people (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOwns: an API is identified by its name, or by its group and version.
func TestOwns(t *testing.T) {
	csv := &ClusterServiceVersion{}
	csv.Spec.CRDs.Owned = []API{{Name: "carts.example.com", Version: "v1"}}
	csv.Spec.APIs.Owned = []API{{Group: "example.com", Version: "v1"}}
	for name, tc := range map[string]struct {
		api  API
		owns bool
	}{
		"a definition":            {api: API{Name: "carts.example.com", Version: "v2"}, owns: true},
		"another one":             {api: API{Name: "shops.example.com", Version: "v1"}},
		"a version of a group":    {api: API{Group: "example.com", Version: "v1"}, owns: true},
		"another one of the same": {api: API{Group: "example.com", Version: "v2"}},
	} {
		if got := csv.Owns(tc.api); got != tc.owns {
			t.Errorf("%s: %t, want %t", name, got, tc.owns)
		}
	}
}
