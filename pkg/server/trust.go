package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/server/certificates"
)

// trust is what verifies the certificate that we show, over time. The certificate
// is our own, of an authority that all replicas share; or it comes from files,
// and what verifies it may come from another one.
type trust struct {
	shared *certificates.Shared
	leaf   *certificates.Leaf
	file   *dynamiccertificates.DynamicFileCAContent

	mu sync.Mutex
	// known is an authority that all who verify us have been told of, since when.
	known *certificates.Authority
	since time.Time
}

// newTrust makes the serving certificate, unless it comes from files.
func newTrust(ctx context.Context, o *Options, client kubernetes.Interface) (*trust, error) {
	if !o.ownCertificates() {
		if o.RegisterCAFile == "" {
			return &trust{}, nil
		}
		file, err := dynamiccertificates.NewDynamicCAContentFromFile("register-ca", o.RegisterCAFile)
		if err != nil {
			return nil, fmt.Errorf("reading --register-ca-file: %w", err)
		}
		return &trust{file: file}, nil
	}
	shared, err := certificates.Share(ctx, client, o.Namespace, authoritySecret, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	names, ips := certificateNames(o)
	leaf, err := certificates.NewLeaf(shared.Authority(), names, ips, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	o.Recommended.SecureServing.ServerCert.GeneratedCert = leaf
	return &trust{shared: shared, leaf: leaf}, nil
}

// bundle verifies our certificate, PEM; empty when nobody said what does.
func (t *trust) bundle() []byte {
	switch {
	case t.shared != nil:
		return t.shared.Authority().PEM
	case t.file != nil:
		return t.file.CurrentCABundleContent()
	default:
		return nil
	}
}

// addListener tells somebody when the bundle is another.
func (t *trust) addListener(listener dynamiccertificates.Listener) {
	switch {
	case t.shared != nil:
		t.shared.AddListener(listener)
	case t.file != nil:
		t.file.AddListener(listener)
	}
}

// run follows the Secret, or the file, until ctx ends.
func (t *trust) run(ctx context.Context) {
	switch {
	case t.shared != nil:
		t.shared.Run(ctx)
	case t.file != nil:
		t.file.Run(ctx, 1)
	}
}

// refresh reads the Secret now.
func (t *trust) refresh(ctx context.Context) error {
	if t.shared == nil {
		return nil
	}
	return t.shared.Refresh(ctx)
}

// authority is the one that the replicas share, or nil.
func (t *trust) authority() *certificates.Authority {
	if t.shared == nil {
		return nil
	}
	return t.shared.Authority()
}

// distributed notes that all who verify us have been told of an authority. It is
// true when our leaf is to follow.
func (t *trust) distributed(authority *certificates.Authority, now time.Time) bool {
	if authority == nil || t.leaf.SignedBy(authority) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.since = authority, now
	return true
}

// adopt makes the leaf one of the authority that is known, if it has been so for
// long enough; otherwise it returns how long is left.
func (t *trust) adopt(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if rest := t.since.Add(settle).Sub(now); rest > 0 {
		return rest
	}
	t.leaf.Use(t.known)
	return 0
}

// expiry returns when a certificate ends that comes first in a PEM; zero when it
// cannot be told.
func expiry(certPEM []byte) time.Time {
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		return time.Time{}
	}
	return certs[0].NotAfter
}
