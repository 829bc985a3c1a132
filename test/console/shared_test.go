package console

import (
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

	"github.com/penstock-project/penstock/test/framework/penstock"
)

// inCluster starts the console that many users share, as its Pod does: without credentials.
func inCluster(t *testing.T, i *installation) *served {
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
	// The host has the port in it, so it has to be known before.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	host := "localhost:" + port
	command := exec.Command(i.program.Path(), "console", "--listen="+address, "--host="+host, "--tls-cert-file="+filepath.Join(dir, "tls.crt"), "--tls-private-key-file="+filepath.Join(dir, "tls.key"),
		"--api-server="+i.Config().Host, "--api-server-ca-file="+filepath.Join(dir, "host.crt"), "--cluster-name=the tested cluster")
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	process := penstock.Start(t, command)
	process.Await(t, "the console listens")
	return &served{address: "https://" + host + "/", origin: "https://" + host, stop: func() { process.Kill(t) }}
}

// shared: at the door in the cluster nobody is anybody without a token, each is who their token
// says, with their rights and no others, and a link brings no token.
func shared(t *testing.T, i *installation) {
	console := inCluster(t, i)
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
	p.run(security.SetIgnoreCertificateErrors(true), chromedp.Navigate(console.address+"#key="+token("dora")))
	p.sees("Sign in", "This console acts as you")
	p.checks("sign-in")
	p.types("#token", "nonsense")
	p.tabTo("#enter")
	p.presses(kb.Enter)
	p.sees("The cluster does not take your token", "provide credentials")

	p.types("#token", token("emil"))
	p.presses(kb.Enter)
	p.sees("the tested cluster as system:serviceaccount:shop:emil", "You may not see this", "cannot list resource")
	p.click("#sign-out")
	p.sees("Sign in")

	p.types("#token", token("dora"))
	p.presses(kb.Enter)
	p.sees("as system:serviceaccount:shop:dora", "Extensions", "billing")
	p.goTo("#/diff/..vault-1")
	p.click("#activate")
	p.ticksAll()
	p.click("#yes")
	i.MustKubectl("wait", "--for=jsonpath={.spec.lifecycleState}=Active", "--timeout=60s", "cer/vault-1")
	p.until("the token is nowhere in the page", `!document.documentElement.outerHTML.includes("eyJ")`)

	// Of two tabs, one is not signed in by the other.
	second := blank(t, i.browser, console)
	second.run(security.SetIgnoreCertificateErrors(true), chromedp.Navigate(console.address))
	second.sees("Sign in")
}
