package filters

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestCompression(t *testing.T) {
	large := strings.Repeat(`{"name":"operator-0001-1"},`, 10_000)
	list := &apirequest.RequestInfo{IsResourceRequest: true, Verb: "list"}
	for name, tc := range map[string]struct {
		reason   string
		info     *apirequest.RequestInfo
		accept   string
		body     string
		gzipped  bool
		withheld bool
		off      bool
	}{
		"Large":     {"what takes long on a slow network", list, "gzip", large, true, true, false},
		"OneObject": {"the manifests of a revision are large, too", &apirequest.RequestInfo{IsResourceRequest: true, Verb: "get"}, "gzip", large, true, true, false},
		"Small":     {"nothing is won", list, "gzip", large[:1000], false, true, false},
		"NotAsked":  {"the client would not understand it", list, "", large, false, true, false},
		"Refused":   {"the client says so", list, "gzip;q=0", large, false, true, false},
		"Watch":     {"each event arrives when it is there", &apirequest.RequestInfo{IsResourceRequest: true, Verb: "watch"}, "gzip", large, false, false, false},
		"Discovery": {"the library's handlers have their own way", &apirequest.RequestInfo{Verb: "get"}, "gzip", large, false, false, false},
		"Off":       {"the feature gate says so", list, "gzip", large, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			compress, err := Compression(!tc.off)
			if err != nil {
				t.Fatal(err)
			}
			handler := compress(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if withheld := r.Header.Get("Accept-Encoding") == ""; tc.accept != "" && withheld != tc.withheld {
					t.Errorf("the library is asked for %q: it would compress with its own encoder", r.Header.Get("Accept-Encoding"))
				}
				w.Header().Set("Content-Type", "application/json")
				// The library writes the first byte of a stream separately.
				_, _ = io.WriteString(w, tc.body[:1])
				_, _ = io.WriteString(w, tc.body[1:])
			}))
			request := httptest.NewRequestWithContext(apirequest.WithRequestInfo(t.Context(), tc.info), http.MethodGet, "/", nil)
			if tc.accept != "" {
				request.Header.Set("Accept-Encoding", tc.accept)
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			body := io.Reader(recorder.Body)
			if gzipped := recorder.Header().Get("Content-Encoding") == "gzip"; gzipped != tc.gzipped {
				t.Fatalf("compressed: %t, want %t: %s", gzipped, tc.gzipped, tc.reason)
			} else if gzipped {
				if body, err = gzip.NewReader(body); err != nil {
					t.Fatal(err)
				}
			}
			got, err := io.ReadAll(body)
			if err != nil || string(got) != tc.body {
				t.Errorf("%d bytes arrived, want %d: %v", len(got), len(tc.body), err)
			}
			if request.Header.Get("Accept-Encoding") != tc.accept {
				t.Error("the request of others was changed")
			}
		})
	}
}
