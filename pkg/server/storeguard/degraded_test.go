package storeguard

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestWithDegraded(t *testing.T) {
	const group = "olm.operatorframework.io"
	resource := func(group, verb string) *request.RequestInfo {
		return &request.RequestInfo{IsResourceRequest: true, APIPrefix: "apis", APIGroup: group, APIVersion: "v1alpha1", Verb: verb}
	}
	cases := map[string]struct {
		reason   string
		degraded string
		info     *request.RequestInfo
		want     int
	}{
		"Healthy": {
			reason: "nothing is in the way",
			info:   resource(group, "list"),
			want:   http.StatusOK,
		},
		"Read": {
			reason:   "what is not in this store may well exist",
			degraded: "the store is empty",
			info:     resource(group, "get"),
			want:     http.StatusServiceUnavailable,
		},
		"Write": {
			reason:   "what is written here would be lost or in the way",
			degraded: "the store is empty",
			info:     resource(group, "create"),
			want:     http.StatusServiceUnavailable,
		},
		"Discovery": {
			reason:   "namespace deletion needs it",
			degraded: "the store is empty",
			info:     &request.RequestInfo{Path: "/apis/" + group + "/v1alpha1", Verb: "get"},
			want:     http.StatusOK,
		},
		"OtherGroup": {
			reason:   "another group does not depend on this store",
			degraded: "the store is empty",
			info:     resource("other.example", "list"),
			want:     http.StatusOK,
		},
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codecs := serializer.NewCodecFactory(scheme)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r = r.WithContext(request.WithRequestInfo(r.Context(), tc.info))
			WithDegraded(next, tc.degraded, sets.New(group), codecs).ServeHTTP(w, r)
			if w.Code != tc.want {
				t.Fatalf("%s: got %d, want %d", tc.reason, w.Code, tc.want)
			}
			if tc.want == http.StatusOK {
				return
			}
			var got metav1.Status
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("the answer is no Status: %v: %s", err, w.Body)
			}
			want := metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status:   metav1.StatusFailure, Code: http.StatusServiceUnavailable,
				Reason: metav1.StatusReasonServiceUnavailable, Message: tc.degraded,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			if after := w.Header().Get("Retry-After"); after != "" {
				t.Errorf("the answer asks to retry after %s", after)
			}
		})
	}
}
