package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/notify"
)

const key = "0123456789abcdef"

// deliver sends a body to the receiver as Penstock does. It returns the answer's status and the
// request that the receiver sent.
func deliver(t *testing.T, kind string, body []byte, signature string) (int, string) {
	t.Helper()
	got := ""
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		got = r.URL.Path + " " + string(content)
	}))
	defer to.Close()
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	request.Header.Set(notify.SignatureHeader, signature)
	answer := httptest.NewRecorder()
	handler(kind, to.URL, []byte(key))(answer, request)
	return answer.Code, got
}

func body(t *testing.T, kind notify.Type, name string) []byte {
	t.Helper()
	subject := notify.Subject{Kind: "ClusterExtensionRevision", Name: name, UID: name, Extension: "argocd"}
	raw, err := notify.Encode(notify.Of("s", subject, notify.Fact{Type: kind, Reason: "Proposed"}))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestReceiver(t *testing.T) {
	waiting := body(t, notify.WaitingForApproval, "argocd-2")
	many, err := notify.Encode(notify.Summary("s", "r", 1, 2, []json.RawMessage{waiting, body(t, notify.Failed, "other-1")}, 0, time.Unix(0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		kind  string
		body  []byte
		says  []string
		never string
	}{
		"chat":                 {"chat", waiting, []string{`{"text":"Penstock waits for approval of revision argocd-2\nkubectl penstock upgrade argocd"}`}, ""},
		"alert":                {"alertmanager", waiting, []string{"/api/v2/alerts ", `"alertname":"PenstockWaitingForApproval"`, `"name":"argocd-2"`}, ""},
		"many alerts":          {"alertmanager", many, []string{`"name":"argocd-2"`, `"name":"other-1"`, `"alertname":"PenstockSummary"`}, ""},
		"many in the chat":     {"chat", many, []string{"2 notifications: 1 Failed, 1 WaitingForApproval"}, ""},
		"complete is no alert": {"alertmanager", body(t, notify.Completed, "argocd-2"), nil, "alertname"},
	} {
		code, got := deliver(t, tc.kind, tc.body, notify.Sign([]byte(key), tc.body, time.Now()))
		if code != http.StatusNoContent {
			t.Errorf("%s: answered %d", name, code)
		}
		for _, text := range tc.says {
			if !strings.Contains(got, text) {
				t.Errorf("%s: %s has no %s", name, got, text)
			}
		}
		if tc.never != "" && strings.Contains(got, tc.never) {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, signature := range map[string]string{
		"nobody": "", "another key": notify.Sign([]byte("another key"), waiting, time.Now()), "another body": notify.Sign([]byte(key), many, time.Now()),
		"an old one": notify.Sign([]byte(key), waiting, time.Now().Add(-time.Hour)),
	} {
		if code, got := deliver(t, "chat", waiting, signature); code != http.StatusUnauthorized || got != "" {
			t.Errorf("signed by %s: answered %d, and passed on %q", name, code, got)
		}
	}
}

// TestPage: the documentation page shows this program.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/how-to/be-told.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "../../artifacts/examples/receiver/main.go") {
		t.Error("docs/how-to/be-told.md does not lead to this program")
	}
}
