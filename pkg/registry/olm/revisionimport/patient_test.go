package revisionimport

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Who sends nothing more is told so, over HTTP/2, as kube-apiserver speaks it; who
// sends all of it is not bothered.
func TestPatient(t *testing.T) {
	errs := make(chan error, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, err := io.Copy(io.Discard, newPatient(w, req, 50*time.Millisecond))
		errs <- err
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestTimeout)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	send := func(body io.Reader) (int, string) {
		t.Helper()
		res, err := server.Client().Post(server.URL, "application/octet-stream", body)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(raw)
	}

	body, sender := io.Pipe()
	t.Cleanup(func() { _ = sender.Close() })
	go func() { _, _ = sender.Write([]byte("half of it")) }()
	code, text := send(body)
	if err := <-errs; code != http.StatusRequestTimeout || apierrors.ReasonForError(err) != "Timeout" || !strings.Contains(text, "nothing of the archive came for 50ms") {
		t.Errorf("%d %s, error %v", code, text, err)
	}
	code, text = send(strings.NewReader("all of it"))
	if err := <-errs; code != http.StatusOK || err != nil {
		t.Errorf("%d %s, error %v", code, text, err)
	}
}
