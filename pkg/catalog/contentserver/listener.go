package contentserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// Limits limit the resources that clients can use.
type Limits struct {
	// Connections limits all connections, PerAddress the connections from one address. A further
	// connection is closed at once.
	Connections, PerAddress int
	// Header limits the time in which a request must arrive. Idle limits the time of a connection
	// without a request.
	Header, Idle time.Duration
	// Stall limits the time in which a client reads no byte of an answer. Answer limits the time of
	// a whole answer.
	Stall, Answer time.Duration
	// Stop is the longest time that an answer continues after the process starts to stop.
	Stop time.Duration
}

// DefaultLimits are enough for the clients of a large cluster.
func DefaultLimits() Limits {
	return Limits{
		Connections: 256, PerAddress: 64,
		Header: 5 * time.Second, Idle: time.Minute, Stall: 30 * time.Second, Answer: 5 * time.Minute,
		Stop: 2 * time.Second,
	}
}

const maxHeader = 16 << 10

// Listen opens the port before Serve, because the URLs of catalogs contain the port.
func Listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on --catalog-addr %s: %w", address, err)
	}
	return listener, nil
}

// Serve serves until ctx ends. Config has the certificate.
func Serve(ctx context.Context, listener net.Listener, config *tls.Config, next http.Handler, limits Limits) error {
	config = config.Clone()
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	// As in catalogd, HTTP/2 is off: many streams on one connection would bypass the limits of
	// connections.
	config.NextProtos = []string{"http/1.1"}
	server := &http.Server{
		Handler:           paced(next, limits),
		ReadHeaderTimeout: limits.Header, ReadTimeout: limits.Header, IdleTimeout: limits.Idle,
		WriteTimeout:   limits.Answer,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       klog.NewStandardLogger("INFO"),
		BaseContext:    func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.Stop)
		defer cancel()
		if server.Shutdown(bounded) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(tls.NewListener(newLimited(listener, limits), config))
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the content of catalogs: %w", err)
}

// paced limits the time of answers, so that a client that does not read cannot block them forever.
func paced(next http.Handler, limits Limits) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&pacedWriter{ResponseWriter: w, control: http.NewResponseController(w), limits: limits, end: time.Now().Add(limits.Answer)}, r)
	})
}

type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	limits  Limits
	end     time.Time
}

// Write sets a new deadline for each part of an answer.
func (w *pacedWriter) Write(content []byte) (int, error) {
	until := time.Now().Add(w.limits.Stall)
	if until.After(w.end) {
		until = w.end
	}
	if err := w.control.SetWriteDeadline(until); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(content)
}

// Unwrap returns the inner writer, for http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type limited struct {
	net.Listener
	limits Limits

	mu   sync.Mutex
	open int
	from map[string]int
}

func newLimited(listener net.Listener, limits Limits) *limited {
	return &limited{Listener: listener, limits: limits, from: map[string]int{}}
}

// Accept returns the next connection within the limits.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address, _, err := net.SplitHostPort(conn.RemoteAddr().String())
		if err == nil && l.enter(address) {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { l.leave(address) })}, nil
		}
		_ = conn.Close()
	}
}

func (l *limited) enter(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.limits.Connections || l.from[address] >= l.limits.PerAddress {
		return false
	}
	l.open++
	l.from[address]++
	return true
}

func (l *limited) leave(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.from[address]--; l.from[address] == 0 {
		delete(l.from, address)
	}
}

type counted struct {
	net.Conn
	leave func()
}

// Close closes the connection and stops counting it.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
