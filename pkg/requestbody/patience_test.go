package requestbody

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestPatience: a client that stops sending gets an error, over HTTP/1 and over HTTP/2 (used by
// kube-apiserver). A client that pauses and then completes its body gets none.
func TestPatience(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			errs := make(chan error, 1)
			server := httptest.NewUnstartedServer(WithPatience(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if _, err := io.Copy(io.Discard, req.Body); err != nil {
					errs <- err
					http.Error(w, err.Error(), http.StatusRequestTimeout)
					return
				}
				errs <- nil
			}), 50*time.Millisecond))
			server.EnableHTTP2 = http2
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
			if err := <-errs; code != http.StatusRequestTimeout || apierrors.ReasonForError(err) != "Timeout" || !strings.Contains(text, "nothing of the body arrived for 50ms") {
				t.Errorf("%d %s, error %v", code, text, err)
			}
			code, text = send(strings.NewReader("all of it"))
			if err := <-errs; code != http.StatusOK || err != nil {
				t.Errorf("%d %s, error %v", code, text, err)
			}
		})
	}
}

// TestPatienceEnds: the server does not wait for a body that the handler does not read. The next
// request on the connection works.
func TestPatienceEnds(t *testing.T) {
	left := make(chan io.Reader, 2)
	server := httptest.NewServer(WithPatience(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPut {
			_, _ = io.ReadAll(req.Body)
			return
		}
		left <- req.Body
	}), time.Minute))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	reader := bufio.NewReader(conn)
	for _, text := range []string{
		"PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nabc",
	} {
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(reader, nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%v %v", res, err)
		}
	}
	if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection goes on without its body: %v", err)
	}
	if _, err := (<-left).Read(make([]byte, 1)); err == nil {
		t.Error("a body can be read when its request is over")
	}
}
