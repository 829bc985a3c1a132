package chart_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// object has the fields of any kind that this test reads.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Selector struct{ MatchLabels map[string]string }
		// Ports are the ports of a Service.
		Ports     []struct{ Name string }
		Endpoints []struct {
			Port      string
			TLSConfig struct {
				CA struct{ Secret struct{ Name, Key string } }
			} `json:"tlsConfig"`
		}
	}
}

// TestServiceMonitor: the ServiceMonitor selects the Service, and verifies its certificate with an
// existing Secret. Otherwise Prometheus would silently scrape nothing.
func TestServiceMonitor(t *testing.T) {
	for mode, secret := range map[string]string{"self": "penstock-ca", "cert-manager": "penstock-serving", "secret": "somebodys"} {
		tls := values{"mode": mode}
		if mode == "secret" {
			tls["secretName"] = secret
		}
		made, err := load(t, folder).Render(t.Context(), "penstock-system", "v1.36.0", with(values{"tls": tls, "monitoring": values{"enabled": true}}))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]object{}
		for document := range strings.SplitSeq(made, "\n---\n") {
			// Selectors of other kinds have another type.
			if !strings.Contains(document, "kind: Service\n") && !strings.Contains(document, "kind: ServiceMonitor\n") {
				continue
			}
			document = strings.Replace(document, "selector: {app.kubernetes.io/name: penstock}", "", 1)
			var one object
			if err := yaml.Unmarshal([]byte(document), &one); err != nil {
				t.Fatalf("%v:\n%s", err, document)
			}
			found[one.Kind] = one
		}
		service, monitor := found["Service"], found["ServiceMonitor"]
		if len(monitor.Spec.Endpoints) != 1 || len(monitor.Spec.Selector.MatchLabels) == 0 {
			t.Fatalf("%s: the ServiceMonitor is %+v", mode, monitor)
		}
		for label, value := range monitor.Spec.Selector.MatchLabels {
			if service.Metadata.Labels[label] != value {
				t.Errorf("%s: the ServiceMonitor selects %s=%s, and the Service has the labels %v", mode, label, value, service.Metadata.Labels)
			}
		}
		endpoint, port := monitor.Spec.Endpoints[0], false
		for _, p := range service.Spec.Ports {
			port = port || p.Name == endpoint.Port
		}
		if got := endpoint.TLSConfig.CA.Secret; !port || got.Name != secret || got.Key != "ca.crt" {
			t.Errorf("%s: the ServiceMonitor asks for port %s, verified by %+v; want Secret %s", mode, endpoint.Port, got, secret)
		}
	}
}
