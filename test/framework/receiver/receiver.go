// Package receiver is a receiver of notifications for tests and the demo. It listens on an address of
// this machine that is not loopback, because Penstock sends to no loopback address.
package receiver

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/notify"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/port"
)

// Got is a received event.
type Got struct {
	SpecVersion, ID, Source, Type, Subject string
	Data                                   struct {
		Name          string
		Summary       string
		Reason        string
		Counts        map[string]int
		LeftOut       int64
		Notifications []json.RawMessage
	}
	// Body is the request's body. Key is the signing key. Taken is true if the answer was 2xx.
	Body  string `json:"-"`
	Key   string `json:"-"`
	Taken bool   `json:"-"`
}

// Receiver accepts or refuses events.
type Receiver struct {
	// URL is the URL of the receiver.
	URL    string
	roots  []byte
	server *httptest.Server

	mu sync.Mutex
	// status is the answer's status. While hold is open, requests wait.
	status int
	hold   chan struct{}
	keys   []string
	got    []Got
	more   chan struct{}
}

// Start runs a receiver until the test ends. It skips the test if the machine has only loopback
// addresses.
func Start(t testing.TB, keys ...string) *Receiver {
	t.Helper()
	r, err := Run(keys...)
	switch {
	case errors.Is(err, port.ErrLoopback):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// Run starts a receiver. It runs until Close.
func Run(keys ...string) (*Receiver, error) {
	listener, err := port.Outside()
	if err != nil {
		return nil, err
	}
	certificate, roots, err := issue(listener.Addr().(*net.TCPAddr).IP)
	if err != nil {
		return nil, err
	}
	r := &Receiver{
		URL: "https://" + listener.Addr().String() + "/token-in-path", roots: roots,
		status: http.StatusNoContent, keys: keys, more: make(chan struct{}),
	}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(r.take))
	_ = r.server.Listener.Close()
	r.server.Listener, r.server.TLS = listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	r.server.StartTLS()
	return r, nil
}

// Close answers the waiting requests and stops the receiver.
func (r *Receiver) Close() {
	r.Answer(http.StatusNoContent)
	r.server.Close()
}

// issue returns a self-signed certificate for an address.
func issue(address net.IP) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{address}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("making a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), nil
}

// Secret returns the manifest of a Secret for this receiver.
func (r *Receiver) Secret(namespace, name, key string) string {
	return Secret(namespace, name, r.URL, key, r.roots)
}

// Secret returns the manifest of the Secret of a receiver.
func Secret(namespace, name, url, key string, roots []byte) string {
	data := fmt.Sprintf("url: %q, key: %q", url, key)
	if len(roots) > 0 {
		data += fmt.Sprintf(", ca.crt: %q", roots)
	}
	return fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {namespace: %s, name: %s, labels: {%s: \"true\"}}, stringData: {%s}}", namespace, name, notify.ReceiverLabel, data)
}

// Answer sets the status of all later answers, also for waiting requests. With 0, requests wait.
func (r *Receiver) Answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hold != nil {
		close(r.hold)
		r.hold = nil
	}
	if r.status = status; status == 0 {
		r.hold = make(chan struct{})
	}
}

func (r *Receiver) take(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	got := Got{Body: string(body)}
	if err := json.Unmarshal(body, &got); err != nil || request.Header.Get("Content-Type") != notify.ContentType {
		http.Error(w, "no CloudEvent", http.StatusBadRequest)
		return
	}
	signature := request.Header.Get(notify.SignatureHeader)
	var at int64
	_, _ = fmt.Sscanf(signature, "t=%d,", &at)
	r.mu.Lock()
	for _, key := range r.keys {
		if notify.Sign([]byte(key), bytes.TrimSpace(body), time.Unix(at, 0)) == signature {
			got.Key = key
		}
	}
	status, hold := r.status, r.hold
	got.Taken = status/100 == 2
	r.got = append(r.got, got)
	close(r.more)
	r.more = make(chan struct{})
	r.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-request.Context().Done():
		}
		return
	}
	w.WriteHeader(status)
}

// Got returns the received events, oldest first.
func (r *Receiver) Got() []Got {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Got(nil), r.got...)
}

// Await returns the first event for which is returns true.
func (r *Receiver) Await(t testing.TB, what string, is func(Got) bool) Got {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), poll.Patience)
	defer cancel()
	got, err := r.Find(ctx, is)
	if err != nil {
		t.Fatalf("%s is not notified of: %v", what, err)
	}
	return got
}

// Find waits for the first event for which is returns true. Its error lists the received events.
func (r *Receiver) Find(ctx context.Context, is func(Got) bool) (Got, error) {
	for {
		r.mu.Lock()
		more := r.more
		r.mu.Unlock()
		all := r.Got()
		for _, got := range all {
			if is(got) {
				return got, nil
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			var seen []string
			for _, got := range all {
				seen = append(seen, fmt.Sprintf("%s %s taken=%t", got.Type, got.Subject, got.Taken))
			}
			return Got{}, fmt.Errorf("%w; these events were received:\n%s", ctx.Err(), strings.Join(seen, "\n"))
		}
	}
}

// Of returns a condition for Await: an event type, the name of an object, and whether the event was
// taken.
func Of(kind, name string, taken bool) func(Got) bool {
	return func(got Got) bool {
		return got.Type == "dev.penstock."+kind && got.Data.Name == name && got.Taken == taken
	}
}
