package console

import (
	"bufio"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"
)

// ingress terminates TLS in front of the console, and adds the token of the signed-in user.
type ingress struct {
	*httptest.Server
	host string

	mu sync.Mutex
	// token is added to each request. console receives the requests.
	token   string
	console *httputil.ReverseProxy
}

// newIngress listens. Requests fail until leadTo is called.
func newIngress(t *testing.T) *ingress {
	t.Helper()
	in := &ingress{}
	in.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in.mu.Lock()
		console := in.console
		in.mu.Unlock()
		console.ServeHTTP(w, r)
	}))
	// The test causes TLS errors and cut connections on purpose: their log is discarded.
	in.Config.ErrorLog = log.New(io.Discard, "", 0)
	in.EnableHTTP2 = true
	in.StartTLS()
	t.Cleanup(func() { in.CloseClientConnections(); in.Close() })
	in.host = "localhost:" + port(t, in.Listener.Addr().String())
	return in
}

// leadTo forwards requests to the console, with the browser's Host and the token.
func (in *ingress) leadTo(pod *behind) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.console = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "https", Host: pod.address})
			r.Out.Host = r.In.Host
			r.SetXForwarded()
			in.mu.Lock()
			defer in.mu.Unlock()
			r.Out.Header.Set("Authorization", "Bearer "+in.token)
		},
		// The console compresses its answers itself.
		Transport:    &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pod.trusted, ServerName: "localhost", MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, DisableCompression: true},
		ErrorLog:     in.Config.ErrorLog,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

func (in *ingress) signIn(token string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.token = token
}

// ask sends a request like a browser. The function change modifies it first.
func (in *ingress) ask(t *testing.T, method, path, body string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, in.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = in.host
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	if method != http.MethodGet {
		request.Header.Set("Origin", "https://"+in.host)
		request.Header.Set("Content-Type", "application/json")
	}
	change(request)
	answer, err := in.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(said)
}

// behindIngress: the console acts as the user of the ingress's token. The ingress also adds the
// token to requests from foreign pages, so the console checks the origin. Changes arrive at once.
// An expired token is reported once.
func behindIngress(t *testing.T, i *installation) {
	in := newIngress(t)
	pod := inCluster(t, i, in.host)
	in.leadTo(pod)
	in.signIn(strings.TrimSpace(i.MustKubectl("create", "token", "dora", "-n", "shop")))

	// The page has no token and does not ask for a token.
	p := blank(t, i.browser, opened(t, in.host, pod))
	p.run(security.SetIgnoreCertificateErrors(true), chromedp.Navigate("https://"+in.host+"/"))
	p.sees("as system:serviceaccount:shop:dora", "Extensions", "billing")
	p.until("there is no token in the tab", "sessionStorage.length === 0 && !document.querySelector('#sign-out')")

	// Behind the ingress too, only pages of the console may send requests, and only to the
	// console's own host name.
	const write = "/api/revisions/billing-1/state"
	const body = `{"uid":"x","generation":1,"state":"Paused"}`
	for name, tc := range map[string]struct {
		method, path string
		change       func(*http.Request)
		status       int
		says         string
	}{
		"own page":           {"GET", "/api/me", func(*http.Request) {}, 200, "system:serviceaccount:shop:dora"},
		"own page, write":    {"POST", write, func(*http.Request) {}, 409, "review it again"},
		"web page, read":     {"GET", "/api/me", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, "only pages of the console"},
		"sibling, write":     {"POST", write, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403, "only pages of the console"},
		"other origin":       {"POST", write, func(r *http.Request) { r.Header.Set("Origin", "https://evil.test") }, 403, "another origin"},
		"origin without TLS": {"POST", write, func(r *http.Request) { r.Header.Set("Origin", "http://"+in.host) }, 403, "another origin"},
		"form":               {"POST", write, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, "application/json"},
		"name of a stranger": {"GET", "/", func(r *http.Request) { r.Host = "evil.test" }, 403, "not the address of the console"},
		"address of the Pod": {"GET", "/api/me", func(r *http.Request) { r.Host = pod.address }, 403, "not the address of the console"},
	} {
		if answer, said := in.ask(t, tc.method, tc.path, body, tc.change); answer.StatusCode != tc.status || !strings.Contains(said, tc.says) {
			t.Errorf("%s: %s %s, want %d, %s", name, answer.Status, said, tc.status, tc.says)
		}
	}
	notBuffered(t, in)

	// A change in the cluster updates the page.
	i.roll("Succeeded", revision{extension: "through", number: 1, version: "4.5.6", phases: []phase{{"all", []object{configMap("shop", "through", "a", "b")}}}})
	p.sees("through", "4.5.6")

	// The token expires while the page is open: the connection ends, and later requests are
	// refused.
	in.signIn("a-token-that-has-ended")
	in.CloseClientConnections()
	p.sees("You are signed out", "through")
	if answer, said := in.ask(t, "GET", "/api/me", "", func(*http.Request) {}); answer.StatusCode != http.StatusUnauthorized || strings.Contains(said, "a-token") {
		t.Errorf("after the end: %s %s", answer.Status, said)
	}
	in.signIn(strings.TrimSpace(i.MustKubectl("create", "token", "dora", "-n", "shop")))
	p.click("#again")
	p.unsees("You are signed out")
	p.sees("Extensions", "through")
	if log := pod.process.Log(); strings.Contains(log, "eyJ") || strings.Contains(log, "a-token") {
		t.Errorf("the console has logged a token: %s", log)
	}
}

// notBuffered reads the first message of an open stream. The answer tells proxies not to buffer.
func notBuffered(t *testing.T, in *ingress) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, in.URL+"/api/watch/overview", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = in.host
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, err := in.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	for said := ""; !strings.Contains(said, `"kind":"synced"`); {
		if said, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("the stream ended early: %v", err)
		}
	}
	if got := answer.Header.Get("X-Accel-Buffering"); got != "no" {
		t.Errorf("X-Accel-Buffering is %q", got)
	}
	// The Go client asked for gzip by itself, and decompressed the answer.
	if !answer.Uncompressed {
		t.Error("the stream is not compressed")
	}
}
