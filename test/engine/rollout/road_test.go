//go:build integration

package rollout_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// road is a proxy to kube-apiserver. A test can intercept the requests of a chain's processes,
// answer them, or cut the connection.
type road struct {
	t      testing.TB
	server *httptest.Server
	next   http.RoundTripper

	mu sync.Mutex
	// meet is called with every request. A response that it returns is the answer.
	meet func(*http.Request) *http.Response
	// answered may change an answer.
	answered func(*http.Response)
	cut      bool
	// turned counts the refused connections. passed counts the requests that passed.
	turned, passed int
}

// newRoad starts a proxy to the cluster of config.
func newRoad(t testing.TB, config *rest.Config) *road {
	t.Helper()
	upstream, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	next, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	r := &road{t: t, next: next}
	r.server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(upstream)
			p.Out.Host = ""
		},
		Transport:     r,
		FlushInterval: -1, // flush watch events at once
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	r.server.Listener = &barrier{Listener: r.server.Listener, closed: r.turn}
	r.server.Start()
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

// config returns a client configuration for the proxy. User agents are kept, so the audit log still
// identifies the requests.
func (r *road) config() *rest.Config { return &rest.Config{Host: r.server.URL} }

// barrier refuses connections while the road is cut.
type barrier struct {
	net.Listener
	closed func() bool
}

func (b *barrier) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil || !b.closed() {
			return conn, err
		}
		conn.Close()
	}
}

func (r *road) turn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut {
		r.turned++
	}
	return r.cut
}

// close cuts the road and ends its connections. open restores it.
func (r *road) close() {
	r.mu.Lock()
	r.cut = true
	r.mu.Unlock()
	r.server.CloseClientConnections()
}

func (r *road) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = false
}

// counts returns the number of refused connections and of passed requests.
func (r *road) counts() (turned, passed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turned, r.passed
}

// meeting sets the function that intercepts requests.
func (r *road) meeting(meet func(*http.Request) *http.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.meet = meet
}

func (r *road) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	meet, answered := r.meet, r.answered
	r.passed++
	r.mu.Unlock()
	if meet != nil {
		if response := meet(request); response != nil {
			response.Request = request
			return response, nil
		}
	}
	response, err := r.next.RoundTrip(request)
	if err == nil && answered != nil {
		answered(response)
	}
	return response, err
}

// reply returns a JSON response.
func reply(code int, header http.Header, body any) *http.Response {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // a mistake in a test
	}
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	return &http.Response{StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: io.NopCloser(bytes.NewReader(raw)), ContentLength: int64(len(raw))}
}

// isWrite reports whether a request is a server-side apply of an object, also as a dry-run.
func isWrite(request *http.Request, name string) bool {
	return request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/"+name)
}

func isDry(request *http.Request) bool { return request.URL.Query().Has("dryRun") }

// forgetManagers makes the server appear as a server that keeps no managedFields.
func (r *road) forgetManagers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.meet = func(request *http.Request) *http.Response {
		if accept := request.Header.Get("Accept"); strings.Contains(accept, "as=PartialObjectMetadata") {
			// Keep only the JSON representation, which this proxy can parse.
			kept := strings.Split(accept, ",")
			for _, one := range kept {
				if strings.Contains(one, "application/json") {
					request.Header.Set("Accept", one)
				}
			}
		} else {
			request.Header.Set("Accept", "application/json")
		}
		request.Header.Set("Accept-Encoding", "identity")
		return nil
	}
	r.answered = func(response *http.Response) {
		if response.StatusCode >= 300 || !strings.Contains(response.Header.Get("Content-Type"), "json") {
			return
		}
		response.Header.Del("Content-Length")
		response.ContentLength = -1
		from := response.Body
		body, to := io.Pipe()
		response.Body = body
		go func() {
			decoder := json.NewDecoder(from)
			decoder.UseNumber()
			for {
				var document any
				err := decoder.Decode(&document)
				if err == nil {
					err = json.NewEncoder(to).Encode(withoutManagers(document))
				}
				if err != nil {
					from.Close()
					to.CloseWithError(err)
					return
				}
			}
		}()
	}
}

func withoutManagers(document any) any {
	switch value := document.(type) {
	case map[string]any:
		for key, inner := range value {
			if key == "managedFields" {
				delete(value, key)
				continue
			}
			value[key] = withoutManagers(inner)
		}
	case []any:
		for i := range value {
			value[i] = withoutManagers(value[i])
		}
	}
	return document
}
