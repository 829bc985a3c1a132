package serviceaccounts

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mint issues numbered tokens that are valid for an hour.
type mint struct {
	now    time.Time
	given  int
	broken bool
}

func (m *mint) tokens() *tokens {
	return &tokens{now: func() time.Time { return m.now }, fetch: func(context.Context) (credential, error) {
		if m.broken {
			return credential{}, errors.New("no tokens today")
		}
		m.given++
		return credential{value: strconv.Itoa(m.given), expires: m.now.Add(time.Hour)}, nil
	}}
}

// TestTokensAreRenewed: a token in use is renewed in time.
func TestTokensAreRenewed(t *testing.T) {
	m := &mint{now: time.Unix(1000, 0)}
	tokens := m.tokens()
	steps := []struct {
		reason  string
		after   time.Duration
		broken  bool
		want    string
		refused bool
	}{
		{reason: "first", want: "1"},
		{reason: "good", after: 47 * time.Minute, want: "1"},
		{reason: "most of its life is over", after: time.Minute, want: "2"},
		{reason: "cannot be renewed, and is good still", after: 50 * time.Minute, broken: true, want: "2"},
		{reason: "not tried again at once", after: 9 * time.Second, want: "2"},
		{reason: "tried again", after: 2 * time.Second, want: "3"},
		{reason: "has expired, and cannot be renewed", after: time.Hour, broken: true, refused: true},
		{reason: "tried again at once when there is none", want: "4"},
	}
	for _, step := range steps {
		m.now, m.broken = m.now.Add(step.after), step.broken
		got, err := tokens.get(t.Context())
		if got != step.want || (err != nil) != step.refused {
			t.Fatalf("%s: token %q, error %v; want %q", step.reason, got, err, step.want)
		}
	}
}

// TestTokenNotTaken: after a 401 the request is sent once more with a new token, including its
// body.
func TestTokenNotTaken(t *testing.T) {
	cases := map[string]struct {
		reason string
		good   string
		seen   int
		code   int
	}{
		"Good":         {reason: "the first is taken", good: "1", seen: 1, code: http.StatusOK},
		"Stale":        {reason: "the second is taken", good: "2", seen: 2, code: http.StatusOK},
		"NoneIsAnyUse": {reason: "it is not tried for ever", good: "none", seen: 2, code: http.StatusUnauthorized},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var bodies []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				bodies = append(bodies, string(body))
				if r.Header.Get("Authorization") != "Bearer "+tc.good {
					w.WriteHeader(http.StatusUnauthorized)
				}
			}))
			defer server.Close()
			client := &http.Client{Transport: (&mint{now: time.Unix(1000, 0)}).tokens().wrap(http.DefaultTransport)}
			response, err := client.Post(server.URL, "text/plain", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != tc.code || len(bodies) != tc.seen {
				t.Errorf("%s: code %d after %d requests, want %d after %d", tc.reason, response.StatusCode, len(bodies), tc.code, tc.seen)
			}
			for _, body := range bodies {
				if body != "body" {
					t.Errorf("%s: a body was %q", tc.reason, body)
				}
			}
		})
	}
}

// TestNoToken: without a token nothing is sent, and the caller gets the reason.
func TestNoToken(t *testing.T) {
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent++ }))
	defer server.Close()
	client := &http.Client{Transport: (&mint{broken: true}).tokens().wrap(http.DefaultTransport)}
	_, err := client.Get(server.URL)
	if err == nil || !strings.Contains(err.Error(), "no tokens today") || sent != 0 {
		t.Errorf("error %v, %d requests sent", err, sent)
	}
}
