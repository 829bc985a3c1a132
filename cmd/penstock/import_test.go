package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/archive"
)

// TestImportAnswers: the server's answer is printed, even if the server sends it before it has read
// the archive.
func TestImportAnswers(t *testing.T) {
	const away = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the store is empty","reason":"ServiceUnavailable","code":503}`
	cases := map[string]struct {
		reason   string
		answers  []string
		status   []int
		want     string
		requests int
	}{
		"Away": {
			reason:   "a server that stays away is asked a few times, and its words are shown",
			answers:  []string{away},
			status:   []int{http.StatusServiceUnavailable},
			want:     "x: the store is empty",
			requests: sendTries,
		},
		"Starting": {
			reason:   "a server that starts is waited for",
			answers:  []string{away, away, `{}`},
			status:   []int{http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusCreated},
			requests: 3,
		},
		"Proxy": {
			reason:   "what somebody in between says is shown",
			answers:  []string{"no endpoints"},
			status:   []int{http.StatusBadGateway},
			want:     "no endpoints",
			requests: 1,
		},
		"Refused": {
			reason:   "a refusal is not repeated",
			answers:  []string{`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"x exists","reason":"Conflict","code":409}`},
			status:   []int{http.StatusConflict},
			want:     "x exists",
			requests: 1,
		},
	}
	large := largeArchive(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				at := min(requests, len(tc.answers)-1)
				requests++
				if tc.status[at] < http.StatusMultipleChoices {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				if strings.HasPrefix(tc.answers[at], "{") {
					w.Header().Set("Content-Type", "application/json")
				}
				w.WriteHeader(tc.status[at])
				_, _ = io.WriteString(w, tc.answers[at])
			}))
			defer server.Close()
			clients, err := versioned.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			i := &importer{
				api: clients.OlmV1alpha1().RESTClient(), heard: &client.Warnings{},
				file: bytes.NewReader(large), out: io.Discard,
			}
			err = i.sendAll(t.Context(), false)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
			if requests != tc.requests {
				t.Errorf("%s: %d requests, want %d", tc.reason, requests, tc.requests)
			}
		})
	}
}

// largeArchive returns an archive larger than the buffers of a connection. So the writer notices if
// the server does not read it.
func largeArchive(t *testing.T) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w, err := archive.NewWriter(&buffer)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Chain(archive.Chain{Name: "x", Revisions: []int64{1}, Highest: 1}); err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 256<<10)
	source := rand.NewChaCha8([32]byte{1})
	var objects []manifest.Object
	for n := range 6 {
		if _, err := source.Read(noise); err != nil {
			t.Fatal(err)
		}
		object, err := manifest.Digester{}.FromJSON(fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m%02d"},"data":{"x":%q}}`,
			n, base64.StdEncoding.EncodeToString(noise)))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	if err := w.Revision(archive.Revision{Number: 1, Spec: []byte(`{}`)}, objects); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}
