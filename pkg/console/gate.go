package console

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/console/screens"
)

// apiPrefix begins the paths of the API. All other paths are files, which are public.
const apiPrefix = "/api/"

// These are the limits of the API.
const (
	maxBody = 1 << 20
	// maxRequests and maxStreams bound the concurrent requests and streams of a caller.
	maxRequests = 16
	maxStreams  = 8
	// maxSharedRequests and maxSharedStreams are the bounds for all callers of a shared console
	// together.
	maxSharedRequests = 128
	maxSharedStreams  = 400
	maxToken          = 16 << 10
	// maxWrongKeys bounds the wrong keys that are checked per second.
	maxWrongKeys = 5
)

// policyOf returns the Content-Security-Policy of all pages: all content comes from the console,
// nothing is inline, and no string becomes a script or markup. If there is an issuer, pages may
// also send requests to its origin.
func policyOf(issuer string) string {
	connect := "'self'"
	if at, err := url.Parse(issuer); err == nil && issuer != "" {
		connect += " " + at.Scheme + "://" + at.Host
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src " + connect + "; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

// gate decides which requests are accepted. The user's browser also opens pages of other sites, and
// other programs can reach the port. So the address of a request proves nothing.
type gate struct {
	// hosts are the accepted values of the Host header, with the port. They exclude foreign names
	// that resolve to this address (DNS rebinding). An empty list refuses all.
	hosts []string
	// scheme is the scheme of the console's pages: http on loopback, https elsewhere.
	scheme string
	policy string
	// admit checks the credentials of a request, and returns the refusal of wrong credentials.
	admit func(*http.Request) *screens.Refusal
	// sameOrigin refuses writes from other origins, by the headers of the browser.
	sameOrigin *http.CrossOriginProtection
}

func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, apiPrefix) }

// around passes requests on to a handler, or refuses them. It sets the headers of all answers,
// including refusals.
func (g *gate) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api := isAPI(r)
		g.headers(w.Header(), api)
		if refusal := g.refuse(r, api); refusal != nil {
			screens.Refuse(w, *refusal)
			return
		}
		if api {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		next.ServeHTTP(w, r)
	})
}

// headers sets the headers of all answers. Without CORS headers, no other origin may read an answer.
func (g *gate) headers(h http.Header, api bool) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	if api {
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
		h.Set("Cache-Control", "no-store")
		return
	}
	h.Set("Content-Security-Policy", g.policy)
}

// refuse returns the reason to refuse a request, or nil. The order matters: it checks the origin
// before the key.
func (g *gate) refuse(r *http.Request, api bool) *screens.Refusal {
	if !slices.Contains(g.hosts, r.Host) {
		return &screens.Refusal{Status: http.StatusForbidden, Reason: "Host", Message: "this is not the address of the console"}
	}
	if !api {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return &screens.Refusal{Status: http.StatusMethodNotAllowed, Reason: "Method", Message: "files can only be read"}
		}
		return nil
	}
	// Another port of this machine is same-site, but not same-origin. Browsers set this header;
	// pages cannot.
	if r.Header.Get("Sec-Fetch-Site") != "same-origin" {
		return &screens.Refusal{Status: http.StatusForbidden, Reason: "Origin", Message: "only pages of the console may send requests: Sec-Fetch-Site is not same-origin"}
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != g.scheme+"://"+r.Host {
		return &screens.Refusal{Status: http.StatusForbidden, Reason: "Origin", Message: "only pages of the console may send requests: this is another origin"}
	}
	if err := g.sameOrigin.Check(r); err != nil {
		return &screens.Refusal{Status: http.StatusForbidden, Reason: "Origin", Message: "only pages of the console may send requests: this is another origin"}
	}
	if r.Method != http.MethodGet && !isJSON(r.Header.Get("Content-Type")) {
		return &screens.Refusal{Status: http.StatusUnsupportedMediaType, Reason: "MediaType", Message: "the body must be application/json"}
	}
	return g.admit(r)
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}
