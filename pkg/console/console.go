package console

import (
	"crypto/sha256"
	"net/http"
	"sync"

	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/console/screens"
	"github.com/penstock-project/penstock/pkg/console/web"
)

// Options are the settings of a console on loopback, which serves one user.
type Options struct {
	// Key is the bearer token that a browser must send.
	Key string
	// Hosts are the accepted values of the Host header, with the port. All other values are
	// refused; an empty list refuses all.
	Hosts []string
	// Screens serves the API of the pages.
	Screens *screens.API
	Clock   clock.PassiveClock
}

// New returns the handler of a console for one user: its files, and its API behind the gate.
func New(options Options) (http.Handler, error) {
	files, err := web.New(web.Provider{})
	if err != nil {
		return nil, err
	}
	nobody := func(*http.Request) caller { return caller{} }
	key := newKey(options.Key, options.Clock)
	all, err := served(options.Screens.Handler(), files)
	if err != nil {
		return nil, err
	}
	return (&gate{hosts: options.Hosts, scheme: "http", policy: policyOf(""), admit: key.admit, sameOrigin: http.NewCrossOriginProtection()}).
		around(bounded(all, ofOneUser(), nobody)), nil
}

// SharedOptions configure a console for many users, each with their own token.
type SharedOptions struct {
	// Hosts are like Options.Hosts. The port is left out where browsers leave it out.
	Hosts []string
	// As returns the API of the user with a token.
	As func(token string) (*screens.API, error)
	// Provider is the identity provider for signing in; zero for none. Its issuer must be an origin
	// with an optional path.
	Provider web.Provider
}

// NewShared returns the handler of a console for many users. It stores nothing about users: each
// request carries a token, and requests to the cluster use only that token.
func NewShared(options SharedOptions) (http.Handler, error) {
	files, err := web.New(options.Provider)
	if err != nil {
		return nil, err
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := options.As(tokenOf(r))
		if err != nil {
			screens.Refuse(w, screens.Refusal{Status: http.StatusInternalServerError, Reason: "Console", Message: err.Error()})
			return
		}
		asked.Handler().ServeHTTP(w, r)
	})
	who := func(r *http.Request) caller { return sha256.Sum256([]byte(tokenOf(r))) }
	all, err := served(api, files)
	if err != nil {
		return nil, err
	}
	return (&gate{hosts: options.Hosts, scheme: "https", policy: policyOf(options.Provider.Issuer), admit: admitToken, sameOrigin: http.NewCrossOriginProtection()}).
		around(bounded(all, ofManyUsers(), who)), nil
}

func served(api, files http.Handler) (http.Handler, error) {
	small, err := compressed(api)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(apiPrefix, small)
	mux.Handle("/", files)
	return mux, nil
}

// limits are the largest numbers of concurrent requests and streams of one caller, and of all
// callers.
type limits struct{ requests, streams, allRequests, allStreams int }

func ofOneUser() limits {
	return limits{requests: maxRequests, streams: maxStreams, allRequests: maxRequests, allStreams: maxStreams}
}

func ofManyUsers() limits {
	return limits{requests: maxRequests, streams: maxStreams, allRequests: maxSharedRequests, allStreams: maxSharedStreams}
}

// caller is the digest of a user's credentials. A console for one user has only one caller.
type caller [sha256.Size]byte

// bounded refuses requests above the limit of concurrent requests, and streams above their own
// limit. Files are small, and are not counted.
func bounded(next http.Handler, most limits, who func(*http.Request) caller) http.Handler {
	requests, streams := newPlaces(most.requests, most.allRequests), newPlaces(most.streams, most.allStreams)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isAPI(r) {
			next.ServeHTTP(w, r)
			return
		}
		of := requests
		if screens.IsStream(r.URL.Path) {
			of = streams
		}
		asks := who(r)
		if !of.take(asks) {
			screens.Refuse(w, screens.Refusal{Status: http.StatusTooManyRequests, Reason: "Busy", Message: "too many requests at a time: close other tabs of this console"})
			return
		}
		defer of.endCall(asks)
		next.ServeHTTP(w, r)
	})
}

type places struct {
	each, all int

	mu    sync.Mutex
	taken int
	of    map[caller]int
}

func newPlaces(each, all int) *places { return &places{each: each, all: all, of: map[caller]int{}} }

func (p *places) take(who caller) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.all || p.of[who] >= p.each {
		return false
	}
	p.taken++
	p.of[who]++
	return true
}

// endCall ends a request or stream. It forgets callers without any.
func (p *places) endCall(who caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[who]--; p.of[who] == 0 {
		delete(p.of, who)
	}
}
