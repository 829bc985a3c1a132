package registration

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/server/certificates"
)

// Trust provides the CA bundle that verifies our serving certificate. The authority that all
// replicas share signs the certificate, or the certificate and the bundle come from files.
type Trust struct {
	shared *certificates.Shared
	leaf   *certificates.Leaf
	file   *dynamiccertificates.DynamicFileCAContent

	mu sync.Mutex
	// known is the last distributed authority, since the time of its distribution.
	known *certificates.Authority
	since time.Time
}

// NewSharedTrust returns the trust for a certificate of the authority that all replicas share. Its
// Secret in the namespace is created if it is missing. The certificate is for these names and
// addresses; serve with Leaf.
func NewSharedTrust(ctx context.Context, client kubernetes.Interface, namespace string, names []string, ips []net.IP) (*Trust, error) {
	shared, err := certificates.Share(ctx, client, namespace, certificates.AuthoritySecret, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	leaf, err := certificates.NewLeaf(shared.Authority(), names, ips, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	return &Trust{shared: shared, leaf: leaf}, nil
}

// NewFileTrust returns the trust for a certificate from a file. bundle is the file that verifies
// it; empty means that no bundle is known.
func NewFileTrust(bundle string) (*Trust, error) {
	if bundle == "" {
		return &Trust{}, nil
	}
	file, err := dynamiccertificates.NewDynamicCAContentFromFile("register-ca", bundle)
	if err != nil {
		return nil, fmt.Errorf("reading --register-ca-file: %w", err)
	}
	return &Trust{file: file}, nil
}

// Leaf returns the serving certificate, nil if the certificate comes from a file.
func (t *Trust) Leaf() *certificates.Leaf { return t.leaf }

// Bundle returns the CA bundle for our certificate as PEM; empty if it is unknown.
func (t *Trust) Bundle() []byte {
	switch {
	case t.shared != nil:
		return t.shared.Authority().PEM
	case t.file != nil:
		return t.file.CurrentCABundleContent()
	default:
		return nil
	}
}

// AddListener adds a listener for changes of the bundle.
func (t *Trust) AddListener(listener dynamiccertificates.Listener) {
	switch {
	case t.shared != nil:
		t.shared.AddListener(listener)
	case t.file != nil:
		t.file.AddListener(listener)
	}
}

// Run watches the Secret or the file until ctx ends.
func (t *Trust) Run(ctx context.Context) {
	switch {
	case t.shared != nil:
		t.shared.Run(ctx)
	case t.file != nil:
		t.file.Run(ctx, 1)
	}
}

func (t *Trust) refresh(ctx context.Context) error {
	if t.shared == nil {
		return nil
	}
	return t.shared.Refresh(ctx)
}

// Authority returns the authority that the replicas share, or nil.
func (t *Trust) Authority() *certificates.Authority {
	if t.shared == nil {
		return nil
	}
	return t.shared.Authority()
}

// distributed records that the bundle of an authority was distributed. It returns true if the leaf
// must follow.
func (t *Trust) distributed(authority *certificates.Authority, now time.Time) bool {
	if authority == nil || t.leaf.SignedBy(authority) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.since = authority, now
	return true
}

// adopt signs the leaf with the distributed authority after the settling time. Before that, it
// returns the remaining time.
func (t *Trust) adopt(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if rest := t.since.Add(settle).Sub(now); rest > 0 {
		return rest
	}
	t.leaf.Use(t.known)
	return 0
}

// Expiry returns when the first certificate in a PEM expires, or zero if it cannot be read.
func Expiry(certPEM []byte) time.Time {
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		return time.Time{}
	}
	return certs[0].NotAfter
}
