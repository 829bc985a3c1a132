package contentserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// running starts a server with limits, and returns a client that trusts it.
func running(t *testing.T, handler http.Handler, limits Limits) (address string, client *tls.Config) {
	t.Helper()
	// The client trusts only this server's certificate.
	other := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	listener, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, other.TLS, handler, limits) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
	return listener.Addr().String(), &tls.Config{InsecureSkipVerify: true} //nolint:gosec // a test
}

func connect(t *testing.T, address string, config *tls.Config) *tls.Conn {
	t.Helper()
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 30 * time.Second}, Config: config}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*tls.Conn)
}

// TestSlowReader: a client that reads nothing is disconnected, which frees its connection.
func TestSlowReader(t *testing.T) {
	limits := DefaultLimits()
	limits.Stall = 200 * time.Millisecond
	ended := make(chan error, 1)
	endless := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		part := make([]byte, 1<<20)
		for {
			if _, err := w.Write(part); err != nil {
				ended <- err
				return
			}
		}
	})
	address, config := running(t, endless, limits)
	conn := connect(t, address, config)
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("the answer ended with %v, want a timeout", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the answer to a client that reads nothing does not end")
	}
}

// TestSteadyReader: a client that reads slowly gets the whole answer.
func TestSteadyReader(t *testing.T) {
	address, config := running(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 3<<20))
	}), DefaultLimits())
	conn := connect(t, address, config)
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil || len(got) < 3<<20 {
		t.Errorf("read %d bytes: %v", len(got), err)
	}
}

func TestTooManyConnections(t *testing.T) {
	limits := DefaultLimits()
	limits.PerAddress = 2
	address, config := running(t, http.NotFoundHandler(), limits)
	ask := func(conn *tls.Conn) error {
		_, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 16))
		return err
	}
	first, second := connect(t, address, config), connect(t, address, config)
	if err := errors.Join(ask(first), ask(second)); err != nil {
		t.Fatal(err)
	}
	dialer := tls.Dialer{Config: config}
	if conn, err := dialer.DialContext(t.Context(), "tcp", address); err == nil {
		_ = conn.Close()
		t.Error("a third connection from one address was taken")
	}
	// Closing a connection frees it.
	_ = first.Close()
	deadline := time.Now().Add(time.Minute)
	for {
		conn, err := dialer.DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no connection is taken after one has ended: %v", err)
		}
	}
}
