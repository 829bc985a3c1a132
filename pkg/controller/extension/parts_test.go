package extension

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// TestUnsafe: what is not safe is judged again: the definition in the cluster may be another one.
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
	v := &visit{Controller: p.controller()}
	stopped := v.judgeDefinition(t.Context(), "", "lamps.example.com", []byte(content("Namespaced")))
	if stopped == nil || stopped.Result != status.UnsafeDefinitions || !stopped.again || stopped.err != nil {
		t.Errorf("another scope is %+v", stopped)
	}
	if stopped := v.judgeDefinition(t.Context(), "", "lamps.example.com", []byte(content("Cluster"))); stopped != nil {
		t.Errorf("the same is %+v", stopped)
	}
}

// TestHoldBy: the hold of the newest rollback counts, also before it is confirmed, and not that
// of an older one; what was never written holds nobody.
func TestHoldBy(t *testing.T) {
	rollback := &olmv1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "lamp-5", UID: "five"}}
	older, newer := &chain.Hold{Revision: 3, UID: "three", OwnerGeneration: 2}, &chain.Hold{Revision: 5, UID: "five", OwnerGeneration: 7}
	for name, tc := range map[string]struct {
		head chain.Head
		want *chain.Hold
	}{
		"None":         {},
		"Counts":       {chain.Head{Hold: newer}, newer},
		"Pending":      {chain.Head{PendingHold: newer}, newer},
		"AfterAnother": {chain.Head{Hold: older, PendingHold: newer}, newer},
		"NeverWritten": {chain.Head{PendingHold: &chain.Hold{Revision: 6, UID: "six"}}, nil},
	} {
		if got := holdBy(tc.head, rollback); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
	if said := held("lamp-5", 0); strings.Contains(said, "generation") || !strings.Contains(said, "kubectl annotate cer lamp-5") {
		t.Errorf("a hold that ends by release alone says %q", said)
	}
}

// TestRenderingsBound: what is kept to be tried again is bounded in bytes.
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

// TestRights: who may not write a revision is told so, whichever write it was.
func TestRights(t *testing.T) {
	for text, want := range map[string]bool{
		`clusterextensionrevisions.olm.operatorframework.io "lamp-1" is forbidden: User "alice" cannot create resource "clusterextensionrevisions"`: true,
		`clusterextensionrevisions.olm.operatorframework.io "lamp-1" is forbidden: User "alice" cannot patch resource "clusterextensionrevisions"`:  true,
		"a revision may only do what its requester may do: alice may not create configmaps":                                                         true,
		"exceeded quota: requested: count/clusterextensionrevisions=1":                                                                              false,
	} {
		if got := isAboutRights(errors.New(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// TestTakesOver: an annotation for collision protection counts for a revision that is held up, when it
// allows more. An installed revision, and an adoption that may take everything, stay as they are.
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
		if got := takesOver(r, &wish{Collision: tc.asked}); got != tc.want {
			t.Errorf("%+v: got %t", tc, got)
		}
	}
}
