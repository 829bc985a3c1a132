package extension

import (
	"encoding/json"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
)

// TestUnsafe: an unsafe change is checked again, because the definition in the cluster may change.
func TestUnsafe(t *testing.T) {
	p := newPlane(t)
	content := func(kind string) string {
		return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lamps.example.com"},"spec":{"group":"example.com","scope":%q,
"names":{"plural":"lamps","singular":"lamp","kind":"Lamp"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, kind)
	}
	p.live = &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal([]byte(content("Cluster")), p.live); err != nil {
		t.Fatal(err)
	}
	s := &scope{Controller: p.controller()}
	stopped := s.judgeDefinition(t.Context(), "", "lamps.example.com", []byte(content("Namespaced")))
	if stopped == nil || resultOf(stopped) != status.UnsafeDefinitions || !stopped.Again || stopped.Err != nil {
		t.Errorf("another scope is %+v", stopped)
	}
	if stopped := s.judgeDefinition(t.Context(), "", "lamps.example.com", []byte(content("Cluster"))); stopped != nil {
		t.Errorf("the same is %+v", stopped)
	}
}

// TestRenderingsBound: renderings that are cached for retries are bounded in bytes.
func TestRenderingsBound(t *testing.T) {
	r := newRenderings()
	large := &content{Rendered: source.Rendered{Phases: []source.Phase{{Objects: []manifest.Object{{JSON: make([]byte, 10<<20)}}}}}}
	for i := range 8 {
		name := fmt.Sprint(i)
		r.keep(name, "digest", large)
		if r.find(name, "digest") == nil {
			t.Error("what was kept last is not there")
		}
	}
	if len(r.kept) != 3 {
		t.Errorf("%d renderings of 10 MB are kept", len(r.kept))
	}
	small := &content{}
	for i := range 100 {
		r.keep(fmt.Sprintf("small-%d", i), "digest", small)
	}
	if len(r.kept) != 103 {
		t.Errorf("%d renderings are kept", len(r.kept))
	}
}

// TestTakesOver: an annotation for collision protection applies to a revision with a collision, if
// it allows more. An installed revision, and an adoption that may take everything, do not change.
func TestTakesOver(t *testing.T) {
	const prevent, ifNoController, none = olmv1alpha1.CollisionProtectionPrevent, olmv1alpha1.CollisionProtectionIfNoController, olmv1alpha1.CollisionProtectionNone
	for _, tc := range []struct {
		has, asked olmv1alpha1.CollisionProtection
		succeeded  bool
		want       bool
	}{
		{prevent, ifNoController, false, true}, {"", ifNoController, false, true}, {ifNoController, none, false, true},
		{prevent, prevent, false, false}, {"", prevent, false, false}, {none, prevent, false, false}, {none, ifNoController, false, false},
		{prevent, none, true, false},
	} {
		r := &olmv1alpha1.ClusterExtensionRevision{Spec: olmv1alpha1.ClusterExtensionRevisionSpec{CollisionProtection: tc.has}}
		if tc.succeeded {
			r.Status.Conditions = []metav1.Condition{{Type: olmv1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue}}
		}
		if got := takesOver(r, &desired{Collision: tc.asked}); got != tc.want {
			t.Errorf("%+v: got %t", tc, got)
		}
	}
}

// TestIsIn: a revision from before status was kept has the content of its image.
func TestIsIn(t *testing.T) {
	lamp, err := manifest.Parse([]byte(`{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"l"},"status":{"on":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := &scope{Controller: newPlane(t).controller()}
	made := &content{reference: "r.example/lamp@sha256:1"}
	if made.refs, err = s.digests([]source.Phase{{Name: "p", Objects: []manifest.Object{lamp}}}); err != nil {
		t.Fatal(err)
	}
	now, err := s.Digester.FromJSON(lamp.JSON)
	if err != nil {
		t.Fatal(err)
	}
	before, _, err := s.Digester.WithoutStatus(now)
	if err != nil {
		t.Fatal(err)
	}
	for digest, want := range map[manifest.Digest]bool{now.Digest: true, before.Digest: true, "sha256:other": false, "": false} {
		revision := &olmv1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{olmv1alpha1.ReferenceAnnotation: made.reference}}, Spec: olmv1alpha1.ClusterExtensionRevisionSpec{Phases: []olmv1alpha1.RevisionPhase{
			{Name: "p", Objects: []olmv1alpha1.RevisionObject{{APIVersion: "example.com/v1", Kind: "Lamp", Name: "l", Digest: string(digest)}}}}}}
		if got := made.isIn(revision); got != want {
			t.Errorf("the revision with digest %q has the content: %v", digest, got)
		}
		// For another image the content differs, even if only by the status.
		revision.Annotations[olmv1alpha1.ReferenceAnnotation] = "r.example/lamp@sha256:0"
		if got := made.isIn(revision); got != (digest == now.Digest) {
			t.Errorf("the revision of another image with digest %q has the content: %v", digest, got)
		}
	}
}
