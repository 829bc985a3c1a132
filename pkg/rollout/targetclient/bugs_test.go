package targetclient

import (
	"errors"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Test numbers are those of docs/reference/conformance.md, which lists bugs of other engines.

// TestB1NewKindsAreFound: a kind that is served later is found without a restart.
func TestB1NewKindsAreFound(t *testing.T) {
	installed := false
	server := &fakeServer{answer: func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/example.com/v1" || !installed {
			http.NotFound(w, r)
			return
		}
		reply(w, http.StatusOK, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "example.com/v1",
			APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget", Namespaced: true}}})
	}}
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	c := serve(t, server, now, 0)
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	if _, err := c.Mapping(t.Context(), widget); !meta.IsNoMatchError(err) {
		t.Fatalf("before it is installed: %v", err)
	}
	installed = true
	now.Step(unknownFor + time.Second)
	if _, err := c.Mapping(t.Context(), widget); err != nil {
		t.Errorf("after it was installed: %v", err)
	}
}

// TestB7ScopeIsThatOfTheKind: objects of cluster-scoped kinds are applied without a namespace.
func TestB7ScopeIsThatOfTheKind(t *testing.T) {
	for name, ref := range map[string]manifest.Ref{"/api/v1/namespaces/a": namespace("a"), "/api/v1/namespaces/n/configmaps/a": configMap("n", "a")} {
		server := &fakeServer{answer: func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusCreated, partial("a")) }}
		c := serve(t, server, clock.RealClock{}, 0)
		if _, err := c.Apply(t.Context(), ref, []byte(`{"metadata":{"name":"a"}}`), ApplyOptions{FieldManager: "m", CreateOnly: true}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if sent := server.seen(); len(sent) != 1 || sent[0].Path != name {
			t.Errorf("sent were %v, want %s", sent, name)
		}
	}
}

// TestB9DiscoveryFailureIsAnError: a failed discovery is an error. It neither crashes nor means
// that a kind is not served.
func TestB9DiscoveryFailureIsAnError(t *testing.T) {
	server := &fakeServer{answer: func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusForbidden, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden})
	}}
	c := serve(t, server, clock.RealClock{}, 0)
	_, err := c.Mapping(t.Context(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	var discovery *DiscoveryError
	if !errors.As(err, &discovery) || meta.IsNoMatchError(err) || !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}

// TestB11NothingIsWrittenUnguarded: a write never overwrites a change after the read, because every
// write has a precondition.
func TestB11NothingIsWrittenUnguarded(t *testing.T) {
	server := &fakeServer{}
	c := serve(t, server, clock.RealClock{}, 0)
	_, apply := c.Apply(t.Context(), configMap("n", "a"), []byte(`{}`), ApplyOptions{FieldManager: "m", UID: "u"})
	_, reassign := c.Reassign(t.Context(), configMap("n", "a"), Precondition{UID: "u"}, nil)
	for what, err := range map[string]error{
		"apply": apply, "reassign": reassign,
		"release": c.Release(t.Context(), configMap("n", "a"), Precondition{UID: "u"}, Marks{FieldManager: "m"}),
		"delete":  c.Delete(t.Context(), configMap("n", "a"), Precondition{UID: "u"}),
	} {
		var unguarded *UnguardedError
		if !errors.As(err, &unguarded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if sent := server.seen(); len(sent) > 0 {
		t.Errorf("sent were %v", sent)
	}
}
