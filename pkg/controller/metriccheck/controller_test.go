package metriccheck

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	testclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/metriccheck"
	"github.com/penstock-project/penstock/pkg/outbound"
	"github.com/penstock-project/penstock/test/framework/metricservice"
)

type fixture struct {
	*Controller
	*testing.T
	clock    *testclock.FakeClock
	host     *dynamicfake.FakeDynamicClient
	service  *metricservice.Service
	address  string
	answered chan string
}

func start(t *testing.T) *fixture {
	t.Helper()
	service := &metricservice.Service{}
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	definition := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}, ObjectMeta: metav1.ObjectMeta{Name: metriccheck.DefinitionName, UID: "crd"}}
	f := &fixture{
		T: t, clock: testclock.NewFakeClock(time.Now().Truncate(time.Second)), service: service, address: server.URL, answered: make(chan string, 100),
		host: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{metriccheck.Resource: "MetricCheckList"}),
	}
	f.Controller = New(Options{
		Checks: f.host, Definitions: metadatafake.NewSimpleMetadataClient(scheme, definition), Namespace: "penstock-system", Clock: f.clock,
		Secrets: fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "penstock-system", Name: "kubeconfig"}, Data: map[string][]byte{"token": []byte("hush")}}),
		Dialer:  outbound.Dialer{Check: func(netip.AddrPort, []netip.AddrPort) error { return nil }},
		Notify:  func(extension string) { f.answered <- extension },
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = f.Controller.Run(ctx) })
	t.Cleanup(running.Wait)
	t.Cleanup(stop)
	return f
}

// write creates or replaces the MetricCheck errors, and waits until the controller has it.
func (f *fixture) write(max float64, change map[string]any) {
	f.Helper()
	spec := map[string]any{"address": f.address, "query": "errors{ns={{namespace}}}", "max": max}
	for key, value := range change {
		spec[key] = value
	}
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "errors"}, "spec": spec}}
	object.SetGroupVersionKind(metriccheck.Kind)
	checks := f.host.Resource(metriccheck.Resource)
	_, err := checks.Update(f.Context(), object, metav1.UpdateOptions{})
	if err != nil {
		_, err = checks.Create(f.Context(), object, metav1.CreateOptions{})
	}
	if err != nil {
		f.Fatal(err)
	}
	want, err := metriccheck.From(object)
	if err != nil {
		f.Fatal(err)
	}
	f.until(func() bool {
		check, known, err := f.check("errors")
		return known && err == nil && check.Spec.Digest() == want.Spec.Digest()
	})
}

func (f *fixture) until(is func() bool) {
	f.Helper()
	limit := time.After(time.Minute)
	for !is() {
		select {
		case <-f.Changed():
		case <-limit:
			f.Fatal("the controller does not know it")
		}
	}
}

func (f *fixture) asked(of Subject, kept ...v1alpha1.MetricMeasurement) v1alpha1.MetricMeasurement {
	f.Helper()
	if next := f.Ask(of, f.Measured(of, kept)); !next.IsZero() {
		f.Fatalf("it is asked at %s only", next)
	}
	select {
	case extension := <-f.answered:
		if extension != of.Extension {
			f.Errorf("%s was told", extension)
		}
	case <-time.After(time.Minute):
		f.Fatal("there is no answer")
	}
	measured := f.Measured(of, kept)
	if len(measured) != 1 {
		f.Fatalf("measured are %+v", measured)
	}
	return measured[0]
}

// TestAsk: a MetricCheck is queried after its delay, once in an interval, and again when it has
// changed.
func TestAsk(t *testing.T) {
	f := start(t)
	of := Subject{Extension: "argocd", Revision: "uid", Namespaces: []string{"cd"}, Since: f.clock.Now(), Checks: []string{"errors"}}
	f.until(func() bool { _, known, _ := f.check("errors"); return known })
	if got := f.Measured(of, nil); len(got) != 1 || got[0].Verdict != v1alpha1.MetricUnknown || got[0].Message != "there is no MetricCheck of this name" {
		t.Errorf("without a MetricCheck it is %+v", got)
	}
	f.write(1, map[string]any{"initialDelaySeconds": int64(10)})
	f.service.Answer(0.5)
	if next := f.Ask(of, f.Measured(of, nil)); !next.Equal(of.Since.Add(10 * time.Second)) {
		t.Errorf("it is asked at %s", next)
	}
	f.clock.Step(10 * time.Second)
	first := f.asked(of)
	if first.Verdict != v1alpha1.MetricYes || first.Value != "0.5" || first.Digest == "" || !first.Time.Time.Equal(f.clock.Now()) {
		t.Errorf("it is %+v", first)
	}
	// An earlier pass queries nothing, nor does another process, which has only the status.
	f.clock.Step(29 * time.Second)
	if next := f.Ask(of, f.Measured(of, nil)); !next.Equal(first.Time.Add(metriccheck.Interval)) {
		t.Errorf("it is asked at %s", next)
	}
	f.clock.Step(time.Second)
	f.service.Answer(2)
	failed := f.asked(of, first)
	if failed.Verdict != v1alpha1.MetricNo || failed.Message != "2 is above the maximum of 1" {
		t.Errorf("it is %+v", failed)
	}
	f.clock.Step(time.Hour)
	if next := f.Ask(of, f.Measured(of, nil)); !next.IsZero() || len(f.service.Queries()) != 2 {
		t.Errorf("a failed rollout is asked about at %s; the service has got %q", next, f.service.Queries())
	}
	// A measurement by another spec does not count.
	f.write(3, nil)
	if got := f.Measured(of, []v1alpha1.MetricMeasurement{failed}); len(got) != 0 {
		t.Errorf("measured are %+v", got)
	}
	f.service.Answer(2)
	f.clock.SetTime(time.Now()) // the sample has the real time
	if again := f.asked(of, failed); again.Verdict != v1alpha1.MetricYes || f.service.Queries()[2] != `errors{ns="cd"}` {
		t.Errorf("it is %+v after %q", again, f.service.Queries())
	}
	if err := f.host.Resource(metriccheck.Resource).Delete(t.Context(), "errors", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.until(func() bool {
		got := f.Measured(of, nil)
		return len(got) == 1 && got[0].Verdict == v1alpha1.MetricUnknown
	})
}

// TestToken: only a Secret with the label is sent.
func TestToken(t *testing.T) {
	f := start(t)
	of := Subject{Extension: "argocd", Revision: "uid", Since: f.clock.Now(), Checks: []string{"errors"}}
	for secret, want := range map[string]string{"kubeconfig": "lacks the label", "absent": "reading its token"} {
		f.write(1, map[string]any{"address": strings.Replace(f.address, "http:", "https:", 1), "tokenSecret": secret})
		if got := f.asked(of); got.Verdict != v1alpha1.MetricUnknown || !strings.Contains(got.Message, want) || len(f.service.Queries()) != 0 {
			t.Errorf("%s: %+v", secret, got)
		}
	}
}
