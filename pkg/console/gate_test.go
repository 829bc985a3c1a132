package console

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/console/screens"
	"github.com/penstock-project/penstock/pkg/console/web"
)

const (
	testKey  = "the-key-of-this-test"
	testHost = "127.0.0.1:4711"
)

// upstream is a cluster that counts the requests, and refuses them.
type upstream struct {
	*httptest.Server
	asked []string
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.asked = append(u.asked, r.Method+" "+r.URL.Path)
		for name := range r.Header {
			if strings.HasPrefix(name, "Impersonate-") {
				t.Errorf("%s impersonates: %s", r.URL.Path, name)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"jane cannot"}`)
	}))
	t.Cleanup(u.Close)
	return u
}

func testConsole(t *testing.T, change func(*Options, *screens.Options)) (http.Handler, *upstream) {
	t.Helper()
	cluster := newUpstream(t)
	shown := screens.Options{Config: &rest.Config{Host: cluster.URL}, Cluster: "test", Version: "v0.0.0"}
	options := Options{Key: testKey, Hosts: []string{testHost, "localhost:4711"}, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	if change != nil {
		change(&options, &shown)
	}
	var err error
	if options.Screens, err = screens.New(shown); err != nil {
		t.Fatal(err)
	}
	handler, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return handler, cluster
}

// request is a request of a page of the console. Each case changes some fields.
type request struct {
	method, path, host, body string
	header                   map[string]string
}

func (r request) send(handler http.Handler) *httptest.ResponseRecorder {
	if r.method == "" {
		r.method = http.MethodGet
	}
	if r.path == "" {
		r.path = "/api/me"
	}
	asked := httptest.NewRequest(r.method, r.path, strings.NewReader(r.body))
	asked.Host = testHost
	if r.host != "" {
		asked.Host = strings.TrimPrefix(r.host, "none")
	}
	asked.Header.Set("Sec-Fetch-Site", "same-origin")
	asked.Header.Set("Authorization", "Bearer "+testKey)
	if r.method != http.MethodGet {
		asked.Header.Set("Content-Type", "application/json")
		asked.Header.Set("Origin", "http://"+testHost)
	}
	for name, value := range r.header {
		asked.Header.Del(name)
		if value != "" {
			asked.Header.Set(name, value)
		}
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, asked)
	return answer
}

const rollback = "/api/revisions/shop-1/rollback"

// TestGate covers known attacks on other consoles.
func TestGate(t *testing.T) {
	const passes = http.StatusForbidden // by the cluster, which refuses everything
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	handler, cluster := testConsole(t, func(options *Options, _ *screens.Options) { options.Clock = clock })
	for name, tc := range map[string]struct {
		reason  string
		request request
		status  int
		said    string
	}{
		"own page":           {"who opened the console", request{}, passes, "Forbidden"},
		"own page, write":    {"the cluster decides", request{method: "POST", path: rollback, body: `{"from":"shop-2"}`}, passes, "Forbidden"},
		"localhost":          {"the other name of loopback", request{host: "localhost:4711"}, passes, "Forbidden"},
		"rebinding":          {"a name of a stranger that leads to loopback", request{host: "evil.test:4711"}, 403, "Host"},
		"rebinding, file":    {"not even files", request{host: "evil.test", path: "/"}, 403, "Host"},
		"wrong port":         {"another console's address", request{host: "127.0.0.1:4712"}, 403, "Host"},
		"no port":            {"", request{host: "127.0.0.1"}, 403, "Host"},
		"no host":            {"HTTP/1.0", request{host: "none"}, 403, "Host"},
		"suffix":             {"", request{host: "127.0.0.1:4711.evil.test"}, 403, "Host"},
		"other site":         {"a web page in the same browser", request{header: map[string]string{"Sec-Fetch-Site": "cross-site"}}, 403, "Origin"},
		"same site":          {"another port of this machine", request{header: map[string]string{"Sec-Fetch-Site": "same-site"}}, 403, "Origin"},
		"typed":              {"an address bar is no page of ours", request{header: map[string]string{"Sec-Fetch-Site": "none"}}, 403, "Origin"},
		"unsaid":             {"a browser that does not say", request{header: map[string]string{"Sec-Fetch-Site": ""}}, 403, "Origin"},
		"other origin":       {"although the site is said to be ours", request{header: map[string]string{"Origin": "http://evil.test"}}, 403, "Origin"},
		"null origin":        {"a sandboxed frame", request{header: map[string]string{"Origin": "null"}}, 403, "Origin"},
		"other port":         {"", request{header: map[string]string{"Origin": "http://127.0.0.1:80"}}, 403, "Origin"},
		"https":              {"", request{header: map[string]string{"Origin": "https://" + testHost}}, 403, "Origin"},
		"write, other site":  {"cross-site request forgery", request{method: "POST", path: rollback, header: map[string]string{"Sec-Fetch-Site": "cross-site"}}, 403, "Origin"},
		"write, form":        {"what a form can send", request{method: "POST", path: rollback, header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}, 415, "MediaType"},
		"write, text":        {"what needs no preflight", request{method: "POST", path: rollback, header: map[string]string{"Content-Type": "text/plain"}}, 415, "MediaType"},
		"write, no type":     {"", request{method: "POST", path: rollback, header: map[string]string{"Content-Type": ""}}, 415, "MediaType"},
		"no key":             {"another user of the machine", request{header: map[string]string{"Authorization": ""}}, 401, "Key"},
		"wrong key":          {"", request{header: map[string]string{"Authorization": "Bearer " + testKey + "x"}}, 401, "Key"},
		"key without bearer": {"", request{header: map[string]string{"Authorization": testKey}}, 401, "Key"},
		"key as cookie":      {"cookies do not know ports", request{header: map[string]string{"Authorization": "", "Cookie": "key=" + testKey}}, 401, "Key"},
		"key in the query":   {"addresses are logged", request{path: "/api/me?key=" + testKey, header: map[string]string{"Authorization": ""}}, 401, "Key"},
		"websocket":          {"there are none", request{header: map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Origin": "http://evil.test"}}, 403, "Origin"},
		"unknown path":       {"the list is closed: it is no proxy", request{path: "/api/v1/secrets"}, 404, "NotFound"},
		"unknown method":     {"", request{method: "DELETE", path: "/api/me"}, 404, "NotFound"},
		"path of the host":   {"", request{path: "/apis/olm.operatorframework.io/v1alpha1"}, 404, ""},
		"file, write":        {"", request{method: "POST", path: "/"}, 405, "Method"},
		"hostile name":       {"a name becomes part of a path", request{path: "/api/histories/..%2f..%2fsecrets"}, 400, "Name"},
		"write, too much":    {"", request{method: "POST", path: rollback, body: `{"cause":"` + strings.Repeat("x", maxBody) + `"}`}, 400, "Body"},
		"write, unbound":     {"it names no revision that was shown", request{method: "POST", path: rollback, body: `{"cause":"x"}`}, 400, "Body"},
		"write, unknown":     {"it may have been meant to matter", request{method: "POST", path: rollback, body: `{"form":"shop-2"}`}, 400, "Body"},
		"approve, unbound":   {"", request{method: "POST", path: "/api/plans/p/approve", body: `{}`}, 400, "Body"},
		"skip, unbound":      {"", request{method: "POST", path: "/api/rollouts/r/skip", body: `{"clusters":["a"]}`}, 400, "Body"},
		"state, unbound":     {"", request{method: "POST", path: "/api/revisions/shop-1/state", body: `{"state":"Active"}`}, 400, "Body"},
		"install, unread":    {"it names no namespace", request{method: "POST", path: "/api/packages/p/install", body: `{"latest":"1","name":"p"}`}, 400, "Body"},
		"install, hostile":   {"", request{method: "POST", path: "/api/packages/p/install", body: `{"latest":"1","name":"../x","namespace":"n"}`}, 400, "Body"},
		"unknown button":     {"", request{path: "/api/rights?button=everything"}, 400, "Button"},
	} {
		t.Run(name, func(t *testing.T) {
			clock.Step(time.Second) // wrong keys are checked again
			cluster.asked = nil
			answer := tc.request.send(handler)
			refusal := screens.Refusal{}
			_ = json.Unmarshal(answer.Body.Bytes(), &refusal)
			if answer.Code != tc.status || refusal.Reason != tc.said {
				t.Errorf("%s: %d %s, want %d %s", tc.reason, answer.Code, answer.Body, tc.status, tc.said)
			}
			if asked := len(cluster.asked) > 0; asked != (tc.said == "Forbidden") {
				t.Errorf("%s: the cluster was asked %q", tc.reason, cluster.asked)
			}
		})
	}
}

// TestHeaders: each answer has the required headers, and none of the forbidden headers.
func TestHeaders(t *testing.T) {
	handler, _ := testConsole(t, nil)
	for _, path := range []string{"/", "/app/main.js", "/style.css", "/nothing", "/api/me", "/api/nothing", "/api/diffs/a-1..a-2", "/api/watch/overview"} {
		for _, host := range []string{testHost, "evil.test"} {
			answer := request{path: path, host: host}.send(handler)
			header := answer.Header()
			for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
				if header.Get(name) != want {
					t.Errorf("%s: %s is %q, want %q", path, name, header.Get(name), want)
				}
			}
			for _, name := range []string{"Set-Cookie", "Access-Control-Allow-Origin", "Access-Control-Allow-Headers"} {
				if header.Get(name) != "" {
					t.Errorf("%s: it has %s", path, name)
				}
			}
			said := header.Get("Content-Security-Policy")
			if !strings.Contains(said, "default-src 'none'") || strings.Contains(said, "unsafe") {
				t.Errorf("%s: Content-Security-Policy: %s", path, said)
			}
			if strings.HasPrefix(path, apiPrefix) {
				if !strings.Contains(said, "sandbox") || header.Get("Cache-Control") != "no-store" || strings.Contains(header.Get("Content-Type"), "html") {
					t.Errorf("%s: %v", path, header)
				}
			} else if !strings.Contains(said, "trusted-types 'none'") || !strings.Contains(said, "require-trusted-types-for 'script'") {
				t.Errorf("%s: Content-Security-Policy: %s", path, said)
			}
		}
	}
}

// TestPolicy: pages can send requests only to the console, and to the origin of the issuer if there
// is one.
func TestPolicy(t *testing.T) {
	for issuer, want := range map[string]string{"": "connect-src 'self'; ", "https://id.example.com:8443/realms/a": "connect-src 'self' https://id.example.com:8443; "} {
		handler, err := NewShared(SharedOptions{Hosts: []string{sharedHost}, Provider: web.Provider{Issuer: issuer, ClientID: "penstock"}})
		if err != nil {
			t.Fatal(err)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, asSomebody(http.MethodGet, "/", "", nil))
		if said := answer.Header().Get("Content-Security-Policy"); !strings.Contains(said, want) {
			t.Errorf("issuer %q: Content-Security-Policy is %s, want %s", issuer, said, want)
		}
	}
}

// TestClosed: without the list of hosts nothing is served.
func TestClosed(t *testing.T) {
	handler, cluster := testConsole(t, func(options *Options, _ *screens.Options) { options.Hosts = nil })
	for _, path := range []string{"/", "/api/me"} {
		if answer := (request{path: path}).send(handler); answer.Code != http.StatusForbidden {
			t.Errorf("%s: %d", path, answer.Code)
		}
	}
	if len(cluster.asked) > 0 {
		t.Errorf("the cluster was asked %q", cluster.asked)
	}
}

// TestReadOnly: a read-only console sends no writes.
func TestReadOnly(t *testing.T) {
	handler, cluster := testConsole(t, func(_ *Options, shown *screens.Options) { shown.ReadOnly = true })
	for _, path := range []string{rollback, "/api/revisions/shop-1/state", "/api/plans/p/approve", "/api/plans/p/compute", "/api/plans/p/stop", "/api/plans/p/undo", "/api/packages/p/install", "/api/rollouts/r/approve", "/api/rollouts/r/halt", "/api/rollouts/r/resume", "/api/rollouts/r/retry", "/api/rollouts/r/skip"} {
		answer := request{method: http.MethodPost, path: path, body: `{"from":"shop-2","planHash":"x","uid":"x"}`}.send(handler)
		if answer.Code != http.StatusForbidden || !strings.Contains(answer.Body.String(), screens.ReasonReadOnly) {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
	if len(cluster.asked) > 0 {
		t.Errorf("the cluster was asked %q", cluster.asked)
	}
}

// TestGuesses: a few wrong keys are checked per second. The right key always passes.
func TestGuesses(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	handler, _ := testConsole(t, func(options *Options, _ *screens.Options) { options.Clock = clock })
	wrong := request{header: map[string]string{"Authorization": "Bearer wrong"}}
	for i := range 2 * maxWrongKeys {
		want := http.StatusUnauthorized
		if i >= maxWrongKeys {
			want = http.StatusTooManyRequests
		}
		if answer := wrong.send(handler); answer.Code != want {
			t.Errorf("guess %d: %d, want %d", i, answer.Code, want)
		}
	}
	if answer := (request{}).send(handler); answer.Code != http.StatusForbidden {
		t.Errorf("the right key: %d", answer.Code)
	}
	clock.Step(time.Second)
	if answer := wrong.send(handler); answer.Code != http.StatusUnauthorized {
		t.Errorf("a second later: %d", answer.Code)
	}
}

// TestListen: only this machine reaches the port.
func TestListen(t *testing.T) {
	door, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	_, port, err := net.SplitHostPort(door.Hosts[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, listener := range door.Listeners {
		if !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
			t.Errorf("it listens on %s", listener.Addr())
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		of, is := address.(*net.IPNet)
		if !is || of.IP.IsLoopback() || of.IP.IsLinkLocalUnicast() {
			continue
		}
		dialer := net.Dialer{Timeout: time.Second}
		if connection, err := dialer.DialContext(context.Background(), "tcp", net.JoinHostPort(of.IP.String(), port)); err == nil {
			connection.Close()
			t.Errorf("%s reaches it", of.IP)
		}
	}
	if one, other := NewKey(), NewKey(); one == other || len(one) != 43 {
		t.Errorf("keys %q, %q", one, other)
	}
}

// TestBusy: enough streams for a few tabs are allowed, and no more.
func TestBusy(t *testing.T) {
	blocked, release := make(chan struct{}), make(chan struct{})
	handler := bounded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		blocked <- struct{}{}
		<-release
	}), ofOneUser(), func(*http.Request) caller { return caller{} })
	for range maxStreams {
		go request{path: "/api/watch/overview"}.send(handler)
		<-blocked
	}
	if answer := (request{path: "/api/watch/overview"}).send(handler); answer.Code != http.StatusTooManyRequests {
		t.Errorf("stream %d: %d", maxStreams+1, answer.Code)
	}
	done := make(chan int)
	go func() { done <- request{}.send(handler).Code }()
	<-blocked
	close(release)
	if code := <-done; code != http.StatusOK {
		t.Errorf("a request beside all streams: %d", code)
	}
}

// TestRefusedUpstream: a refusal of the cluster is shown with its message, and the request is not
// repeated.
func TestRefusedUpstream(t *testing.T) {
	handler, cluster := testConsole(t, nil)
	for _, one := range []request{
		{path: "/api/diffs/a-1..a-2"}, {path: "/api/diffs/..a-2"}, {path: "/api/diffs/a-2..live"}, {path: "/api/histories/a"}, {path: "/api/revisions/a-2/objects"}, {path: "/api/plans/p/diff"}, {path: "/api/plans/p/history"}, {path: "/api/plans/p/items/i"},
		{path: "/api/rollouts/r/groups"}, {method: "POST", path: "/api/rollouts/r/approve", body: `{"digest":"x"}`}, {method: "POST", path: "/api/rollouts/r/halt", body: `{"digest":"x"}`},
		{method: "POST", path: "/api/rollouts/r/resume", body: `{"digest":"x"}`}, {method: "POST", path: "/api/rollouts/r/retry", body: `{"digest":"x","clusters":["a"]}`}, {method: "POST", path: "/api/rollouts/r/skip", body: `{"digest":"x","clusters":["a"]}`},
		{path: "/api/packages/p/graph"}, {method: "POST", path: "/api/packages/p/install", body: `{"name":"p","namespace":"n"}`},
		{method: "POST", path: "/api/extensions/p/version", body: `{"uid":"x","generation":1,"version":"1.x"}`}, {method: "POST", path: rollback, body: `{"from":"shop-2"}`}, {method: "POST", path: "/api/plans/p/approve", body: `{"planHash":"x"}`},
		{method: "POST", path: "/api/revisions/shop-1/state", body: `{"uid":"x","generation":1,"state":"Active"}`},
		{method: "POST", path: "/api/plans/p/compute", body: `{}`}, {method: "POST", path: "/api/plans/p/stop", body: `{"uid":"x"}`}, {method: "POST", path: "/api/plans/p/undo", body: `{}`},
	} {
		before := len(cluster.asked)
		answer := one.send(handler)
		if answer.Code != http.StatusForbidden || !strings.Contains(answer.Body.String(), "jane cannot") || len(cluster.asked) != before+1 {
			t.Errorf("%s %s: %d %s, asked %q", one.method, one.path, answer.Code, answer.Body, cluster.asked[before:])
		}
	}
	// A stream ends with the refusal.
	answer := request{path: "/api/watch/extensions/shop"}.send(handler)
	if !strings.Contains(answer.Body.String(), `"kind":"error"`) || !strings.Contains(answer.Body.String(), `"status":403`) {
		t.Errorf("stream: %s", answer.Body)
	}
}
