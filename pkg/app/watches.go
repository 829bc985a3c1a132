package app

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// uncompressedWatches makes watches request uncompressed responses. kube-apiserver compresses a
// watch that begins with a list. The decompressor takes 50 KB for the whole life of the watch, more
// than the objects of most watches.
func uncompressedWatches(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return watchTransport{next} })
	return config
}

type watchTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w watchTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		request = utilnet.CloneRequest(request)
		// Go's transport requests gzip if this header is missing.
		request.Header.Set("Accept-Encoding", "identity")
	}
	return w.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (w watchTransport) WrappedRoundTripper() http.RoundTripper { return w.next }
