//go:build integration

package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	certutil "k8s.io/client-go/util/cert"

	"github.com/penstock-project/penstock/test/framework/drafts"
	"github.com/penstock-project/penstock/test/framework/objects"
	"github.com/penstock-project/penstock/test/framework/poll"
)

const consoleHost = "console.example.com"

// console installs the console. A user with a ServiceAccount token reaches it through its Service
// and sees only what RBAC allows. Once the ServiceAccount is deleted, the user sees nothing.
func (i *installation) console() {
	certificate, key, err := certutil.GenerateSelfSignedCertKey(consoleHost, nil, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	secret := objects.Secret(system, "penstock-console-tls", "tls.crt="+string(certificate), "tls.key="+string(key))
	i.MustKubectlInput(drafts.Object(secret).String(), "create", "-f", "-")
	dir := overlay(i.t)
	write(i.t, dir, "console", earlier, "")
	i.MustKubectl("apply", "--server-side", "-k", dir)
	i.MustKubectl("rollout", "status", "deployment/penstock-console", "--namespace="+system, poll.TimeoutFlag)

	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	address := i.system.Field("service/penstock-console", ".spec.clusterIP") + ":443"
	browser := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
	defer browser.CloseIdleConnections()
	i.MustKubectl("create", "serviceaccount", "dora", "--namespace=shop")
	token := strings.TrimSpace(i.MustKubectl("create", "token", "dora", "--namespace=shop"))
	answers := func(path string, status int, text string) {
		i.t.Helper()
		// kube-apiserver learns of RBAC changes from a watch, with a delay.
		poll.Eventually(i.t, path, func() (bool, string) {
			request, err := http.NewRequestWithContext(i.t.Context(), http.MethodGet, "https://"+consoleHost+path, nil)
			if err != nil {
				return false, err.Error()
			}
			request.Header.Set("Sec-Fetch-Site", "same-origin")
			request.Header.Set("Authorization", "Bearer "+token)
			answer, err := browser.Do(request)
			if err != nil {
				return false, err.Error()
			}
			defer answer.Body.Close()
			said, err := io.ReadAll(answer.Body)
			return err == nil && answer.StatusCode == status && strings.Contains(string(said), text), fmt.Sprintf("%s: %s", answer.Status, said)
		})
	}
	const revision = "/api/revisions/shop-1/objects"
	answers("/api/me", http.StatusOK, "system:serviceaccount:shop:dora")
	answers(revision, http.StatusForbidden, "clusterextensionrevisions")
	i.MustKubectl("create", "clusterrolebinding", "dora", "--clusterrole=view", "--serviceaccount=shop:dora")
	answers(revision, http.StatusOK, "settings")
	i.MustKubectl("delete", "serviceaccount", "dora", "--namespace=shop")
	answers(revision, http.StatusUnauthorized, "")

	i.MustKubectl("delete", "clusterrolebinding", "dora")
	i.MustKubectl("delete", "-k", dir, poll.TimeoutFlag)
	i.intact(earlier)
}
