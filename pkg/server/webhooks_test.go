package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestWithWebhooks: reviews are answered before all other handlers, at their exact paths.
func TestWithWebhooks(t *testing.T) {
	says := func(what string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, what) })
	}
	handler := withWebhooks(says("chain"), map[string]http.Handler{"/webhooks/governed": says("webhook")})
	for path, want := range map[string]string{
		"/webhooks/governed":            "webhook",
		"/webhooks/governed?timeout=3s": "webhook",
		"/webhooks/governed/":           "chain",
		"/webhooks/governed/x":          "chain",
		"/webhooks//governed":           "chain",
		"/webhooks/Governed":            "chain",
		"/webhooks":                     "chain",
		"/":                             "chain",
	} {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, path, nil))
		if got := recorder.Body.String(); got != want {
			t.Errorf("%s is answered by the %s, want the %s", path, got, want)
		}
	}
}
