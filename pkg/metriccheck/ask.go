package metriccheck

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/outbound"
)

const (
	// MaxAnswer bounds an answer, in bytes.
	MaxAnswer = 64 << 10
	// maxAge bounds the age of a sample, and the lead of the service's clock.
	maxAge = 2 * time.Minute
)

// Ask sends one query and returns the verdict; without a usable answer it is Unknown. Messages
// quote only the sample of an answer. since is the time at which the objects became Available:
// older samples do not count.
func (s *Spec) Ask(ctx context.Context, dialer outbound.Dialer, query, token string, since time.Time, now func() time.Time) (verdict v1alpha1.MetricVerdict, value, message string) {
	body, err := s.send(ctx, dialer, query, token)
	if err != nil {
		return v1alpha1.MetricUnknown, "", err.Error()
	}
	at, sample, err := read(body)
	if err != nil {
		return v1alpha1.MetricUnknown, "", err.Error()
	}
	switch age := now().Sub(at); {
	case at.Before(since.Truncate(time.Second)), age > maxAge:
		return v1alpha1.MetricUnknown, "", "the sample is of " + at.UTC().Format(time.RFC3339) + ", which is too old"
	case age < -maxAge:
		return v1alpha1.MetricUnknown, "", "the sample is of " + at.UTC().Format(time.RFC3339) + ", which is in the future"
	}
	value = strconv.FormatFloat(sample, 'g', -1, 64)
	switch {
	case math.IsNaN(sample) || math.IsInf(sample, 0):
		return v1alpha1.MetricUnknown, "", "the sample is " + value
	case s.Min != nil && sample < *s.Min:
		return v1alpha1.MetricNo, value, fmt.Sprintf("%s is below the minimum of %g", value, *s.Min)
	case s.Max != nil && sample > *s.Max:
		return v1alpha1.MetricNo, value, fmt.Sprintf("%s is above the maximum of %g", value, *s.Max)
	}
	return v1alpha1.MetricYes, value, ""
}

// send returns the body of the answer. The timeout and the limit also bound the work of the
// service. For an instant query, Prometheus looks back for five minutes, and gives the sample the
// time of the query. So without lookback_delta, an ended metric would count for longer than maxAge
// (https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries).
func (s *Spec) send(ctx context.Context, dialer outbound.Dialer, query, token string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, outbound.Timeout)
	defer cancel()
	form := url.Values{"query": {query}, "timeout": {outbound.Timeout.String()}, "limit": {"2"}, "lookback_delta": {maxAge.String()}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(s.Address, "/")+"/api/v1/query", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("its address cannot be requested")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("User-Agent", "penstock")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	var roots *x509.CertPool
	if len(s.CABundle) > 0 {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(s.CABundle) {
			return nil, errors.New("its caBundle has no certificate in PEM")
		}
	}
	response, err := dialer.Transport(roots).RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("the query was not answered: %w", outbound.Quiet(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the query was answered with status %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer was not read: %w", outbound.Quiet(err))
	case len(body) > MaxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", MaxAnswer)
	}
	return body, nil
}

var errUnreadable = errors.New("the answer is not that of the HTTP API of Prometheus")

// read returns the only sample of an answer. The format is described at
// https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries.
func read(body []byte) (at time.Time, sample float64, err error) {
	var answer struct {
		Status   string
		Warnings []string
		Data     struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		return at, 0, errUnreadable
	}
	if len(answer.Warnings) > 0 {
		return at, 0, errors.New("the answer has a warning: it may be incomplete")
	}
	pair := answer.Data.Result
	switch answer.Data.ResultType {
	case "scalar":
	case "vector":
		var series []struct{ Value json.RawMessage }
		if err := json.Unmarshal(answer.Data.Result, &series); err != nil {
			return at, 0, errUnreadable
		}
		switch len(series) {
		case 0:
			return at, 0, errors.New("the answer has no sample")
		case 1:
		default:
			return at, 0, errors.New("the answer has more than one sample")
		}
		pair = series[0].Value
	default:
		return at, 0, errors.New("the answer is neither a scalar nor an instant vector")
	}
	var seconds float64
	var text string
	if err := json.Unmarshal(pair, &[]any{&seconds, &text}); err != nil {
		return at, 0, errUnreadable
	}
	if sample, err = strconv.ParseFloat(text, 64); err != nil || text == "" {
		return at, 0, errUnreadable
	}
	return time.UnixMilli(int64(seconds * 1000)), sample, nil
}
