package metriccheck

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/outbound"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func vector(samples ...string) string {
	series := make([]string, len(samples))
	for i, sample := range samples {
		series[i] = fmt.Sprintf(`{"metric":{"n":"%d"},"value":[%d.5,%q]}`, i, noon.Unix(), sample)
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(series, ",") + `]}}`
}

// TestAsk: a sample within the bounds is Yes, and a sample outside is No. Any other answer is
// Unknown.
func TestAsk(t *testing.T) {
	low, high := 0.5, 10.0
	for name, tc := range map[string]struct {
		status         int
		body           string
		verdict        v1alpha1.MetricVerdict
		value, message string
	}{
		"within":           {200, vector("2"), "Yes", "2", ""},
		"at the bound":     {200, vector("10"), "Yes", "10", ""},
		"above":            {200, vector("10.25"), "No", "10.25", "10.25 is above the maximum of 10"},
		"below":            {200, vector("0"), "No", "0", "0 is below the minimum of 0.5"},
		"scalar":           {200, fmt.Sprintf(`{"status":"success","data":{"resultType":"scalar","result":[%d,"3"]}}`, noon.Unix()), "Yes", "3", ""},
		"empty":            {200, vector(), "Unknown", "", "no sample"},
		"two series":       {200, vector("1", "1"), "Unknown", "", "more than one sample"},
		"NaN":              {200, vector("NaN"), "Unknown", "", "the sample is NaN"},
		"Inf":              {200, vector("+Inf"), "Unknown", "", "the sample is +Inf"},
		"no number":        {200, vector("many"), "Unknown", "", "not that of"},
		"stale":            {200, strings.ReplaceAll(vector("1"), fmt.Sprint(noon.Unix()), fmt.Sprint(noon.Add(-3*time.Minute).Unix())), "Unknown", "", "too old"},
		"before the soak":  {200, strings.ReplaceAll(vector("1"), fmt.Sprint(noon.Unix()), fmt.Sprint(noon.Add(-40*time.Second).Unix())), "Unknown", "", "too old"},
		"in the future":    {200, strings.ReplaceAll(vector("1"), fmt.Sprint(noon.Unix()), fmt.Sprint(noon.Add(time.Hour).Unix())), "Unknown", "", "future"},
		"partial":          {200, strings.Replace(vector("1"), `"data"`, `"warnings":["a store is away"],"data"`, 1), "Unknown", "", "incomplete"},
		"matrix":           {200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`, "Unknown", "", "neither"},
		"error":            {200, `{"status":"error","error":"secret"}`, "Unknown", "", "not that of"},
		"no JSON":          {200, "<html>secret", "Unknown", "", "not that of"},
		"short pair":       {200, `{"status":"success","data":{"resultType":"vector","result":[{"value":[1]}]}}`, "Unknown", "", "not that of"},
		"null":             {200, `null`, "Unknown", "", "not that of"},
		"too many":         {429, "secret", "Unknown", "", "status 429"},
		"redirect":         {301, "", "Unknown", "", "status 301"},
		"endless":          {200, strings.Repeat(" ", MaxAnswer+1), "Unknown", "", "more than 65536 bytes"},
		"as long as it is": {200, vector("1") + strings.Repeat(" ", MaxAnswer-len(vector("1"))), "Yes", "1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked = r.URL.Path + " " + r.Header.Get("Authorization") + " " + string(body)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			spec := Spec{Address: server.URL + "/prefix/", Query: "up", Min: &low, Max: &high}
			verdict, value, message := spec.Ask(t.Context(), anywhere(), "up", "t0ken", noon.Add(-30*time.Second), func() time.Time { return noon })
			if verdict != tc.verdict || value != tc.value || !strings.Contains(message, tc.message) || (message == "") != (tc.verdict == "Yes") || strings.Contains(message, "secret") {
				t.Errorf("%s %q: %s", verdict, value, message)
			}
			if want := "/prefix/api/v1/query Bearer t0ken limit=2&lookback_delta=2m0s&query=up&timeout=10s"; asked != want {
				t.Errorf("asked %q, want %q", asked, want)
			}
		})
	}
}

func anywhere() outbound.Dialer {
	return outbound.Dialer{Check: func(netip.AddrPort, []netip.AddrPort) error { return nil }}
}

// TestUnreachable: no request is sent to a loopback address. A service that hangs gives Unknown.
func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	spec := Spec{Address: "http://" + listener.Addr().String(), Query: "up"}
	now := func() time.Time { return noon }
	if verdict, _, message := spec.Ask(t.Context(), outbound.Dialer{}, "up", "", noon, now); verdict != v1alpha1.MetricUnknown || !strings.Contains(message, "loopback") {
		t.Errorf("%s: %s", verdict, message)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if verdict, _, message := spec.Ask(ctx, anywhere(), "up", "", noon, now); verdict != v1alpha1.MetricUnknown || !strings.Contains(message, "deadline") {
		t.Errorf("%s: %s", verdict, message)
	}
}

// TestExpression: names become literals of PromQL, with any content.
func TestExpression(t *testing.T) {
	spec := Spec{Query: `errors{ext={{extension}},ns={{namespace}}}`}
	for name, tc := range map[string]struct {
		extension  string
		namespaces []string
		want       string
	}{
		"names":           {"argocd", []string{"cd"}, `errors{ext="argocd",ns="cd"}`},
		"quotes":          {`"} or vector(1) #\`, []string{"cd"}, `errors{ext="\"} or vector(1) #\\",ns="cd"}`},
		"placeholder":     {`{{namespace}}`, []string{"cd"}, `errors{ext="namespace}}",ns="cd"}`},
		"no namespace":    {"argocd", nil, ""},
		"many namespaces": {"argocd", []string{"a", "b"}, ""},
	} {
		got, err := spec.Expression(tc.extension, tc.namespaces)
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
}

// TestFrom: From refuses the values that the definition refuses.
func TestFrom(t *testing.T) {
	for content, want := range map[string]string{
		"{address: 'http://p:9090', query: up, max: 1}":               "",
		"{address: 'https://p/x', tokenSecret: t, query: up, min: 0}": "",
		"{address: 'http://p', tokenSecret: t, query: up, min: 0}":    "not https",
		"{address: 'http://u:p@p', query: up, min: 0}":                "without user",
		"{address: 'http://p/?x=1', query: up, min: 0}":               "without user and query",
		"{address: 'file:///etc/passwd', query: up, min: 0}":          "not an http",
		"{address: 'http://p', query: up}":                            "neither min nor max",
		"{address: 'http://p', query: up, max: many}":                 "reading MetricCheck",
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("{apiVersion: penstock.dev/v1alpha1, kind: MetricCheck, metadata: {name: x}, spec: "+content+"}"), &object.Object); err != nil {
			t.Fatal(err)
		}
		_, err := From(object)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// TestJudge: one No fails. Yes needs a Yes of all checks at the end. Unknown never counts as Yes.
func TestJudge(t *testing.T) {
	said := func(name string, verdict v1alpha1.MetricVerdict, at time.Duration) v1alpha1.MetricMeasurement {
		return v1alpha1.MetricMeasurement{Name: name, Verdict: verdict, Time: metav1.NewTime(noon.Add(at)), Message: "2 is above the maximum of 1"}
	}
	end := noon.Add(5 * time.Minute)
	for name, tc := range map[string]struct {
		names    []string
		measured []v1alpha1.MetricMeasurement
		want     v1alpha1.MetricVerdict
		message  string
	}{
		"no checks":             {nil, nil, "Yes", ""},
		"no answer":             {[]string{"a"}, nil, "", "has not answered yet"},
		"yes at the end":        {[]string{"a"}, []v1alpha1.MetricMeasurement{said("a", "Yes", 4*time.Minute+30*time.Second)}, "Yes", ""},
		"yes long ago":          {[]string{"a"}, []v1alpha1.MetricMeasurement{said("a", "Yes", 4*time.Minute)}, "", "has not answered yet"},
		"yes of an earlier run": {[]string{"a"}, []v1alpha1.MetricMeasurement{said("a", "Yes", -time.Second)}, "", "has not answered yet"},
		"no":                    {[]string{"a"}, []v1alpha1.MetricMeasurement{said("a", "No", 0)}, "No", "MetricCheck a says No: 2 is above the maximum of 1"},
		"no of an earlier run":  {[]string{"a"}, []v1alpha1.MetricMeasurement{said("a", "No", -time.Second)}, "", "has not answered yet"},
		"unknown":               {[]string{"a"}, []v1alpha1.MetricMeasurement{said("a", "Unknown", 5*time.Minute)}, "Unknown", "MetricCheck a is Unknown"},
		"one of two":            {[]string{"a", "b"}, []v1alpha1.MetricMeasurement{said("a", "Yes", 5*time.Minute)}, "", "MetricCheck b has not"},
		"no beats unknown":      {[]string{"a", "b"}, []v1alpha1.MetricMeasurement{said("a", "Unknown", 0), said("b", "No", 0)}, "No", "MetricCheck b says No"},
		"unknown beats missing": {[]string{"a", "b"}, []v1alpha1.MetricMeasurement{said("b", "Unknown", 0)}, "Unknown", "MetricCheck b is Unknown"},
		"one that is not named": {[]string{"a"}, []v1alpha1.MetricMeasurement{said("b", "No", 0), said("a", "Yes", 5*time.Minute)}, "Yes", ""},
		"an unknown word":       {[]string{"a"}, []v1alpha1.MetricMeasurement{said("a", "Perhaps", 5*time.Minute)}, "Unknown", "MetricCheck a is Unknown"},
	} {
		got, message := Judge(tc.names, tc.measured, noon, end)
		if got != tc.want || !strings.Contains(message, tc.message) || (message == "") != (got == "Yes") {
			t.Errorf("%s: %q %s", name, got, message)
		}
	}
}
