//go:build integration

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// metricsGroup is the API group of external metrics for HorizontalPodAutoscalers.
const metricsGroup = "external.metrics.k8s.io"

// autoscaled: once the HorizontalPodAutoscaler has set the replicas of a Deployment, they belong to
// it. An upgrade with other replicas in its manifest does not change that. Penstock reports no
// drift.
func autoscaled(w sharedPlane) {
	ns := w.namespace("autoscaled")
	queue := w.measured("queue", 3)
	web := func(image string) object {
		d := deployment(ns, "web", image)
		d["metadata"].(map[string]any)["labels"] = map[string]any{"part": "web"}
		return d
	}
	scaler := manifest("autoscaling/v2", "HorizontalPodAutoscaler", ns, "web")
	scaler["spec"] = map[string]any{
		"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
		"minReplicas":    1, "maxReplicas": 5,
		"behavior": map[string]any{"scaleDown": map[string]any{"stabilizationWindowSeconds": 0}},
		"metrics": []any{map[string]any{"type": "External", "external": map[string]any{
			"metric": map[string]any{"name": "queue"}, "target": map[string]any{"type": "AverageValue", "averageValue": "1"},
		}}},
	}
	scaled := func(image string, replicas int64) {
		w.t.Helper()
		w.until(deployments(), ns, "web", func(o *unstructured.Unstructured) error {
			containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			has, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			ready, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas")
			runs := containers[0].(map[string]any)["image"]
			if has != replicas || ready != replicas || runs != image {
				return fmt.Errorf("%d of %d replicas of %s are ready, want %d of %s", ready, has, runs, replicas, image)
			}
			return nil
		})
	}

	w.roll(revision("autoscaled", 1).Phase("all", web("web:1"), scaler))
	scaled("web:1", 3)
	w.roll(revision("autoscaled", 2).Phase("all", web("web:2"), scaler))
	scaled("web:2", 3)
	queue.Store(2)
	scaled("web:2", 2)

	// Penstock repairs only its own fields. It has seen the earlier changes by then.
	w.MustKubectl("label", "deployment", "web", "--namespace="+ns, "part-")
	w.event("autoscaled-2", "Repaired", ".metadata.labels.part was removed")
	scaled("web:2", 2)
	w.condition("autoscaled-2", "Ready", "True")
	if events := w.MustKubectl("events", "--for=clusterextensionrevision/autoscaled-2"); containsAll(events, []string{"replicas"}) {
		w.t.Errorf("a change by an autoscaler was undone:\n%s", events)
	}
	// The autoscaler would keep requesting a metric that does not exist any more, and write events.
	w.MustKubectl("delete", "cer", "autoscaled-1", "autoscaled-2", poll.TimeoutFlag)
}

// measured serves an external metric until the test ends. The test can change its value.
func (w sharedPlane) measured(metric string, value int64) *atomic.Int64 {
	w.t.Helper()
	var current atomic.Int64
	current.Store(value)
	version := metricsGroup + "/v1beta1"
	mux := http.NewServeMux()
	mux.HandleFunc("/apis/"+version, func(out http.ResponseWriter, _ *http.Request) {
		respond(out, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: version})
	})
	mux.HandleFunc("/apis/"+version+"/namespaces/{namespace}/"+metric, func(out http.ResponseWriter, _ *http.Request) {
		respond(out, map[string]any{
			"apiVersion": version, "kind": "ExternalMetricValueList", "metadata": map[string]any{},
			"items": []any{map[string]any{
				"metricName": metric, "metricLabels": map[string]string{},
				"timestamp": time.Now().UTC().Format(time.RFC3339), "value": fmt.Sprint(current.Load()),
			}},
		})
	})
	server := httptest.NewTLSServer(mux)
	w.t.Cleanup(server.Close)

	address := server.Listener.Addr().(*net.TCPAddr)
	service := manifest("v1", "Service", w.namespace("metrics"), "metrics")
	service["spec"] = map[string]any{
		"type": "ExternalName", "externalName": address.IP.String(), "ports": []any{map[string]any{"port": address.Port}},
	}
	api := manifest("apiregistration.k8s.io/v1", "APIService", "", "v1beta1."+metricsGroup)
	api["spec"] = map[string]any{
		"group": metricsGroup, "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": true,
		"service": map[string]any{"namespace": "metrics", "name": "metrics", "port": address.Port},
	}
	for _, o := range []object{service, api} {
		w.MustKubectlInput(o.String(), "create", "-f", "-")
	}
	// Delete the APIService before the server stops. A group without a server would disturb other
	// tests.
	w.t.Cleanup(func() { w.MustKubectl("delete", "apiservice", "v1beta1."+metricsGroup) })
	return &current
}

func respond(out http.ResponseWriter, content any) {
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(content) // the client may have disconnected
}
