package host

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// skewLimit is the smallest difference of clocks that is logged. The Date of an answer has
	// whole seconds, and the answer takes time to arrive.
	skewLimit    = time.Minute
	skewComplain = 10 * time.Minute
)

// clockSkew compares the clock of this machine with the host's, by the Date header of the host's
// answers. A difference breaks certificates, tokens and leases later, and their errors do not name
// the cause.
type clockSkew struct {
	now func() time.Time
	log klog.Logger

	mu         sync.Mutex
	skew       time.Duration
	complained time.Time
}

// wrap is for rest.Config.WrapTransport.
func (s *clockSkew) wrap(next http.RoundTripper) http.RoundTripper {
	return &skewRoundTripper{skew: s, next: next}
}

type skewRoundTripper struct {
	skew *clockSkew
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *skewRoundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := t.skew.now()
	response, err := t.next.RoundTrip(request)
	if err == nil {
		t.skew.observe(response.Header.Get("Date"), sent)
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the inner transport, to close idle connections.
func (t *skewRoundTripper) WrappedRoundTripper() http.RoundTripper { return t.next }

// observe reads the Date of an answer to a request. The host wrote it between sent and now, so a
// Date within that time shows no skew.
func (s *clockSkew) observe(date string, sent time.Time) {
	host, err := http.ParseTime(date)
	if err != nil {
		return
	}
	now := s.now()
	var skew time.Duration
	switch {
	case host.Add(time.Second).Before(sent):
		skew = sent.Sub(host)
	case host.After(now):
		skew = now.Sub(host)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew = skew
	if skew.Abs() < skewLimit || now.Sub(s.complained) < skewComplain {
		return
	}
	s.complained = now
	direction := "ahead of"
	if skew < 0 {
		direction = "behind"
	}
	s.log.Error(nil, "The clock of this machine is "+direction+" the host cluster's. Certificates, tokens and leases are judged by both: set the clock (NTP)",
		"difference", skew.Abs().Round(time.Second).String(), "here", now.UTC().Format(time.RFC3339), "host", host.UTC().Format(time.RFC3339))
}

func (s *clockSkew) seconds() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skew.Seconds()
}
