package client

import (
	"net/http"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// ServerVersion records the version of the Penstock that answers, from the answers to other
// requests. The zero value is ready to use.
type ServerVersion struct {
	mu   sync.Mutex
	last string
}

// Listen makes clients with this configuration record the version.
func (v *ServerVersion) Listen(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &versionListener{next: next, version: v} })
}

// Get returns the version in the last answer that had one, as `penstock version` prints it. It is
// empty if no answer had a version: there was no answer, kube-apiserver or a proxy answered itself,
// or Penstock is older than the header.
func (v *ServerVersion) Get() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last
}

func (v *ServerVersion) heard(version string) {
	if version == "" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = version
}

type versionListener struct {
	next    http.RoundTripper
	version *ServerVersion
}

// RoundTrip implements http.RoundTripper.
func (l *versionListener) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(request)
	if err == nil {
		l.version.heard(response.Header.Get(v1alpha1.VersionHeader))
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the inner transport, to close idle connections.
func (l *versionListener) WrappedRoundTripper() http.RoundTripper { return l.next }
