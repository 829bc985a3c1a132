package console

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/penstock-project/penstock/pkg/console/screens"
)

// zipped sends a request like a browser that accepts gzip.
func zipped(t *testing.T, server *httptest.Server, path string) *http.Response {
	t.Helper()
	asked, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked.Header.Set("Accept-Encoding", "gzip, deflate, br, zstd")
	asked.Header.Set("Sec-Fetch-Site", "same-origin")
	asked.Header.Set("Authorization", "Bearer "+testKey)
	asked.Host = testHost
	answer, err := server.Client().Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// TestCompressed: each message of a stream can be read when it is flushed, before the next message.
// Small answers are not compressed, nor are answers to clients without gzip.
func TestCompressed(t *testing.T) {
	next := make(chan string)
	handler, err := compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stream":
			for message := range next {
				_, _ = io.WriteString(w, message+"\n")
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Errorf("flushing: %v", err)
				}
			}
		case "/large":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `"`+strings.Repeat("x", 4*minCompressed)+`"`)
		default:
			screens.Refuse(w, screens.Refusal{Status: http.StatusForbidden, Message: "no"})
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)

	go func() { next <- "first" }()
	answer := zipped(t, server, "/stream")
	if encoding := answer.Header.Get("Content-Encoding"); encoding != "gzip" {
		t.Fatalf("a stream is %q", encoding)
	}
	plain, err := gzip.NewReader(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(plain)
	for i, want := range []string{"first", "second", "the third, and last"} {
		if i > 0 {
			next <- want
		}
		if got, err := lines.ReadString('\n'); err != nil || got != want+"\n" {
			t.Fatalf("message %d: %q, %v, want %q", i, got, err, want)
		}
	}
	close(next)
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}

	for path, want := range map[string]string{"/large": "gzip", "/small": ""} {
		answer := zipped(t, server, path)
		if got := answer.Header.Get("Content-Encoding"); got != want || !strings.Contains(strings.Join(answer.Header.Values("Vary"), ","), "Accept-Encoding") {
			t.Errorf("%s is %q, want %q; Vary %q", path, got, want, answer.Header.Values("Vary"))
		}
	}
	recorded := httptest.NewRecorder()
	handler.ServeHTTP(recorded, httptest.NewRequest(http.MethodGet, "/large", nil))
	if got := recorded.Header().Get("Content-Encoding"); got != "" || !strings.HasPrefix(recorded.Body.String(), `"xxx`) {
		t.Errorf("who accepts nothing gets %q", got)
	}
}

// TestCompressedStream: a compressed stream of the console itself can be read, and ends correctly.
func TestCompressedStream(t *testing.T) {
	console, _ := testConsole(t, nil)
	server := httptest.NewServer(console)
	t.Cleanup(server.Close)
	answer := zipped(t, server, "/api/watch/extensions/shop")
	if encoding := answer.Header.Get("Content-Encoding"); encoding != "gzip" || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s, compressed as %q", answer.Status, encoding)
	}
	plain, err := gzip.NewReader(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(plain)
	if err != nil || !strings.Contains(string(all), `"kind":"error"`) || !strings.Contains(string(all), "jane cannot") {
		t.Errorf("%s, %v", all, err)
	}
}

// TestFirstSnapshot: the first snapshot of the overview of 1,000 extensions is within its budget.
func TestFirstSnapshot(t *testing.T) {
	const budget = 60_000
	rows := &screens.Rows{}
	for n := range 1000 {
		rows.Extensions = append(rows.Extensions, screens.ExtensionRow{
			Name: fmt.Sprintf("extension-%04d", n), Revision: fmt.Sprintf("extension-%04d-%d", n, n%7+1), Version: fmt.Sprintf("%d.%d.%d", n%5, n%11, n%13),
			Signal: screens.NeedsAttention, State: "Collision", Message: fmt.Sprintf("phase deploy: ConfigMap ns-%d/config-%d belongs to another owner, ClusterExtension other-%d", n%50, n*7919%1000, n*104729%1000),
			Do: "remove it from one of the two, or set its collision protection", Since: fmt.Sprintf("2026-11-%02dT%02d:%02d:%02dZ", n%28+1, n%24, n%60, n*37%60), Ready: n % 30, Objects: n % 40,
		})
	}
	handler, err := compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(screens.Message{Kind: "rows", Rows: rows})
	}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	answer := zipped(t, server, "/")
	size, err := io.Copy(io.Discard, answer.Body)
	if err != nil || answer.Header.Get("Content-Encoding") != "gzip" || size > budget {
		t.Errorf("%d bytes as %q, %v; want gzip of at most %d", size, answer.Header.Get("Content-Encoding"), err, budget)
	}
	t.Logf("%d rows: %d bytes", len(rows.Extensions), size)
}
