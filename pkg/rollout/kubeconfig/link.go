package kubeconfig

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

const (
	// dialTimeout limits the wait for a connection, handshakeTimeout the TLS handshake. An
	// unreachable cluster must be noticed before callers give up.
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	// mostAnswer is the largest size of an answer that is no stream, in bytes. Lists contain only
	// Penstock's own objects.
	mostAnswer = 64 << 20
	// mostEvent is the largest size of a watch event in JSON, in bytes. client-go has the same
	// limit, but not for JSON: its JSON decoder first reads the whole event.
	mostEvent = 16 << 20
)

var errNowhere = errors.New("the way to the target cluster is not known yet")

// LostError reports that the target cluster cannot be reached by any request.
type LostError struct{ Why error }

func (e *LostError) Error() string { return "no way to the target cluster: " + e.Why.Error() }

// Unwrap returns the reason.
func (e *LostError) Unwrap() error { return e.Why }

// Link is a connection to a cluster that can be replaced at any time. Clients are created once from
// its Config; each request is sent to the current cluster.
type Link struct {
	mu  sync.RWMutex
	now *way
	// lost is the reason why the link has no target.
	lost error
}

// way is the connection to one cluster.
type way struct {
	base      *url.URL
	transport http.RoundTripper
	dialer    *connrotation.Dialer
	idle      func()
}

// NewLink returns a link without a target.
func NewLink() *Link { return &Link{lost: errNowhere} }

// Config returns a configuration for clients whose requests use the link. It has no credentials.
func (l *Link) Config() *rest.Config {
	// The name is only for errors of clients; it is never looked up.
	return &rest.Config{Host: "https://target-cluster", Transport: l, QPS: -1}
}

// Lead connects the link to the cluster of a configuration. It closes earlier connections,
// including watches, which their users must restart.
func (l *Link) Lead(config *rest.Config) error {
	next, err := newWay(config)
	if err != nil {
		return err
	}
	l.turn(next, nil)
	return nil
}

// Lose removes the target of the link; all requests then fail with the reason.
func (l *Link) Lose(why error) { l.turn(nil, why) }

func (l *Link) turn(next *way, why error) {
	l.mu.Lock()
	before := l.now
	l.now, l.lost = next, why
	l.mu.Unlock()
	if before != nil {
		before.idle()
		before.dialer.CloseAll()
	}
}

// RoundTrip implements http.RoundTripper. Redirects use the link too, so they cannot reach another
// server.
func (l *Link) RoundTrip(request *http.Request) (*http.Response, error) {
	l.mu.RLock()
	now, lost := l.now, l.lost
	l.mu.RUnlock()
	if now == nil {
		if request.Body != nil {
			_ = request.Body.Close() // a RoundTripper must close the body, even if it does not send it
		}
		return nil, &LostError{lost}
	}
	sent := request.Clone(request.Context())
	sent.URL.Scheme, sent.URL.Host, sent.Host = now.base.Scheme, now.base.Host, ""
	if prefix := strings.TrimSuffix(now.base.Path, "/"); prefix != "" {
		sent.URL.Path = prefix + sent.URL.Path
		if sent.URL.RawPath != "" {
			sent.URL.RawPath = prefix + sent.URL.RawPath
		}
	}
	response, err := now.transport.RoundTrip(sent)
	switch {
	case err != nil:
	case sent.URL.Query().Get("watch") != "true":
		response.Body = &bounded{response.Body, mostAnswer}
	case !strings.HasPrefix(response.Header.Get("Content-Type"), runtime.ContentTypeProtobuf):
		response.Body = &events{ReadCloser: response.Body}
	}
	return response, err
}

// bounded is the body of an answer, with a limited size, because clients read it whole into memory.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read fails after the largest allowed size.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the target cluster answers with more than %d MiB", mostAnswer>>20)
	}
	return n, err
}

// events is the body of a JSON watch, with a limited size of each event, because clients read an
// event whole into memory.
type events struct {
	io.ReadCloser
	// size of the current event so far.
	size int
	// depth is the number of open objects and lists; inText and escaped describe the last byte.
	depth           int
	inText, escaped bool
}

// Read fails inside an event that is too large.
func (e *events) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	for _, b := range p[:n] {
		e.size++
		switch {
		case e.escaped:
			e.escaped = false
		case e.inText:
			e.escaped, e.inText = b == '\\', b != '"'
		case b == '"':
			e.inText = true
		case b == '{', b == '[':
			e.depth++
		case b == '}', b == ']':
			if e.depth--; e.depth == 0 {
				e.size = 0
			}
		}
		if e.size > mostEvent {
			return 0, fmt.Errorf("the target cluster sends an event of more than %d MiB", mostEvent>>20)
		}
	}
	return n, err
}

// newWay uses its own connections: client-go never closes its shared connections.
func newWay(config *rest.Config) (*way, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the target cluster: %w", err)
	}
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates of the target cluster: %w", err)
	}
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext)
	transport := utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     secure,
		TLSHandshakeTimeout: handshakeTimeout,
		DialContext:         dialer.DialContext,
		MaxIdleConnsPerHost: 25,
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials for the target cluster: %w", err)
	}
	return &way{base: base, transport: wrapped, dialer: dialer, idle: transport.CloseIdleConnections}, nil
}
