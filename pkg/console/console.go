package console

import (
	"net/http"

	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/console/screens"
	"github.com/penstock-project/penstock/pkg/console/web"
)

// Options are what a console needs.
type Options struct {
	// Key is what a browser has to show, as a bearer token.
	Key string
	// Hosts are the values of the header Host that are served, with the port: all others are
	// refused, and without any everything is.
	Hosts []string
	// Screens answer what pages ask.
	Screens *screens.API
	Clock   clock.PassiveClock
}

// New is the console as a handler: its files, and its API behind the gate.
func New(options Options) (http.Handler, error) {
	files, err := web.New()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, route := range options.Screens.Routes() {
		mux.Handle(route.Method+" "+route.Path, route.Handler)
	}
	mux.HandleFunc(apiPrefix, func(w http.ResponseWriter, _ *http.Request) {
		screens.Refuse(w, screens.Refusal{Status: http.StatusNotFound, Reason: "NotFound", Message: "the console has no such path"})
	})
	mux.Handle("/", files)
	return newGate(options.Key, options.Hosts, options.Clock).around(bounded(mux)), nil
}

// bounded refuses requests beyond how many may go on at a time, and streams beyond theirs.
func bounded(next http.Handler) http.Handler {
	requests, streams := make(chan struct{}, maxRequests), make(chan struct{}, maxStreams)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		places := requests
		if screens.IsStream(r.URL.Path) {
			places = streams
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		default:
			screens.Refuse(w, screens.Refusal{Status: http.StatusTooManyRequests, Reason: "Busy", Message: "too much is asked at a time: close other tabs of this console"})
		}
	})
}
