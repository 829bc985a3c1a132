package filters

import (
	"fmt"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// leastCompressed is the size of an answer, in bytes, from which it is compressed: that of
// the API server's library.
const leastCompressed = 128 << 10

// Compression returns what compresses large answers to reads for those who accept gzip:
// kubectl, and the aggregator, which asks for it by itself. The library would, too, with an
// encoder that takes four times as long for the same size: a sixth of the processor time of
// a large table. So the library is not told that the client accepts gzip. Watches are left to the
// library, which compresses those that begin with initial events. Where it is off, nothing is done.
//
// The handler must find the RequestInfo of a request in its context.
func Compression(on bool) (func(http.Handler) http.Handler, error) {
	if !on {
		return func(next http.Handler) http.Handler { return next }, nil
	}
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(leastCompressed), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false))
	if err != nil {
		return nil, fmt.Errorf("compressing answers: %w", err)
	}
	return func(next http.Handler) http.Handler {
		compressed := wrap(withoutEncoding(next))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			info, ok := apirequest.RequestInfoFrom(r.Context())
			if ok && info.IsResourceRequest && (info.Verb == "get" || info.Verb == "list") {
				compressed.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, nil
}

// withoutEncoding does not tell a handler what encodings the client accepts.
func withoutEncoding(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		plain := *r
		plain.Header = r.Header.Clone()
		plain.Header.Del("Accept-Encoding")
		next.ServeHTTP(w, &plain)
	})
}
