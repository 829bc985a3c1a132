package console

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/penstock-project/penstock/test/framework/cable"
	"github.com/penstock-project/penstock/test/framework/cluster"
)

// The clients of the provider. kube-apiserver trusts only the first client.
const (
	trustedClient = "penstock-console"
	otherClient   = "another-application"
)

// The user of the provider.
const (
	providerUser     = "test-user2"
	providerPassword = "verysecure"
	// providerSubject is the name of the user in the cluster.
	providerSubject = "oidc:id2"
)

// provider is an OpenID Connect provider over TLS: the certified server of zitadel/oidc with its
// example users.
type provider struct {
	*storage.Storage
	server *httptest.Server
	issuer string

	mu sync.Mutex
	// redirect is the URL to which the provider sends clients back.
	redirect string
	// lifetime is the lifetime of ID tokens.
	lifetime time.Duration
	// claims replace the claims of the next ID tokens. This invalidates their signatures.
	claims map[string]any
	// refuseRefresh ends sessions. renewed and revoked count the renewed and the revoked tokens.
	refuseRefresh    bool
	renewed, revoked int
}

// newProvider starts a provider until the test ends.
func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{lifetime: time.Hour}
	p.server = httptest.NewUnstartedServer(nil)
	// The test causes TLS errors on purpose: their log is discarded.
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	t.Cleanup(func() { p.server.CloseClientConnections(); p.server.Close() })
	p.issuer = p.server.URL
	p.Storage = storage.NewStorage(storage.NewUserStore(p.issuer))
	for _, id := range []string{trustedClient, otherClient} {
		storage.RegisterClients(storage.NativeClient(id))
	}
	routes := exampleop.SetupServer(p.issuer, p, slog.New(slog.DiscardHandler), false)
	p.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(routes, w, r) })
	return p
}

// trusted returns an option with which kube-apiserver trusts the provider.
func (p *provider) trusted(t *testing.T) cluster.Option {
	t.Helper()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	config, err := json.Marshal(object{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": []any{object{
		"issuer":        object{"url": p.issuer, "audiences": []any{trustedClient}, "certificateAuthority": string(authority)},
		"claimMappings": object{"username": object{"claim": "sub", "prefix": "oidc:"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "authentication.json")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return cluster.APIServerArgs("--authentication-config=" + path)
}

// serve answers as the provider, with the changes of the test.
func (p *provider) serve(routes http.Handler, w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	claims := maps.Clone(p.claims)
	if r.URL.Path == "/revoke" {
		p.revoked++
	}
	p.mu.Unlock()
	if r.URL.Path != "/oauth/token" {
		routes.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	routes.ServeHTTP(answer, r)
	maps.Copy(w.Header(), answer.Header())
	body := answer.Body.Bytes()
	if tokens := (map[string]any{}); len(claims) > 0 && json.Unmarshal(body, &tokens) == nil && tokens["id_token"] != nil {
		tokens["id_token"] = withClaims(tokens["id_token"].(string), claims)
		body, _ = json.Marshal(tokens) // the body was JSON before
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(answer.Code)
	_, _ = io.Copy(w, bytes.NewReader(body))
}

// withClaims returns a token with changed claims and its old signature.
func withClaims(token string, claims map[string]any) string {
	parts, all := strings.Split(token, "."), map[string]any{}
	raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
	_ = json.Unmarshal(raw, &all)
	maps.Copy(all, claims)
	raw, _ = json.Marshal(all)
	return strings.Join([]string{parts[0], base64.RawURLEncoding.EncodeToString(raw), parts[2]}, ".")
}

func (p *provider) change(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// GetClientByClientID returns the client as a public client of a browser.
func (p *provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	known, err := p.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return publicClient{Client: known, redirect: p.redirect, lifetime: p.lifetime}, nil
}

// TokenRequestByRefreshToken counts the renewed tokens, or refuses to renew them.
func (p *provider) TokenRequestByRefreshToken(ctx context.Context, token string) (op.RefreshTokenRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuseRefresh {
		return nil, fmt.Errorf("the session has ended")
	}
	p.renewed++
	return p.Storage.TokenRequestByRefreshToken(ctx, token)
}

func (p *provider) counts() (renewed, revoked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.renewed, p.revoked
}

// publicClient is a client without a secret, in a browser.
type publicClient struct {
	op.Client
	redirect string
	lifetime time.Duration
}

func (c publicClient) ApplicationType() op.ApplicationType { return op.ApplicationTypeUserAgent }
func (c publicClient) RedirectURIs() []string              { return []string{c.redirect} }
func (c publicClient) PostLogoutRedirectURIs() []string    { return []string{c.redirect} }
func (c publicClient) IDTokenLifetime() time.Duration      { return c.lifetime }

// signIn: users sign in at the provider and return to the same screen. In the cluster they are the
// user of their token. The page ignores answers that do not belong to a sign-in of the tab.
func signIn(t *testing.T, i *installation, idp *provider) {
	console, pod := withProvider(t, i, idp, trustedClient)
	i.MustKubectl("create", "clusterrolebinding", "of-the-provider", "--clusterrole=cluster-admin", "--user="+providerSubject)

	p := strange(t, i, idp, console)
	p.opens("#/x/billing")
	p.sees("Sign in", "Sign in at "+strings.TrimPrefix(idp.issuer, "https://"), "Or enter a token")
	p.checks("sign-in-provider")
	p.signsIn()
	p.sees("as "+providerSubject, "billing-1")
	p.until("it is the place of before, and no code is in it", `location.href === `+quoted(console.Address+"#/x/billing"))
	p.until("there is no cookie, and nothing of the sign-in is left", `document.cookie === "" && sessionStorage.getItem("penstock.oidc.pending") === null`)
	p.until("the token is nowhere in the page", `!document.documentElement.outerHTML.includes("eyJ")`)

	strangeAnswers(p)
	t.Run("Renewed", func(t *testing.T) { renewed(strange(t, i, idp, console), idp) })
	t.Run("Out", func(t *testing.T) {
		_, before := idp.counts()
		p.click("#sign-out")
		p.sees("Sign in at")
		p.until("nothing is left in the tab", `sessionStorage.length === 0`)
		if _, after := idp.counts(); after != before+1 {
			t.Errorf("%d refresh tokens were revoked, want 1", after-before)
		}
	})
	t.Run("Claims", func(t *testing.T) { wrongClaims(strange(t, i, idp, console), idp) })
	t.Run("Untrusted", func(t *testing.T) {
		other, _ := withProvider(t, i, idp, otherClient)
		p := strange(t, i, idp, other)
		p.opens("")
		p.signsIn()
		p.sees("kube-apiserver does not accept the token", "The sign-in at", "with the client ID "+otherClient)
		p.checks("sign-in-untrusted")
	})
	if log := pod.process.Log(); strings.Contains(log, "eyJ") {
		t.Errorf("the console has logged a token: %s", log)
	}
}

// withProvider starts a console in the cluster as a client of the provider.
func withProvider(t *testing.T, i *installation, idp *provider, client string) (*served, *behind) {
	t.Helper()
	way := cable.New(t, "")
	host := "localhost:" + port(t, way.Address())
	pod := inCluster(t, i, host, "--oidc-issuer-url="+idp.issuer, "--oidc-client-id="+client, "--oidc-extra-scope=offline_access")
	way.LeadTo(pod.address)
	console := opened(t, host, pod)
	idp.change(func() { idp.redirect = console.Address })
	return console, pod
}

// strange returns a tab that accepts the certificates of the test and may send requests to the
// provider.
func strange(t *testing.T, i *installation, idp *provider, console *served) *page {
	t.Helper()
	p := blank(t, i.browser, console)
	p.others = []string{idp.issuer + "/"}
	p.run(security.SetIgnoreCertificateErrors(true))
	return p
}

// opens loads the console again, at a place, like a link. It does not use Navigate, which hangs if
// the page changes its address while loading.
func (p *page) opens(place string) {
	p.t.Helper()
	p.run(chromedp.Navigate("about:blank"), chromedp.Evaluate("location.href = "+quoted(p.console.Address+place)+";0", nil))
	p.until("the console is loaded", "location.origin === "+quoted(p.console.Origin)+" && document.querySelector('main h1')")
}

// signsIn signs in at the provider and returns to the console.
func (p *page) signsIn() {
	p.t.Helper()
	p.sees("Sign in at")
	p.click("#provider")
	p.has("input[name=username]")
	p.types("input[name=username]", providerUser)
	p.types("input[name=password]", providerPassword)
	p.click("button[type=submit]")
	p.until("back at the console", "location.origin === "+quoted(p.console.Origin))
}

// strangeAnswers: a link with an answer of the provider that this tab did not request changes
// nothing. The page removes the answer from its address.
func strangeAnswers(p *page) {
	token := ""
	p.run(chromedp.Evaluate(`sessionStorage.getItem("penstock.key")`, &token))
	for name, query := range map[string]string{
		"a code":             "?code=stolen&state=guessed",
		"a code alone":       "?code=stolen",
		"a refusal":          "?error=<img src=x onerror=document.title='owned'>&error_description=owned&state=guessed",
		"a place of another": "?code=stolen&state=guessed&redirect_uri=https://evil.test&next=https://evil.test#//evil.test",
	} {
		p.opens(query)
		p.sees("The sign-in has failed", "did not begin in this tab", "as "+providerSubject)
		now, address := "", ""
		p.run(chromedp.Evaluate(`sessionStorage.getItem("penstock.key")`, &now), chromedp.Location(&address))
		if now != token {
			p.t.Errorf("%s: the tab has a different token", name)
		}
		if strings.Contains(address, "?") || !strings.HasPrefix(address, p.console.Address) {
			p.t.Errorf("%s: the address is %s", name, address)
		}
	}
	p.opens("")
	p.sees("as " + providerSubject)

	// The same in a tab that has begun a sign-in: the answer has another issuer or another state.
	for name, tc := range map[string]struct{ query, says string }{
		"another issuer":    {`"?code=stolen&state=" + state + "&iss=https://evil.test"`, "the answer is of https://evil.test"},
		"another state":     {`"?code=stolen&state=x" + state`, "did not begin in this tab"},
		"a refused sign-in": {`"?error=access_denied&error_description=" + encodeURIComponent("<b>owned</b>") + "&state=" + state`, "access_denied: <b>owned</b>"},
		"a foreign code":    {`"?code=stolen&state=" + state`, "answers 400"},
	} {
		p.run(chromedp.Evaluate(fmt.Sprintf(`sessionStorage.setItem("penstock.oidc.pending", JSON.stringify({state: "known", nonce: "n", verifier: "v", place: "#/me"})); { const state = "known"; location.href = "/" + %s }`, tc.query), nil))
		p.sees("The sign-in has failed", tc.says, "as "+providerSubject)
		p.until(name+": a sign-in is answered once", `sessionStorage.getItem("penstock.oidc.pending") === null && location.search === ""`)
	}
	p.opens("")
	p.sees("as " + providerSubject)
	p.unsees("The sign-in has failed")
}

// renewed: the tab renews its token in time, and the user can continue. When the provider ends the
// session, the user signs in again.
func renewed(p *page, idp *provider) {
	idp.change(func() { idp.lifetime = 2 * time.Second })
	p.opens("#/x/billing")
	p.signsIn()
	p.sees("as "+providerSubject, "billing-1")
	first := ""
	p.run(chromedp.Evaluate(`sessionStorage.getItem("penstock.key")`, &first))
	idp.change(func() { idp.lifetime = time.Hour })
	p.until("a token is renewed", `(location.hash = location.hash === "#/me" ? "#/profiles" : "#/me", sessionStorage.getItem("penstock.key") !== `+quoted(first)+`)`)
	p.goTo("#/me")
	p.sees("User", providerSubject, "Nothing is missing")
	if count, _ := idp.counts(); count == 0 {
		p.t.Error("no token was refreshed at the provider")
	}

	// The provider ends the session.
	idp.change(func() { idp.refuseRefresh = true })
	defer idp.change(func() { idp.refuseRefresh = false })
	p.run(chromedp.Evaluate(`{ const of = JSON.parse(sessionStorage.getItem("penstock.oidc")); sessionStorage.setItem("penstock.oidc", JSON.stringify({...of, renewAt: 0, endsAt: 0})); sessionStorage.setItem("penstock.key", sessionStorage.getItem("penstock.key").replace(/.$/, "")) }`, nil))
	p.goTo("#/profiles")
	p.sees("You are signed out")
	p.until("it does not try again", `JSON.parse(sessionStorage.getItem("penstock.oidc")).refresh === ""`)
	p.click("#again")
	p.sees("Sign in at")
	p.until("the place stays", `location.hash === "#/profiles"`)
}

// wrongClaims: the page rejects ID tokens of another provider, another console or another sign-in.
func wrongClaims(p *page, idp *provider) {
	defer idp.change(func() { idp.claims = nil })
	for says, claims := range map[string]map[string]any{
		"the audience " + otherClient:  {"aud": otherClient},
		"the issuer https://evil.test": {"iss": "https://evil.test"},
		"the nonce of another sign-in": {"nonce": "another"},
	} {
		idp.change(func() { idp.claims = claims })
		p.opens("")
		p.signsIn()
		p.sees("The sign-in has failed", says)
		p.until("the tab has no token", `sessionStorage.getItem("penstock.key") === null`)
	}
	// The page does not check the signature. kube-apiserver does.
	idp.change(func() { idp.claims = map[string]any{"sub": "id1"} })
	p.opens("")
	p.signsIn()
	p.sees("kube-apiserver does not accept the token")
}
