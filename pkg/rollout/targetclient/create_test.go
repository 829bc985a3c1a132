package targetclient

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// TestSelfTest uses servers that treat an apply with resourceVersion "1" differently.
func TestSelfTest(t *testing.T) {
	kind := schema.GroupResource{Resource: "configmaps"}
	conflict := status(apierrors.NewConflict(kind, "a", errors.New("changed")))
	bad := status(apierrors.NewBadRequest("resourceVersion should not be set on objects to be created"))
	forbidden := status(apierrors.NewForbidden(kind, "a", errors.New("no")))
	busy := status(apierrors.NewServiceUnavailable("starting"))
	fine := func(w http.ResponseWriter, r *http.Request) { reply(w, http.StatusOK, partial("a")) }
	cases := map[string]struct {
		reason           string
		existing, absent http.HandlerFunc
		wantPost         bool
		wantErr          bool
		untestable       bool
	}{
		"Holds":            {"what exists is refused, what does not is created", conflict, fine, false, false, false},
		"Overwrites":       {"the worst case: it would overwrite what exists", fine, fine, true, false, false},
		"RefusesToCreate":  {"it could never create anything", conflict, bad, true, false, false},
		"ConflictOnCreate": {"as above", conflict, conflict, true, false, false},
		"Forbidden":        {"not allowed to find out is not an answer", forbidden, fine, false, true, true},
		"RefusesDryRun":    {"a webhook that cannot be asked for dry-runs", bad, bad, false, true, true},
		"Busy":             {"this may go away by itself", busy, fine, false, true, false},
		"ForbiddenCreate":  {"nor is this", conflict, forbidden, false, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &fakeServer{answer: func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodGet:
					reply(w, http.StatusOK, metav1.PartialObjectMetadataList{
						TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
						Items:    []metav1.PartialObjectMetadata{partial("existing")},
					})
				case strings.HasSuffix(r.URL.Path, "/existing"):
					tc.existing(w, r)
				default:
					tc.absent(w, r)
				}
			}}
			c := serve(t, server, clock.RealClock{}, 0)
			err := c.SelfTest(context.Background())
			var untestable *UntestableError
			if (err != nil) != tc.wantErr || errors.As(err, &untestable) != tc.untestable {
				t.Errorf("%s: error: %v", tc.reason, err)
			}
			if c.PostsCreates() != tc.wantPost {
				t.Errorf("%s: want fallback to POST %t, got %t", tc.reason, tc.wantPost, c.PostsCreates())
			}
			for _, sent := range server.seen() {
				if sent.Method != http.MethodGet && !strings.Contains(sent.Query, "dryRun=All") {
					t.Errorf("the self-test must store nothing, but sent %v", sent)
				}
			}
		})
	}
}

func TestPostFallback(t *testing.T) {
	created := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "5",
		"managedFields": []any{map[string]any{
			"manager": "penstock/x", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:data": map[string]any{}},
		}},
	}}
	server := &fakeServer{answer: func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			reply(w, http.StatusCreated, created)
			return
		}
		reply(w, http.StatusOK, partial("a"))
	}}
	c := serve(t, server, clock.RealClock{}, 0)
	c.UsePosts()
	body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"}}`)
	got, err := c.Apply(context.Background(), configMap("ns", "a"), body, ApplyOptions{FieldManager: "penstock/x", CreateOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if got.ResourceVersion != "7" || got.Kind != "ConfigMap" {
		t.Errorf("want the metadata after the second request, got %v", got)
	}
	var methods []string
	for _, sent := range server.seen() {
		methods = append(methods, sent.Method+" "+sent.ContentType)
	}
	if diff := cmp.Diff([]string{"POST application/json", "PATCH application/json-patch+json"}, methods); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if upgrade := server.seen()[1].Body; !strings.Contains(upgrade, `"operation":"Apply"`) || !strings.Contains(upgrade, `"5"`) {
		t.Errorf("the second request makes an Apply entry, guarded by the resourceVersion: %s", upgrade)
	}
}
