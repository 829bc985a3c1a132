package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
)

const (
	rate = 200
	// turn is the time during which one webhook is called before the next webhook.
	turn = 5 * time.Second
	// patience limits one review, like the timeout of a registration.
	patience = 3 * time.Second
)

// review returns a review of an object of typical size, 4 KB with its managedFields.
func review() []byte {
	return fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"DELETE",`+
		`"kind":{"group":"","version":"v1","kind":"ConfigMap"},"namespace":"default","name":"a","userInfo":{"username":"alice"},`+
		`"oldObject":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","labels":{"penstock.dev/chain":"a"},`+
		`"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{"f:k":{}}}}]},"data":{"k":%q}}}}`,
		strings.Repeat("value ", 600))
}

type subject struct {
	name, url string
	client    *http.Client
}

func newSubject(t *testing.T, name, url, serverName string, ca []byte) subject {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatalf("%s has no certificate", name)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: serverName}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return subject{name, url, &http.Client{Transport: transport, Timeout: patience}}
}

func (s subject) ask(ctx context.Context, body []byte) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	begin := time.Now()
	response, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	took := time.Since(begin)
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"allowed":true`)) {
		return 0, fmt.Errorf("%s answers %d %s", s.name, response.StatusCode, text)
	}
	return took, nil
}

// turn sends reviews at the rate, without waiting for answers, and returns the times in
// milliseconds.
func (s subject) turn(t *testing.T, body []byte) []float64 {
	t.Helper()
	var mu sync.Mutex
	var millis []float64
	var asking sync.WaitGroup
	ticks := time.NewTicker(time.Second / rate)
	defer ticks.Stop()
	for range int(turn.Seconds() * rate) {
		<-ticks.C
		asking.Go(func() {
			took, err := s.ask(t.Context(), body)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			millis = append(millis, float64(took)/float64(time.Millisecond))
		})
	}
	asking.Wait()
	return millis
}

// TestWebhooks runs the benchmark.
func TestWebhooks(t *testing.T) {
	if os.Getenv("BENCH") != "webhooks" {
		t.Skip("a benchmark that wants the machine for itself: run it by `make bench SUITE=webhooks`")
	}
	c := cluster.Start(t, cluster.AllProcessors())
	penstock.Build(t).Serve(t, c, penstock.DataDir(t))
	port := strings.TrimSpace(c.MustKubectl("get", "service", "penstock", "-n", "penstock-system", "-o", "jsonpath={.spec.ports[0].port}"))
	var api struct{ Spec struct{ CABundle []byte } }
	if err := json.Unmarshal([]byte(c.MustKubectl("get", "apiservice", "v1alpha1.olm.operatorframework.io", "-o", "json")), &api); err != nil {
		t.Fatal(err)
	}
	empty, emptyCA := emptyWebhook(t)
	const nothing = "one that does nothing"
	subjects := []subject{
		newSubject(t, nothing, empty, "example.com", emptyCA),
		newSubject(t, "governed", "https://127.0.0.1:"+port+"/webhooks/governed", "localhost", api.Spec.CABundle),
		newSubject(t, "install-level", "https://127.0.0.1:"+port+"/webhooks/install-level", "localhost", api.Spec.CABundle),
	}
	body, rounds := review(), 5
	result := &measure.Result{Case: measure.Case{Name: "reviews", Rounds: rounds}, Millis: map[string][]float64{}}
	all := map[string][]float64{}
	for round := range rounds + 1 {
		for i := range subjects {
			s := subjects[(round+i)%len(subjects)]
			millis := s.turn(t, body)
			if round > 0 { // the first round is a warm-up
				result.Millis[s.name] = append(result.Millis[s.name], measure.SpreadOf(millis).Median)
				all[s.name] = append(all[s.name], millis...)
			}
		}
	}
	report := &measure.Report{}
	table := report.Table(fmt.Sprintf("%d reviews of %d bytes a second", rate, len(body)), "webhook", "median, ms", "10 % to 90 %, ms", "reviews")
	for _, s := range subjects {
		spread := measure.SpreadOf(all[s.name])
		table.Row(s.name, fmt.Sprintf("%.2f", spread.Median), fmt.Sprintf("%.2f to %.2f", spread.Low, spread.High), fmt.Sprint(spread.Samples))
	}
	for _, s := range subjects[1:] {
		// The ratio of times per round.
		ratio := result.Ratio(s.name, nothing)
		report.AtMost(s.name+" beside "+nothing, 2, ratio.Median, "times its latency")
	}
	fmt.Println(measure.Machine(time.Now()))
	if err := report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}
