//go:build integration

package smoke_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/penstock-project/penstock/pkg/console/screens"
	"github.com/penstock-project/penstock/test/framework/plugin"
)

// console: a browser reads a diff, and rolls out exactly the revision that it showed. The console
// answers only requests with the key in its address.
func console(s scenario) {
	s.roll(s.revision(1).Phase("all", s.configMap("settings", "x=1")))
	s.Create(s.revision(2).Phase("all", s.configMap("settings", "x=2")).With("lifecycleState", "Paused").String())
	opened := plugin.OpenConsole(s.t, s.cluster.Kubeconfig(), "kubectl penstock console")
	ask := func(key string, want int, method, path string, body any) string {
		s.t.Helper()
		sent := ""
		if body != nil {
			content, err := json.Marshal(body)
			if err != nil {
				s.t.Fatal(err)
			}
			sent = string(content)
		}
		request, err := http.NewRequestWithContext(s.t.Context(), method, opened.Origin+path, strings.NewReader(sent))
		if err != nil {
			s.t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			s.t.Fatal(err)
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != want {
			s.t.Errorf("%s %s: got %d (%v) %s, want %d", method, path, response.StatusCode, err, content, want)
		}
		return string(content)
	}
	ask("guessed", http.StatusUnauthorized, http.MethodGet, "/api/me", nil)
	s.Says(ask(opened.Key, http.StatusOK, http.MethodGet, "/", nil), "<html", "/app/main.js")
	s.Says(ask(opened.Key, http.StatusOK, http.MethodGet, "/api/me", nil), "admin")
	s.Says(ask(opened.Key, http.StatusOK, http.MethodGet, "/api/diffs/console-1..console-2", nil), "settings", "+  x: \\\"2\\\"")

	read := s.Get("cer/console-2")
	state := screens.StateRequest{UID: string(read.GetUID()), Generation: read.GetGeneration() + 1, State: "Active"}
	ask(opened.Key, http.StatusConflict, http.MethodPost, "/api/revisions/console-2/state", state)
	s.Is("cer/console-2", ".spec.lifecycleState", "Paused")
	state.Generation = read.GetGeneration()
	ask(opened.Key, http.StatusOK, http.MethodPost, "/api/revisions/console-2/state", state)
	s.succeeds("cer/console-2")
	s.Is("configmap/settings", ".data.x", "2")
	s.Says(ask(opened.Key, http.StatusOK, http.MethodGet, "/api/histories/console", nil), fmt.Sprintf("%q", "console-2"))
}
