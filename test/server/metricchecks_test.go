//go:build integration

package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/metriccheck"
	"github.com/penstock-project/penstock/test/framework/metricservice"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/port"
)

// measures: a metric service judges revisions. One succeeds, one is rolled back, and one waits
// because its metric has no value.
func (s rolledBack) measures() {
	service := &metricservice.Service{}
	listener, err := port.Outside()
	switch {
	case errors.Is(err, port.ErrLoopback):
		s.t.Skip(err)
	case err != nil:
		s.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(service)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	s.t.Cleanup(server.Close)
	check := func(change map[string]any) *unstructured.Unstructured {
		spec := map[string]any{"address": server.URL, "query": "errors{extension={{extension}},namespace={{namespace}}}", "max": 0.05, "initialDelaySeconds": int64(0)}
		for key, value := range change {
			if spec[key] = value; value == nil {
				delete(spec, key)
			}
		}
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "errors"}, "spec": spec}}
		object.SetGroupVersionKind(metriccheck.Kind)
		return object
	}
	checks := s.outsider.Resource(metriccheck.Resource)
	// The definition rejects checks that cannot work.
	for want, change := range map[string]map[string]any{
		"must have min, max or both":              {"max": nil},
		"min must not be above max":               {"min": 1.5},
		"must be https when a token is sent":      {"tokenSecret": "token"},
		"must have no other placeholders":         {"query": "errors{x={{cluster}}}"},
		"spec.address":                            {"address": "http://user:password@prometheus"},
		"spec.initialDelaySeconds: Invalid value": {"initialDelaySeconds": int64(3601)},
	} {
		if _, err := checks.Create(context.Background(), check(change), metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			s.t.Errorf("%v: %v, want %q", change, err, want)
		}
	}

	judged := map[string]any{"onFailure": "Rollback", "progressDeadlineMinutes": int64(1), "metricChecks": []any{"errors"}}
	s.submit("judged", 1, judged)
	// The MetricCheck does not exist yet, which does not count as Yes.
	s.until("judged-1", "Succeeded", "False/MetricCheckUnknown all objects are available; the revision succeeds when its MetricChecks say Yes: MetricCheck errors is Unknown: there is no MetricCheck of this name")
	service.Answer(0.01)
	if _, err := checks.Create(context.Background(), check(nil), metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.until("judged-1", "Succeeded", "True/RolledOut")
	if queries := service.Queries(); !slices.Contains(queries, `errors{extension="judged",namespace="default"}`) {
		s.t.Errorf("the service was asked %q", queries)
	}

	// A metric above its limit fails the next revision although all of its objects are available.
	service.Answer(0.2)
	s.submit("judged", 2, judged)
	s.until("judged-2", "RolledBack", "True/MetricCheckFailed judged-3 brings back the content of judged-1: MetricCheck errors says No: 0.2 is above the maximum of 0.05")
	service.Answer(0.01)
	poll.Eventually(s.t, "the content of judged-1", func() (bool, string) { n := s.value("judged"); return n == "1", n })

	// An answer without a sample is neither Yes nor No. The revision waits, is not rolled back, and
	// succeeds after a Yes.
	service.Answer()
	s.submit("silent", 1, judged)
	s.until("silent-1", "Succeeded", "False/MetricCheckUnknown all objects are available; the revision succeeds when its MetricChecks say Yes: MetricCheck errors is Unknown: the answer has no sample")
	s.until("silent-1", "Progressing", "True/MetricCheckUnknown")
	live, err := s.revisions().Get(context.Background(), "silent-1", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	measured, _, _ := unstructured.NestedSlice(live.Object, "status", "metricChecks")
	if len(measured) != 1 || !strings.Contains(fmt.Sprint(measured[0]), "verdict:Unknown") {
		s.t.Errorf("status has %v", measured)
	}
	service.Answer(0)
	s.until("silent-1", "Succeeded", "True/RolledOut")
}
