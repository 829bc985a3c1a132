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
	// dialTimeout bounds the wait for a connection, handshakeTimeout that for its
	// encryption: what is not there must be found out before anybody gives up.
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	// mostAnswer bounds an answer that is no stream, in bytes. Lists are of Penstock's own objects.
	mostAnswer = 64 << 20
	// mostEvent bounds one event of a watch in JSON, in bytes. It is client-go's own bound, which holds
	// for other encodings only: its JSON decoder first reads an event whole.
	mostEvent = 16 << 20
)

// errNowhere is the error of requests before the link has a target.
var errNowhere = errors.New("the way to the target cluster is not known yet")

// LostError reports that the target cluster cannot be reached by any request.
type LostError struct{ Why error }

func (e *LostError) Error() string { return "no way to the target cluster: " + e.Why.Error() }

// Unwrap returns why.
func (e *LostError) Unwrap() error { return e.Why }

// Link is a connection to a cluster that can be replaced at any time. Clients are created once from
// its Config; each request goes to the cluster of that moment.
type Link struct {
	mu  sync.RWMutex
	now *way
	// lost is the reason why the link has no target.
	lost error
}

// way is one place where the link leads.
type way struct {
	base      *url.URL
	transport http.RoundTripper
	dialer    *connrotation.Dialer
	idle      func()
}

// NewLink returns a link that leads nowhere yet.
func NewLink() *Link { return &Link{lost: errNowhere} }

// Config returns a configuration for clients whose requests use the link. It has no credentials.
func (l *Link) Config() *rest.Config {
	// The name is for errors of clients; it is never looked up.
	return &rest.Config{Host: "https://target-cluster", Transport: l, QPS: -1}
}

// Lead connects the link to the cluster of a configuration. It closes earlier connections,
// including watches; their users must start over.
func (l *Link) Lead(config *rest.Config) error {
	next, err := newWay(config)
	if err != nil {
		return err
	}
	l.turn(next, nil)
	return nil
}

// Lose makes the link lead nowhere; all requests fail with the reason.
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

// RoundTrip implements http.RoundTripper. Redirects use the link, too, so they cannot reach another
// server.
func (l *Link) RoundTrip(request *http.Request) (*http.Response, error) {
	l.mu.RLock()
	now, lost := l.now, l.lost
	l.mu.RUnlock()
	if now == nil {
		if request.Body != nil {
			_ = request.Body.Close() // as a RoundTripper has to; it was not sent
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

// bounded is the body of an answer, which clients read whole into memory.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read fails behind the last byte that an answer can have.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the target cluster answers with more than %d MiB", mostAnswer>>20)
	}
	return n, err
}

// events is the body of a watch in JSON. Clients read each event whole into memory.
type events struct {
	io.ReadCloser
	// size of what was read since the last event ended.
	size int
	// depth of open objects and lists; inText and escaped are about the last byte.
	depth           int
	inText, escaped bool
}

// Read fails within an event that is too large.
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

// newWay has connections of its own: those that client-go shares are never closed.
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
