package app

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// uncompressedWatches has watches sent without compression. kube-apiserver compresses a watch
// that begins with a list, and the decompressor of a watch takes 50 KB for as long as the watch
// lasts: more than the objects that most watches keep.
func uncompressedWatches(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return watchTransport{next} })
	return config
}

// watchTransport sends watches without compression, and all else as it is.
type watchTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w watchTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		request = utilnet.CloneRequest(request)
		// The transport of Go asks for gzip where this header is missing.
		request.Header.Set("Accept-Encoding", "identity")
	}
	return w.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the transport below.
func (w watchTransport) WrappedRoundTripper() http.RoundTripper { return w.next }
