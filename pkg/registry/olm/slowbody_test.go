package olm_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/requestbody"
)

// bodyLimit is the program's limit of a body, in bytes.
const bodyLimit = 64 << 20

// TestSlowBodies: a client that announces large bodies and sends nothing does not block other
// clients. It gets an error after some time, and its connection is closed.
func TestSlowBodies(t *testing.T) {
	const connections = 100
	s := newServer(t, settings{maxBodyBytes: bodyLimit, budget: requestbody.NewBudget(256 << 20), patience: 5 * time.Second})
	secure := httptest.NewUnstartedServer(s.handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)

	for i, open := range []func(n int) <-chan outcome{
		func(int) <-chan outcome { return openPlain(t, s.url) },
		func(int) <-chan outcome { return openStream(t, secure) },
	} {
		name := []string{"HTTP1", "HTTP2"}[i]
		t.Run(name, func(t *testing.T) {
			large := func(name string) object {
				return file(name, inline(configMap("a", strings.Repeat("x", 900<<10))))
			}
			start := time.Now()
			s.create(large(fmt.Sprintf("calm%d-1", i))).want(t, http.StatusCreated)
			calm := time.Since(start)
			var answers []<-chan outcome
			for n := range connections {
				answers = append(answers, open(n))
			}
			start = time.Now()
			s.create(large(fmt.Sprintf("e%d-1", i))).want(t, http.StatusCreated)
			// A client that waits for the errors of the slow clients would also wait for the
			// patience of 5 s.
			if took := time.Since(start); took > max(4*time.Second, calm+3*time.Second) {
				t.Errorf("another user's create took %s, and %s when nobody was silent", took, calm)
			}
			allowed := map[int]bool{http.StatusRequestTimeout: true, http.StatusTooManyRequests: true}
			if name == "HTTP1" {
				// The server treats a failed read as a disconnected client. The library then ends
				// the request, perhaps before its answer.
				allowed[0], allowed[http.StatusGatewayTimeout] = true, true
			}
			for _, c := range answers {
				select {
				case got := <-c:
					if !got.ended || !allowed[got.code] {
						t.Fatalf("a body that did not come: answer %d, connection or stream ended %t", got.code, got.ended)
					}
				case <-time.After(30 * time.Second):
					t.Fatal("nobody told that nothing more is waited for")
				}
			}
		})
	}
}

// outcome is the result of a request whose body does not arrive.
type outcome struct {
	code int
	// ended reports that nothing holds the connection or stream any more.
	ended bool
}

const announced = "POST " + revisions + " HTTP/1.1\r\nHost: test\r\nTest-User: mallory\r\nContent-Type: application/json\r\nContent-Length: 67108864\r\n\r\n"

func openPlain(t *testing.T, url string) <-chan outcome {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, announced); err != nil {
		t.Fatal(err)
	}
	got := make(chan outcome, 1)
	go func() {
		reader := bufio.NewReader(conn)
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			got <- outcome{ended: true}
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_, err = reader.ReadByte()
		got <- outcome{code: res.StatusCode, ended: err != nil}
	}()
	return got
}

func openStream(t *testing.T, server *httptest.Server) <-chan outcome {
	t.Helper()
	body, sender := io.Pipe()
	t.Cleanup(func() { _ = sender.Close() })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+revisions, body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = bodyLimit
	req.Header.Set("Test-User", "mallory")
	req.Header.Set("Content-Type", "application/json")
	got := make(chan outcome, 1)
	go func() {
		res, err := server.Client().Do(req)
		if err != nil {
			got <- outcome{}
			return
		}
		_, err = io.Copy(io.Discard, res.Body)
		got <- outcome{code: res.StatusCode, ended: err == nil && res.ProtoMajor == 2}
	}()
	return got
}
