package host

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2/textlogger"
)

func TestClockSkew(t *testing.T) {
	sent := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		host   time.Time
		took   time.Duration
		want   time.Duration
		said   string
	}{
		"Same":       {reason: "the same clock", host: sent},
		"Rounded":    {reason: "the host cuts its seconds off", host: sent.Add(-900 * time.Millisecond)},
		"Slow":       {reason: "the answer was made while we waited", host: sent.Add(40 * time.Second), took: 80 * time.Second},
		"Little":     {reason: "half a minute harms nobody", host: sent.Add(-30 * time.Second), want: 30 * time.Second},
		"Ahead":      {reason: "we are ahead", host: sent.Add(-10 * time.Minute), want: 10 * time.Minute, said: "is ahead of the host cluster's"},
		"Behind":     {reason: "we are behind", host: sent.Add(time.Hour), want: -time.Hour, said: "is behind the host cluster's"},
		"NotAnswers": {reason: "who says no time is not compared", host: time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			now := sent
			s := &clockSkew{now: func() time.Time { return now }, log: textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&said)))}
			trip := s.wrap(roundTripper(func(*http.Request) (*http.Response, error) {
				now = now.Add(tc.took)
				header := http.Header{}
				if !tc.host.IsZero() {
					header.Set("Date", tc.host.UTC().Format(http.TimeFormat))
				}
				return &http.Response{Header: header}, nil
			}))
			for range 2 {
				now = sent
				if _, err := trip.RoundTrip(&http.Request{}); err != nil { //nolint:bodyclose // There is none.
					t.Fatal(err)
				}
			}
			if got := time.Duration(s.seconds() * float64(time.Second)); got != tc.want {
				t.Errorf("%s: the skew is %s, want %s", tc.reason, got, tc.want)
			}
			lines := strings.Count(said.String(), "\n")
			if want := min(len(tc.said), 1); lines != want || !strings.Contains(said.String(), tc.said) {
				t.Errorf("%s: got %d lines, want %d with %q:\n%s", tc.reason, lines, want, tc.said, said.String())
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
