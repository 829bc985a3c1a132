package serviceaccounts

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// renewAt is the part of a token's life after which it is renewed. renewAgain is the pause
	// after a failed renewal while the token is still valid.
	renewAt    = 0.8
	renewAgain = 10 * time.Second
)

type credential struct {
	value   string
	expires time.Time
}

// tokens holds a token, and renews it when it is used. An unused token is not renewed.
type tokens struct {
	fetch func(context.Context) (credential, error)
	now   func() time.Time

	mu      sync.Mutex
	current credential
	renew   time.Time
}

// get returns a valid token. Concurrent callers wait for the same request.
func (t *tokens) get(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if now.Before(t.renew) {
		return t.current.value, nil
	}
	fresh, err := t.fetch(ctx)
	switch {
	case err == nil:
		life := fresh.expires.Sub(now)
		t.current, t.renew = fresh, now.Add(time.Duration(float64(life)*renewAt))
	case now.Before(t.current.expires):
		t.renew = now.Add(min(renewAgain, t.current.expires.Sub(now)))
	default:
		return "", err
	}
	return t.current.value, nil
}

// forget drops a token that the server refused: its ServiceAccount was created again, or the
// signing keys changed.
func (t *tokens) forget(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current.value == value {
		t.current, t.renew = credential{}, time.Time{}
	}
}

func (t *tokens) wrap(next http.RoundTripper) http.RoundTripper {
	return &bearer{tokens: t, next: next}
}

type bearer struct {
	tokens *tokens
	next   http.RoundTripper
}

// RoundTrip sends a request. If the server refuses the token, it sends the request once more with a
// new token.
func (b *bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	response, value, err := b.send(request)
	if err != nil || response.StatusCode != http.StatusUnauthorized || request.Body != nil && request.GetBody == nil {
		return response, err
	}
	b.tokens.forget(value)
	again := request.Clone(request.Context())
	if request.GetBody != nil {
		if again.Body, err = request.GetBody(); err != nil {
			return response, nil
		}
	}
	// The connection can be reused after the answer was read.
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	response, _, err = b.send(again)
	return response, err
}

func (b *bearer) send(request *http.Request) (*http.Response, string, error) {
	value, err := b.tokens.get(request.Context())
	if err != nil {
		// RoundTrip must close the body even if it sends nothing.
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, "", err
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+value)
	response, err := b.next.RoundTrip(request)
	return response, value, err
}

// WrappedRoundTripper lets client-go find the inner transport, to close idle connections.
func (b *bearer) WrappedRoundTripper() http.RoundTripper { return b.next }
