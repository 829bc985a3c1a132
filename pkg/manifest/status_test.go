package manifest

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// TestGroupsOfKubernetes compares the list with the groups of client-go.
func TestGroupsOfKubernetes(t *testing.T) {
	groups := sets.New(apiextensionsv1.GroupName, apiregistrationv1.GroupName)
	for _, version := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		groups.Insert(version.Group)
	}
	for group := range groups {
		if !IsOfKubernetes(group) {
			t.Errorf("group %q is missing", group)
		}
	}
	for _, group := range []string{"example.com", "gateway.networking.k8s.io", "monitoring.coreos.com", "k8s.io", "metrics.k8s.io"} {
		if IsOfKubernetes(group) {
			t.Errorf("group %q is not one of Kubernetes", group)
		}
	}
}

func TestStatus(t *testing.T) {
	cases := map[string]struct {
		reason, in, json, without string
	}{
		"custom": {
			reason:  "a kind without the subresource has content there",
			in:      `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a"},"status":{"on":true,"n":9007199254740993}}`,
			json:    `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a"},"status":{"n":9007199254740993,"on":true}}`,
			without: `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a"}}`,
		},
		"empty": {
			reason: "encoders of Go types write an empty one that nobody set",
			in:     `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a"},"status":{}}`,
			json:   `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a"}}`,
		},
		"null": {
			reason: "null is no value",
			in:     `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a"},"status":null}`,
			json:   `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a"}}`,
		},
		"nested": {
			reason: "only the field of the object itself counts",
			in:     `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a"},"spec":{"status":{"on":true}}}`,
			json:   `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a"},"spec":{"status":{"on":true}}}`,
		},
		"definition": {
			reason: "all kinds of Kubernetes with a status have the subresource",
			in:     `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"status":{"conditions":null}}`,
			json:   `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object, err := Digester{}.FromJSON([]byte(tc.in))
			if err != nil || string(object.JSON) != tc.json {
				t.Fatalf("%s: %s, %v", tc.reason, object.JSON, err)
			}
			without, had, err := Digester{}.WithoutStatus(object)
			switch {
			case err != nil || had != (tc.without != ""):
				t.Errorf("%s: has status %v, %v", tc.reason, had, err)
			case !had && without.Digest != object.Digest, had && (string(without.JSON) != tc.without || without.Digest == object.Digest):
				t.Errorf("%s: without status it is %s", tc.reason, without.JSON)
			}
		})
	}
}
