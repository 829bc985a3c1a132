package console

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/console/screens"
)

// apiPrefix begins the paths of the API. Everything else is a file, which is no secret.
const apiPrefix = "/api/"

// Limits of the API.
const (
	// maxBody is the size of a request's body, in bytes.
	maxBody = 1 << 20
	// maxRequests and maxStreams are how many go on at a time.
	maxRequests = 16
	maxStreams  = 8
	// maxSharedRequests and maxSharedStreams are those of all callers of a shared console together.
	maxSharedRequests = 128
	maxSharedStreams  = 400
	// maxToken is the length of a token, in bytes.
	maxToken = 16 << 10
	// maxWrongKeys is the number of wrong keys that are checked per second.
	maxWrongKeys = 5
)

// policyOf is the Content-Security-Policy of all pages: everything is from here, nothing is
// inline, and no string becomes a script or markup. Pages send requests to the origin of the issuer
// as well, if there is an issuer.
func policyOf(issuer string) string {
	connect := "'self'"
	if at, err := url.Parse(issuer); err == nil && issuer != "" {
		connect += " " + at.Scheme + "://" + at.Host
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src " + connect + "; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

// gate decides which requests are accepted. A browser also opens pages of strangers, and others
// reach the port, so an address proves nothing.
type gate struct {
	// hosts are the values of the header Host that are ours, with the port. A name of a
	// stranger that leads here (DNS rebinding) is none of them. Without any, nobody may ask.
	hosts []string
	// scheme is that of our own pages: http on loopback, https elsewhere.
	scheme string
	// policy is the Content-Security-Policy of pages.
	policy string
	// admit checks the credentials of a request, and returns the refusal of wrong ones.
	admit func(*http.Request) *screens.Refusal
	// sameOrigin refuses writes from other origins, by the headers of the browser.
	sameOrigin *http.CrossOriginProtection
}

func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, apiPrefix) }

// around lets requests through to a handler, or refuses them. It sets the headers of all
// answers, refusals included.
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

// refuse returns the reason to refuse a request, or nil. The order matters: the origin is checked
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
	// Another port of this machine is same-site, and not same-origin. Browsers set the header;
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
