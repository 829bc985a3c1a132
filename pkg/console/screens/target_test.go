package screens

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestTarget: only objects of a plan's items are read. A missing object is reported, and values of
// Secrets are left out.
func TestTarget(t *testing.T) {
	answers := map[string]string{
		"/apis/hco.kubevirt.io/v1alpha1/configurationplans/p": `{"kind":"ConfigurationPlan","apiVersion":"hco.kubevirt.io/v1alpha1","metadata":{"name":"p"},"status":{"items":[
			{"name":"token","targetRef":{"apiVersion":"v1","kind":"Secret","namespace":"n","name":"s"}},
			{"name":"gone","targetRef":{"apiVersion":"v1","kind":"Secret","namespace":"n","name":"t"}},
			{"name":"a kind","targetRef":{"apiVersion":"v1","kind":"Widget","name":"w"}},
			{"name":"a/group","targetRef":{"apiVersion":"none.example.com/v1","kind":"Widget","name":"w"}}]}}`,
		"/api/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"secrets/odd","kind":"Secret"},{"name":"secrets","kind":"Secret","namespaced":true}]}`,
		"/api/v1/namespaces/n/secrets/s": `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"n","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"password\":\"aHVudGVyMg==\"}}"},"managedFields":[{"manager":"kubectl","operation":"Apply","time":"2026-11-23T10:00:00Z"},
			{"manager":"other","operation":"Update","subresource":"status"}]},"data":{"password":"aHVudGVyMg=="}}`,
	}
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, there := answers[r.URL.Path]
		if !there {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(cluster.Close)
	api, err := New(Options{Config: &rest.Config{Host: cluster.URL}})
	if err != nil {
		t.Fatal(err)
	}
	handler := api.Handler()
	for item, want := range map[string]struct {
		says     string
		managers int
	}{
		"token": {"password: hidden", 2}, "gone": {"", 0}, "a%20kind": {"", 0}, "a%2Fgroup": {"", 0},
	} {
		var found Target
		if code := ask(t, handler, http.MethodGet, "/api/plans/p/items/"+item, "", &found); code != http.StatusOK {
			t.Fatalf("%s: %d", item, code)
		}
		if (want.says == "") != (found.Manifest == "") || !strings.Contains(found.Manifest, want.says) || strings.Contains(found.Manifest, "managedFields") || strings.Contains(found.Manifest, "aHVudGVyMg") || len(found.Managers) != want.managers || found.Ref.Name == "" {
			t.Errorf("%s: %+v", item, found)
		}
	}
	var refusal Refusal
	if code := ask(t, handler, http.MethodGet, "/api/plans/p/items/other", "", &refusal); code != http.StatusNotFound || !strings.Contains(refusal.Message, `no item "other"`) {
		t.Errorf("another item: %d %+v", code, refusal)
	}
}
