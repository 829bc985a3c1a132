//go:build integration

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// serviceMonitor has the fields of a ServiceMonitor that the test reads.
type serviceMonitor struct {
	Spec struct {
		Selector  metav1.LabelSelector
		Endpoints []struct {
			Port, Scheme, Path string
			Authorization      struct{ Credentials corev1.SecretKeySelector }
			TLSConfig          struct {
				ServerName string
				CA         struct{ Secret corev1.SecretKeySelector }
			} `json:"tlsConfig"`
		}
	}
}

// scraped reads metrics as Prometheus would with the chart's ServiceMonitor: from the selected
// Service, with its authority and its rights.
func (i *installation) scraped() {
	i.t.Helper()
	var monitor serviceMonitor
	if err := json.Unmarshal([]byte(i.MustKubectl("get", "servicemonitor", "penstock", system, "-o", "json")), &monitor); err != nil {
		i.t.Fatal(err)
	}
	endpoint := monitor.Spec.Endpoints[0]
	if found := i.MustKubectl("get", "service", system, "-l", metav1.FormatLabelSelector(&monitor.Spec.Selector), "-o", `jsonpath={.items[*].spec.ports[?(@.name=="`+endpoint.Port+`")].name}`); found != endpoint.Port {
		i.t.Fatalf("the ServiceMonitor selects %q, want port %s of exactly one Service", found, endpoint.Port)
	}
	client, err := kubernetes.NewForConfig(i.Config())
	if err != nil {
		i.t.Fatal(err)
	}
	read := func(name string) *corev1.Secret {
		secret, err := client.CoreV1().Secrets("penstock-system").Get(i.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			i.t.Fatal(err)
		}
		return secret
	}
	// No controller fills the token Secret here, so the test requests a token.
	account := read(endpoint.Authorization.Credentials.Name).Annotations[corev1.ServiceAccountNameKey]
	token, err := client.CoreV1().ServiceAccounts("penstock-system").CreateToken(i.t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		i.t.Fatal(err)
	}
	config := &rest.Config{Host: fmt.Sprint("https://127.0.0.1:", i.running[0].Port()), BearerToken: token.Status.Token, TLSClientConfig: rest.TLSClientConfig{
		ServerName: endpoint.TLSConfig.ServerName, CAData: read(endpoint.TLSConfig.CA.Secret.Name).Data[endpoint.TLSConfig.CA.Secret.Key],
	}}
	if body, code := get(i.t, config, endpoint.Path); code != http.StatusOK || !strings.Contains(body, "penstock_leader ") {
		i.t.Errorf("scraping %s as %s: %d: %.300s", endpoint.Path, account, code, body)
	}
}
