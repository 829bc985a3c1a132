package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/outbound"
)

// ReceiverLabel marks the Secret of a receiver, with the value "true".
const ReceiverLabel = "penstock.dev/notification-receiver"

// Keys of the Secret of a receiver.
const (
	urlKey  = "url"
	keyKey  = "key"
	rootKey = "ca.crt"
)

// SignatureHeader has the signature of the body: t=<Unix time>,v1=<hexadecimal HMAC-SHA256 of time,
// dot and body>.
const SignatureHeader = "Penstock-Signature"

const (
	// leastKey is the minimum length of a signature's key, in bytes.
	leastKey = 16
	// maxRetryAfter bounds the delay that a receiver can request.
	maxRetryAfter = time.Hour
)

// Receiver is an endpoint for notifications, as its Secret configures it.
type Receiver struct {
	// Name and UID are the name and uid of the Secret.
	Name, UID string
	url       *url.URL
	key       []byte
	roots     *x509.CertPool
}

// ReceiverOf parses a Secret. Errors do not quote its content.
func ReceiverOf(secret *corev1.Secret) (Receiver, error) {
	r := Receiver{Name: secret.Name, UID: string(secret.UID), key: bytes.TrimSpace(secret.Data[keyKey])}
	var err error
	if r.url, err = url.Parse(strings.TrimSpace(string(secret.Data[urlKey]))); err != nil {
		return r, fmt.Errorf("its key %s is not a URL", urlKey)
	}
	switch {
	case r.url.Scheme != "https" || r.url.Hostname() == "":
		return r, fmt.Errorf("its key %s is not a URL that begins with https:// and names a host", urlKey)
	case r.url.User != nil:
		return r, fmt.Errorf("its key %s has a user: requests are signed with %s", urlKey, keyKey)
	case len(r.key) < leastKey:
		return r, fmt.Errorf("its key %s has %d bytes, %d are needed", keyKey, len(r.key), leastKey)
	}
	if roots := secret.Data[rootKey]; len(roots) > 0 {
		r.roots = x509.NewCertPool()
		if !r.roots.AppendCertsFromPEM(roots) {
			return r, fmt.Errorf("its key %s has no certificate in PEM", rootKey)
		}
	}
	return r, nil
}

// Sign returns the value of SignatureHeader.
func Sign(key, body []byte, at time.Time) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// RefusedError reports that a receiver did not accept an event.
type RefusedError struct {
	Status int
	// RetryAfter is the delay that the receiver requests; 0 if it requests none.
	RetryAfter time.Duration
}

func (e *RefusedError) Error() string {
	if e.Status >= 300 && e.Status < 400 {
		return fmt.Sprintf("the receiver answered %d: redirects are not followed", e.Status)
	}
	return fmt.Sprintf("the receiver answered %d, 2xx is needed", e.Status)
}

// Send sends one body. Errors omit the path and the query, which may be secret. Send does not read
// the body of the answer.
func (r Receiver) Send(ctx context.Context, dialer outbound.Dialer, body []byte, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, outbound.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url.String(), bytes.NewReader(body))
	if err != nil {
		return errors.New("its URL cannot be requested")
	}
	request.Header.Set("Content-Type", ContentType)
	request.Header.Set("User-Agent", "penstock")
	request.Header.Set(SignatureHeader, Sign(r.key, body, now))
	response, err := dialer.Transport(r.roots).RoundTrip(request)
	if err != nil {
		return fmt.Errorf("sending to %s: %w", r.url.Hostname(), outbound.Quiet(err))
	}
	_ = response.Body.Close()
	if response.StatusCode/100 == 2 {
		return nil
	}
	refused := &RefusedError{Status: response.StatusCode}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		refused.RetryAfter = min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	return refused
}
