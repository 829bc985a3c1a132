package targetclient

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

func TestTrySends(t *testing.T) {
	const path, kind = "/api/v1/namespaces/ns/configmaps/a", "application/apply-patch+yaml"
	const query = "dryRun=All&fieldManager=penstock%2Fx&force=true"
	const body = `{"metadata":{"name":"a","resourceVersion":"99"}}`
	cases := map[string]struct {
		reason  string
		options TryOptions
		want    []request
		refused bool
	}{
		"Present": {
			reason:  "a dry-run of what was judged, as the apply would be",
			options: TryOptions{FieldManager: "penstock/x", Precondition: Precondition{UID: "u", ResourceVersion: "5"}},
			want:    []request{{http.MethodPatch, path, query, kind, `{"metadata":{"name":"a","resourceVersion":"5","uid":"u"}}`}},
		},
		"Absent": {
			reason:  "nothing is stored, so nothing is guarded",
			options: TryOptions{FieldManager: "penstock/x"},
			want:    []request{{http.MethodPatch, path, query, kind, `{"metadata":{"name":"a","resourceVersion":"99"}}`}},
		},
		"WithoutManager": {
			reason: "it would be another apply", options: TryOptions{}, refused: true,
		},
		"WithoutVersion": {
			reason:  "half of a precondition is a mistake",
			options: TryOptions{FieldManager: "penstock/x", Precondition: Precondition{UID: "u"}}, refused: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &fakeServer{answer: func(w http.ResponseWriter, r *http.Request) {
				reply(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "v"}})
			}}
			c := serve(t, server, clock.RealClock{}, 0)
			got, err := c.Try(context.Background(), configMap("ns", "a"), []byte(body), tc.options)
			var unguarded *UnguardedError
			if errors.As(err, &unguarded) != tc.refused || (err != nil) != tc.refused {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if err == nil && got.Object["data"] == nil {
				t.Errorf("%s: the whole object is wanted, got %v", tc.reason, got.Object)
			}
			if diff := cmp.Diff(tc.want, server.seen()); diff != "" {
				t.Errorf("%s: requests (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
