package managedfields

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
)

func paths(t *testing.T, texts ...string) []manifest.FieldPath {
	t.Helper()
	var out []manifest.FieldPath
	for _, text := range texts {
		path, err := manifest.ParseFieldPath(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, path)
	}
	return out
}

func TestYielding(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	wanted := object(t, `{"metadata":{"labels":{"app":"x"}},"spec":{"replicas":2,"template":{"spec":{"containers":[
		{"name":"main","image":"x:1","resources":{"requests":{"cpu":"1"}}},{"name":"side","image":"y:1"}]}}}}`)
	image := `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:image":{}}}}}}}`
	cpu := `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:resources":{"f:requests":{"f:cpu":{}}}}}}}}}`
	replicas := `{"f:spec":{"f:replicas":{}}}`
	cases := map[string]struct {
		reason string
		policy []string
		live   []metav1.ManagedFieldsEntry
		want   Yields
	}{
		"scale": {
			reason: "an autoscaler needs no permission", live: []metav1.ManagedFieldsEntry{through("scale", managed("hpa", update, replicas))},
			want: Yields{"spec.replicas": "hpa"},
		},
		"not through scale": {reason: "an edit is an edit", live: []metav1.ManagedFieldsEntry{managed("kubectl-edit", update, replicas)}},
		"listed": {
			reason: "what the policy lists is left to anyone", policy: []string{"spec.replicas"},
			live: []metav1.ManagedFieldsEntry{managed("kubectl-edit", update, replicas)}, want: Yields{"spec.replicas": "kubectl-edit"},
		},
		"below": {
			reason: "and what is below it, to the very field", policy: []string{"spec.template.spec.containers[*].resources"},
			live: []metav1.ManagedFieldsEntry{managed("vpa", update, cpu), managed("editor", update, image)},
			want: Yields{"spec.template.spec.containers[name=main].resources.requests.cpu": "vpa"},
		},
		"one item": {
			reason: "items are told apart by their keys", policy: []string{"spec.template.spec.containers[name=side].image"},
			live: []metav1.ManagedFieldsEntry{managed("editor", update, image)},
		},
		"ours too": {
			reason: "who agrees with us took nothing",
			live:   []metav1.ManagedFieldsEntry{through("scale", managed("hpa", update, replicas)), managed(manager, apply, replicas)},
		},
		"not in the manifest": {
			reason: "what we do not set cannot be yielded", policy: []string{"spec.paused"},
			live: []metav1.ManagedFieldsEntry{managed("editor", update, `{"f:spec":{"f:paused":{}}}`)},
		},
		"wiped": {
			reason: "nobody is behind fields from before the first apply", policy: []string{"spec.replicas"},
			live: []metav1.ManagedFieldsEntry{managed(BeforeFirstApply, update, replicas)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Yielding(wanted, tc.live, manager, paths(t, tc.policy...))
			if !maps.Equal(got, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestCut(t *testing.T) {
	manifest := object(t, `{"spec":{"replicas":2,"ports":[{"port":80,"protocol":"TCP","nodePort":1},{"port":80,"protocol":"UDP","nodePort":2}]}}`)
	Cut(manifest, []string{"spec.replicas", "spec.ports[port=80,protocol=UDP].nodePort", "spec.absent", "spec.ports[port=81].nodePort"})
	want := object(t, `{"spec":{"ports":[{"port":80,"protocol":"TCP","nodePort":1},{"port":80,"protocol":"UDP"}]}}`)
	if diff := cmp.Diff(want, manifest); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
