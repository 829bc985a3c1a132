package chartkind

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/controller/maker"
)

// TestIsAskedFor: an edit of the custom resource releases only its own change, and no change of its
// ChartKind.
func TestIsAskedFor(t *testing.T) {
	spec := chartkind.Spec{Chart: chartkind.Chart{Ref: "r.example/lamp:1"}, Values: []chartkind.Value{{To: "size", From: "spec.size"}}, Overrides: map[string]any{"a": "b"}}
	const pinned = "r.example/lamp:1@sha256:aa"
	of := (&served{spec: spec, chart: &Pulled{Reference: pinned}}).settings()
	for name, tc := range map[string]struct {
		reason  string
		pinned  string
		spec    func(*chartkind.Spec)
		without bool
		made    string
		want    bool
	}{
		"Edited":     {"somebody edited the custom resource", pinned, nil, false, "1", true},
		"NotEdited":  {"nobody edited it", pinned, nil, false, "2", false},
		"OtherChart": {"the chart is another one", "r.example/lamp:2@sha256:bb", nil, false, "1", false},
		"Overrides":  {"the ChartKind gives other values", pinned, func(s *chartkind.Spec) { s.Overrides = map[string]any{"a": "c"} }, false, "1", false},
		"Values":     {"the ChartKind reads other fields", pinned, func(s *chartkind.Spec) { s.Values[0].From = "spec.other" }, false, "1", false},
		"Namespace":  {"its objects are elsewhere", pinned, func(s *chartkind.Spec) { s.Namespace = "other" }, false, "1", false},
		"Policy":     {"the policy is no content", pinned, func(s *chartkind.Spec) { s.HoldOn, s.ProgressDeadlineMinutes = []string{"Image"}, 7 }, false, "1", true},
		"Before":     {"a revision that does not say it is reviewed", pinned, nil, true, "1", false},
	} {
		changed := spec
		changed.Values = []chartkind.Value{spec.Values[0]}
		if tc.spec != nil {
			tc.spec(&changed)
		}
		object := &unstructured.Unstructured{}
		object.SetGeneration(2)
		object.SetUID("u")
		newest := olmv1alpha1.ClusterExtensionRevision{}
		newest.Annotations = map[string]string{chartkind.UIDAnnotation: "u", chartkind.GenerationAnnotation: tc.made, chartkind.SettingsAnnotation: of, olmv1alpha1.ReferenceAnnotation: pinned}
		if tc.without {
			delete(newest.Annotations, chartkind.SettingsAnnotation)
		}
		s := &scope{served: &served{spec: changed, chart: &Pulled{Reference: tc.pinned}}, object: object}
		s.Chain = maker.Chain{Revisions: []olmv1alpha1.ClusterExtensionRevision{newest}, Rules: maker.Rules{NeverApproved: neverApproved}}
		if got := s.isRequested(); got != tc.want {
			t.Errorf("%s: %s: it is asked for: %v", name, tc.reason, got)
		}
	}
}
