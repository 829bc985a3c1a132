package console

import (
	"crypto/x509"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"k8s.io/client-go/util/cert"

	"github.com/penstock-project/penstock/test/framework/cable"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// behind is the shared console as its Pod runs it: without credentials of its own, for a public
// host name.
type behind struct {
	// address is the listen address. trusted contains its certificate, which is for localhost.
	address string
	trusted *x509.CertPool
	process *penstock.Server
}

// inCluster starts the shared console on a free port, with additional flags.
func inCluster(t *testing.T, i *installation, host string, flags ...string) *behind {
	t.Helper()
	dir := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	authority := i.Config().CAData
	if len(authority) == 0 {
		if authority, err = os.ReadFile(i.Config().CAFile); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "host.crt": authority} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(i.program.Path(), append([]string{"console", "--listen=127.0.0.1:0", "--host=" + host, "--tls-cert-file=" + filepath.Join(dir, "tls.crt"), "--tls-private-key-file=" + filepath.Join(dir, "tls.key"),
		"--api-server=" + i.Config().Host, "--api-server-ca-file=" + filepath.Join(dir, "host.crt"), "--cluster-name=the tested cluster"}, flags...)...)
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	process := penstock.Start(t, command)
	process.Await(t, ", for "+host)
	_, rest, _ := strings.Cut(process.Log(), "the console listens on ")
	address, _, found := strings.Cut(rest, ", for ")
	if !found {
		t.Fatalf("it does not say where it listens: %s", process.Log())
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	return &behind{address: address, trusted: trusted, process: process}
}

// opened returns the console at the address that browsers open.
func opened(t *testing.T, host string, console *behind) *served {
	return &served{Address: "https://" + host + "/", Origin: "https://" + host, Stop: func() { console.process.Kill(t) }}
}

// port returns the port of an address.
func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// shared: the console in the cluster requires a token. Each user has exactly the rights of their
// token, and a link cannot bring a token.
func shared(t *testing.T, i *installation) {
	// The public host includes a port, which must be known before the console listens. An ingress
	// that passes TLS through works in the same way.
	way := cable.New(t, "")
	host := "localhost:" + port(t, way.Address())
	pod := inCluster(t, i, host)
	way.LeadTo(pod.address)
	console := opened(t, host, pod)
	i.MustKubectlInput(strings.TrimSpace(`
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: dora, namespace: shop}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: emil, namespace: shop}}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: dora}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
  subjects: [{kind: ServiceAccount, name: dora, namespace: shop}]
`), "create", "-f", "-")
	token := func(name string) string {
		return strings.TrimSpace(i.MustKubectl("create", "token", name, "-n", "shop"))
	}
	p := blank(t, i.browser, console)
	p.run(security.SetIgnoreCertificateErrors(true), chromedp.Navigate(console.Address+"#key="+token("dora")))
	p.sees("Sign in", "This console acts as you")
	p.checks("sign-in")
	p.types("#token", "nonsense")
	p.tabTo("#enter")
	p.presses(kb.Enter)
	p.sees("The cluster does not accept your token", "Unauthorized")

	p.types("#token", token("emil"))
	p.presses(kb.Enter)
	p.sees("the tested cluster as system:serviceaccount:shop:emil", "You cannot see this", "cannot list resource")
	p.click("#sign-out")
	p.sees("Sign in")

	p.types("#token", token("dora"))
	p.presses(kb.Enter)
	p.sees("as system:serviceaccount:shop:dora", "Extensions", "billing")
	p.goTo("#/diff/..vault-1")
	p.click("#activate")
	p.ticksAll()
	p.click("#yes")
	i.MustKubectl("wait", "--for=jsonpath={.spec.lifecycleState}=Active", poll.TimeoutFlag, "cer/vault-1")
	p.until("the token is nowhere in the page", `!document.documentElement.outerHTML.includes("eyJ")`)

	// A sign-in in the first tab does not sign in the second tab.
	second := blank(t, i.browser, console)
	second.run(security.SetIgnoreCertificateErrors(true), chromedp.Navigate(console.Address))
	second.sees("Sign in")
}
