package contentserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/penstock-project/penstock/pkg/catalog/content"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

const (
	digest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	lines  = `{"schema":"olm.package","name":"a"}` + "\n" +
		`{"schema":"olm.channel","package":"a","name":"stable","entries":[]}` + "\n" +
		`{"schema":"olm.bundle","package":"a","name":"a.v1"}` + "\n"
)

func made(t *testing.T, text string) *content.Content {
	t.Helper()
	store, err := content.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.Ensure(t.Context(), digest, func(ctx context.Context, found func(*fbc.Document) error) error {
		return fbc.Read(ctx, strings.NewReader(text), "catalog.json", fbc.DefaultLimits(), found)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConformance tests the answers that clients of catalogd rely on.
func TestConformance(t *testing.T) {
	modified := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	served := &Served{Content: made(t, lines), Modified: modified}
	handler := NewHandler(func(name string) *Served {
		if name == "hub" {
			return served
		}
		return nil
	})
	one := strings.SplitAfter(lines, "\n")
	const all, metas = "/catalogs/hub/api/v1/all", "/catalogs/hub/api/v1/metas"
	for name, test := range map[string]struct {
		method, path string
		header       map[string]string
		status       int
		body         string
		answer       map[string]string
	}{
		"All":              {path: all, status: 200, body: lines, answer: map[string]string{"Content-Type": "application/jsonl", "Last-Modified": "Mon, 04 May 2026 03:02:01 GMT", "Content-Length": "156"}},
		"Head":             {method: "HEAD", path: all, status: 200, answer: map[string]string{"Content-Type": "application/jsonl", "Content-Length": "156"}},
		"Compressed":       {path: all, header: map[string]string{"Accept-Encoding": "gzip"}, status: 200, body: lines, answer: map[string]string{"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}},
		"NotCompressed":    {path: all, header: map[string]string{"Accept-Encoding": "gzip;q=0, br"}, status: 200, body: lines, answer: map[string]string{"Content-Encoding": ""}},
		"NotModifiedSince": {path: all, header: map[string]string{"If-Modified-Since": "Mon, 04 May 2026 03:02:01 GMT"}, status: 304},
		"ModifiedSince":    {path: all, header: map[string]string{"If-Modified-Since": "Mon, 04 May 2026 03:02:00 GMT"}, status: 200, body: lines},
		"SameTag":          {path: all, header: map[string]string{"If-None-Match": `"` + digest + `"`}, status: 304},
		"OtherTag":         {path: all, header: map[string]string{"If-None-Match": `"other"`}, status: 200, body: lines},
		"Unmodified":       {path: all, header: map[string]string{"If-Unmodified-Since": "Mon, 04 May 2026 03:02:00 GMT"}, status: 412},
		"Range":            {path: all, header: map[string]string{"Range": "bytes=0-9", "Accept-Encoding": "gzip"}, status: 206, body: lines[:10]},
		"QueryIsIgnored":   {path: all + "?x=y", status: 200, body: lines},
		"Unknown":          {path: "/catalogs/other/api/v1/all", status: 404},
		"UnknownMetas":     {path: "/catalogs/other/api/v1/metas", status: 404},
		"BadName":          {path: "/catalogs/HUB/api/v1/all", status: 400},
		"Path":             {path: "/catalogs/hub/api/v1/other", status: 404},
		"Root":             {path: "/catalogs/hub", status: 404},
		"Post":             {method: "POST", path: all, status: 405},
		"DeleteMetas":      {method: "DELETE", path: metas, status: 405},
		"Metas":            {path: metas, status: 200, body: lines},
		"Schema":           {path: metas + "?schema=olm.bundle", status: 200, body: one[2], answer: map[string]string{"Content-Type": "application/jsonl", "Last-Modified": "Mon, 04 May 2026 03:02:01 GMT"}},
		"SchemaCompressed": {path: metas + "?schema=olm.bundle", header: map[string]string{"Accept-Encoding": "gzip"}, status: 200, body: one[2], answer: map[string]string{"Content-Encoding": "gzip"}},
		"Package":          {path: metas + "?package=a", status: 200, body: one[1] + one[2]},
		"Name":             {path: metas + "?name=a", status: 200, body: one[0]},
		"AllThree":         {path: metas + "?schema=olm.channel&package=a&name=stable", status: 200, body: one[1]},
		"Nothing":          {path: metas + "?name=zzz", status: 200},
		"HeadMetas":        {method: "HEAD", path: metas + "?name=a", status: 200},
		"UnknownParameter": {path: metas + "?version=1", status: 400},
		"MetasNotModified": {path: metas + "?name=a", header: map[string]string{"If-Modified-Since": "Mon, 04 May 2026 03:02:01 GMT"}, status: 304},
		"MetasSameTag":     {path: metas + "?name=a", header: map[string]string{"If-None-Match": `W/"` + digest + `"`}, status: 304},
	} {
		t.Run(name, func(t *testing.T) {
			method := test.method
			if method == "" {
				method = http.MethodGet
			}
			request := httptest.NewRequestWithContext(t.Context(), method, test.path, nil)
			for key, value := range test.header {
				request.Header.Set(key, value)
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			answer := recorder.Result()
			if answer.StatusCode != test.status {
				t.Fatalf("the status is %s, want %d", answer.Status, test.status)
			}
			for key, want := range test.answer {
				if got := answer.Header.Get(key); got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
			if test.status >= 400 {
				return
			}
			from := io.Reader(answer.Body)
			if answer.Header.Get("Content-Encoding") == "gzip" {
				unpacked, err := gzip.NewReader(from)
				if err != nil {
					t.Fatal(err)
				}
				from = unpacked
			}
			got, err := io.ReadAll(from)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.body {
				t.Errorf("the body is %q, want %q", got, test.body)
			}
			for line := range strings.Lines(string(got)) {
				if test.status == 200 && !json.Valid([]byte(line)) {
					t.Errorf("%q is no JSON", line)
				}
			}
		})
	}
}
