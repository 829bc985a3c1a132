package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/test/framework/metricservice"
	"github.com/penstock-project/penstock/test/framework/port"
)

// metered is an extension of one ConfigMap. A metric service judges its rollouts.
const metered = "meter"

// judgedByMetrics shows how a metric rolls back a version whose objects are all available.
func judgedByMetrics(ctx context.Context, d *demo) {
	service := &metricservice.Service{}
	listener := get(port.Outside())
	// The service reports the errors of the version that is being rolled out.
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service.Answer()
		config, err := d.cluster.core.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(r.Context(), metered, metav1.GetOptions{})
		if err == nil {
			service.Answer(map[string]float64{"1": 0.01, "2": 0.31}[config.Data["retries"]])
		}
		service.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	d.show(ctx, "kubectl apply -f - <<'EOF'\napiVersion: penstock.dev/v1alpha1\nkind: MetricCheck\nmetadata: {name: error-rate}\nspec:\n  address: http://"+listener.Addr().String()+
		"\n  query: errors{extension={{extension}}} / requests{extension={{extension}}}\n  max: 0.05\n  initialDelaySeconds: 0\nEOF")
	roll := func(number int) string {
		return fmt.Sprintf(`kubectl apply -f - <<'EOF'
apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata: {name: %[1]s-%[2]d}
spec:
  revision: %[2]d
  metricChecks: [error-rate]
  onFailure: Rollback
  progressDeadlineMinutes: 10
  phases:
  - name: config
    objects:
    - object: {apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s, namespace: default}, data: {retries: "%[2]d"}}
EOF`, metered, number)
	}
	d.show(ctx, roll(1)+fmt.Sprintf("\nkubectl wait cer/%s-1 --for=condition=Succeeded --timeout=%s", metered, patience))
	d.show(ctx, roll(2)+fmt.Sprintf("\nkubectl wait cer/%s-2 --for=condition=RolledBack --timeout=%s", metered, patience))
	out := d.show(ctx, fmt.Sprintf(`kubectl get cer %s-2 -o jsonpath='{.status.conditions[?(@.type=="RolledBack")].message}{"\n"}{.status.metricChecks}{"\n"}'`, metered))
	d.claim(strings.Contains(out, "MetricCheck error-rate says No: 0.31 is above the maximum of 0.05") && strings.Contains(out, `"verdict":"No"`),
		"all objects were available, and what users feel rolled the version back", "MetricCheck error-rate says No", out)
	value := d.quiet(ctx, fmt.Sprintf("kubectl wait cer/%[1]s-3 --for=condition=Succeeded --timeout=%[2]s >/dev/null && kubectl get configmap %[1]s -o jsonpath='{.data.retries}' && kubectl delete metriccheck error-rate >/dev/null", metered, patience))
	d.claim(strings.TrimSpace(value) == "1", "the content of the version before is back", "1", value)
}
