package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/console/screens"
)

const sharedHost = "console.example.com"

// witness is a cluster that records the credentials of requests.
type witness struct {
	*httptest.Server
	mu sync.Mutex
	// seen holds the headers of requests that may identify the user.
	seen []http.Header
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.seen = append(w.seen, r.Header.Clone())
		w.mu.Unlock()
		answer.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") == "Bearer expired" {
			answer.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(answer, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"Unauthorized"}`)
			return
		}
		// The name of each user is their token.
		name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		_ = json.NewEncoder(answer).Encode(map[string]any{"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "status": map[string]any{"userInfo": map[string]any{"username": name}}})
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *witness) asked() []http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

func testShared(t *testing.T, hosts ...string) (http.Handler, *witness) {
	t.Helper()
	cluster := newWitness(t)
	handler, err := NewShared(SharedOptions{Hosts: hosts, As: func(token string) (*screens.API, error) {
		return screens.New(screens.Options{Config: &rest.Config{Host: cluster.URL, BearerToken: token}, Cluster: "test", Version: "v0.0.0"})
	}})
	if err != nil {
		t.Fatal(err)
	}
	return handler, cluster
}

// asSomebody returns a request of a page of a shared console.
func asSomebody(method, path, body string, change func(*http.Request)) *http.Request {
	asked := httptest.NewRequest(method, path, strings.NewReader(body))
	asked.Host = sharedHost
	asked.Header.Set("Sec-Fetch-Site", "same-origin")
	asked.Header.Set("Authorization", "Bearer anna")
	if method != http.MethodGet {
		asked.Header.Set("Content-Type", "application/json")
		asked.Header.Set("Origin", "https://"+sharedHost)
	}
	if change != nil {
		change(asked)
	}
	return asked
}

// TestSharedGate covers known attacks on other consoles, against the console in the cluster.
func TestSharedGate(t *testing.T) {
	handler, cluster := testShared(t, sharedHost)
	header := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = values }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	for name, tc := range map[string]struct {
		reason             string
		method, path, body string
		change             func(*http.Request)
		status             int
		said               string
	}{
		"own page":          {reason: "a user with a token", status: 200},
		"own page, write":   {reason: "their own call: what is wrong with it, the API says", method: "POST", path: rollback, body: `{"cause":"x"}`, status: 400, said: "Body"},
		"rebinding":         {reason: "a name of a stranger that leads here", change: host("evil.test"), status: 403, said: "Host"},
		"rebinding, file":   {reason: "not even files", path: "/", change: host("evil.test"), status: 403, said: "Host"},
		"address of a Pod":  {reason: "past the proxy in front", change: host("10.0.0.7:8443"), status: 403, said: "Host"},
		"other port":        {change: host(sharedHost + ":8443"), status: 403, said: "Host"},
		"no host":           {change: host(""), status: 403, said: "Host"},
		"suffix":            {change: host(sharedHost + ".evil.test"), status: 403, said: "Host"},
		"other site":        {reason: "a web page in the same browser", change: header("Sec-Fetch-Site", "cross-site"), status: 403, said: "Origin"},
		"same site":         {reason: "a sibling domain", change: header("Sec-Fetch-Site", "same-site"), status: 403, said: "Origin"},
		"unsaid":            {reason: "a browser that does not say", change: header("Sec-Fetch-Site"), status: 403, said: "Origin"},
		"other origin":      {change: header("Origin", "https://evil.test"), status: 403, said: "Origin"},
		"without TLS":       {reason: "the page of an attacker in between", change: header("Origin", "http://"+sharedHost), status: 403, said: "Origin"},
		"null origin":       {change: header("Origin", "null"), status: 403, said: "Origin"},
		"write, other site": {reason: "cross-site request forgery", method: "POST", path: rollback, body: `{}`, change: header("Sec-Fetch-Site", "cross-site"), status: 403, said: "Origin"},
		"write, form":       {method: "POST", path: rollback, change: header("Content-Type", "application/x-www-form-urlencoded"), status: 415, said: "MediaType"},
		"write, text":       {method: "POST", path: rollback, change: header("Content-Type", "text/plain"), status: 415, said: "MediaType"},
		"nobody":            {reason: "the cluster would take it for system:anonymous", change: header("Authorization"), status: 401, said: "Token"},
		"empty token":       {reason: "the same", change: header("Authorization", "Bearer "), status: 401, said: "Token"},
		"basic":             {reason: "a proxy's own", change: header("Authorization", "Basic YTpi"), status: 401, said: "Token"},
		"two tokens":        {reason: "a proxy has looked at one of them", change: header("Authorization", "Bearer anna", "Bearer bert"), status: 401, said: "Token"},
		"broken token":      {reason: "it would be another header", change: header("Authorization", "Bearer a\r\nImpersonate-User: admin"), status: 401, said: "Token"},
		"long token":        {change: header("Authorization", "Bearer "+strings.Repeat("x", maxToken+1)), status: 401, said: "Token"},
		"token as cookie":   {change: func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("Cookie", "token=anna") }, status: 401, said: "Token"},
		"token in query":    {path: "/api/me?token=anna", change: header("Authorization"), status: 401, said: "Token"},
		"expired":           {reason: "the cluster says so", change: header("Authorization", "Bearer expired"), status: 401, said: "Unauthorized"},
		"unknown path":      {path: "/api/v1/secrets", status: 404, said: "NotFound"},
		"path of the host":  {path: "/apis/olm.operatorframework.io/v1alpha1", status: 404},
		"file, write":       {method: "POST", path: "/", status: 405, said: "Method"},
		"hostile name":      {path: "/api/histories/..%2f..%2fsecrets", status: 400, said: "Name"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.method == "" {
				tc.method = http.MethodGet
			}
			if tc.path == "" {
				tc.path = "/api/me"
			}
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, asSomebody(tc.method, tc.path, tc.body, tc.change))
			refusal := screens.Refusal{}
			_ = json.Unmarshal(answer.Body.Bytes(), &refusal)
			if answer.Code != tc.status || refusal.Reason != tc.said {
				t.Errorf("%s: %d %s, want %d %s", tc.reason, answer.Code, answer.Body, tc.status, tc.said)
			}
			if asked := len(cluster.asked()) > 0; asked != (tc.status == 200 || tc.said == "Unauthorized") {
				t.Errorf("%s: was the cluster asked: %v", tc.reason, asked)
			}
			for _, name := range []string{"Set-Cookie", "Access-Control-Allow-Origin"} {
				if answer.Header().Get(name) != "" {
					t.Errorf("%s: it has %s", tc.reason, name)
				}
			}
		})
	}
}

// TestSharedCallers: the cluster receives the token of the calling user, and no other header of the
// request. Concurrent requests of other users do not change that.
func TestSharedCallers(t *testing.T) {
	handler, cluster := testShared(t, sharedHost)
	var all sync.WaitGroup
	for n := range 40 {
		all.Go(func() {
			name := fmt.Sprintf("user-%d", n)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, asSomebody(http.MethodGet, "/api/me", "", func(r *http.Request) {
				r.Header.Set("Authorization", "Bearer "+name)
				r.Header.Set("Impersonate-User", "admin")
				r.Header.Set("X-Remote-User", "admin")
				r.Header.Set("Cookie", "session=admin")
			}))
			me := screens.Me{}
			if err := json.Unmarshal(answer.Body.Bytes(), &me); err != nil || me.Username != name {
				t.Errorf("%s is taken for %q: %d %s", name, me.Username, answer.Code, answer.Body)
			}
		})
	}
	all.Wait()
	tokens := map[string]int{}
	for _, seen := range cluster.asked() {
		tokens[seen.Get("Authorization")]++
		for _, name := range []string{"Impersonate-User", "X-Remote-User", "Cookie"} {
			if seen.Get(name) != "" {
				t.Errorf("%s went on to the cluster", name)
			}
		}
	}
	if len(tokens) != 40 {
		t.Errorf("%d tokens, want 40: %v", len(tokens), tokens)
	}
}

// TestSharedClosed: without a list of hosts nothing is served.
func TestSharedClosed(t *testing.T) {
	handler, cluster := testShared(t)
	for _, path := range []string{"/", "/api/me"} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, asSomebody(http.MethodGet, path, "", nil))
		if answer.Code != http.StatusForbidden {
			t.Errorf("%s: %d", path, answer.Code)
		}
	}
	if asked := cluster.asked(); len(asked) > 0 {
		t.Errorf("the cluster was asked %d times", len(asked))
	}
}

// TestPlaces: one caller cannot take the places of all callers. All callers together have a limit.
func TestPlaces(t *testing.T) {
	places := newPlaces(2, 5)
	take := func(name byte) bool { return places.take(caller{name}) }
	if got := []bool{take('a'), take('a'), take('a'), take('b'), take('b'), take('c'), take('d')}; !slices.Equal(got, []bool{true, true, false, true, true, true, false}) {
		t.Errorf("places: %v", got)
	}
	places.endCall(caller{'a'})
	if !take('d') {
		t.Error("a place that was given back is not free")
	}
	for _, name := range []byte("abbcd") {
		places.endCall(caller{name})
	}
	if len(places.of) != 0 || places.taken != 0 {
		t.Errorf("%d callers are remembered, %d places taken", len(places.of), places.taken)
	}
}
