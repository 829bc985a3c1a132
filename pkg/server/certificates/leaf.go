package certificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// validity is the life of a leaf, unless its authority ends earlier. A leaf is renewed when a
	// third of its life is left.
	validity = 7 * 24 * time.Hour
	// backdate makes a leaf valid for peers whose clock is behind ours.
	backdate = time.Hour
	// retry is the pause after a failed renewal, and the shortest pause between two renewals. A
	// leaf cannot outlive its authority. Without this pause, renewals near the authority's end
	// would become ever more frequent.
	retry = time.Minute
)

// Leaf is the certificate of this replica. The generic API server runs it as a ControllerRunner. It
// notifies its Listeners of a new certificate.
type Leaf struct {
	names []string
	ips   []net.IP
	clock clock.WithTicker
	// changed has an element after the authority has changed.
	changed chan struct{}

	mu        sync.RWMutex
	authority *Authority
	certPEM   []byte
	keyPEM    []byte
	renewAt   time.Time
	listeners []dynamiccertificates.Listener
}

var (
	_ dynamiccertificates.CertKeyContentProvider = &Leaf{}
	_ dynamiccertificates.ControllerRunner       = &Leaf{}
)

// NewLeaf signs a first leaf for DNS names and addresses.
func NewLeaf(authority *Authority, names []string, ips []net.IP, clock clock.WithTicker) (*Leaf, error) {
	l := &Leaf{authority: authority, names: names, ips: ips, clock: clock, changed: make(chan struct{}, 1)}
	if err := l.renew(); err != nil {
		return nil, err
	}
	return l, nil
}

// Name implements dynamiccertificates.CertKeyContentProvider.
func (l *Leaf) Name() string {
	return "penstock-leaf"
}

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider.
func (l *Leaf) CurrentCertKeyContent() (certPEM, keyPEM []byte) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.certPEM, l.keyPEM
}

// AddListener implements dynamiccertificates.Notifier.
func (l *Leaf) AddListener(listener dynamiccertificates.Listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners = append(l.listeners, listener)
}

// Use makes an authority sign all further leaves, and signs a new leaf at once. Clients must trust
// the authority before.
func (l *Leaf) Use(authority *Authority) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.authority.cert.Equal(authority.cert) {
		return
	}
	l.authority = authority
	select {
	case l.changed <- struct{}{}:
	default: // The listener has a notification already.
	}
}

// SignedBy reports whether an authority signs the leaves now.
func (l *Leaf) SignedBy(authority *Authority) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.authority.cert.Equal(authority.cert)
}

// RunOnce implements dynamiccertificates.ControllerRunner. It does nothing: NewLeaf has signed a
// leaf.
func (l *Leaf) RunOnce(context.Context) error {
	return nil
}

// Run implements dynamiccertificates.ControllerRunner. It renews the leaf in time, until ctx ends.
func (l *Leaf) Run(ctx context.Context, _ int) {
	log := klog.FromContext(ctx).WithName("certificates")
	for {
		timer := l.clock.NewTimer(l.untilRenewal())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		case <-l.changed:
			timer.Stop()
		}
		if err := l.renew(); err != nil {
			log.Error(err, "The serving certificate could not be renewed", "retryAfter", retry)
			continue
		}
		log.Info("Renewed the serving certificate", "renewAt", l.renewal())
	}
}

func (l *Leaf) renewal() time.Time {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.renewAt
}

func (l *Leaf) untilRenewal() time.Duration {
	if d := l.renewal().Sub(l.clock.Now()); d > 0 {
		return d
	}
	return retry
}

func (l *Leaf) renew() error {
	now := l.clock.Now()
	notAfter := now.Add(validity)
	l.mu.RLock()
	authority := l.authority
	l.mu.RUnlock()
	if end := authority.cert.NotAfter; end.Before(notAfter) {
		notAfter = end
	}
	certPEM, keyPEM, err := authority.sign(l.names, l.ips, now, notAfter)
	if err != nil {
		return fmt.Errorf("signing a serving certificate for %v: %w", l.names, err)
	}
	l.mu.Lock()
	l.certPEM, l.keyPEM = certPEM, keyPEM
	l.renewAt = now.Add(max(notAfter.Sub(now)*2/3, retry))
	listeners := l.listeners
	l.mu.Unlock()
	for _, listener := range listeners {
		listener.Enqueue()
	}
	return nil
}

// sign creates a key and a server certificate for it. The authority's certificate follows in
// certPEM.
func (a *Authority) sign(names []string, ips []net.IP, now, notAfter time.Time) (certPEM, keyPEM []byte, err error) {
	if now.After(a.cert.NotAfter) {
		return nil, nil, fmt.Errorf("the authority expired at %s: delete its secret and restart Penstock, which creates a new one", a.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: names[0]},
		DNSNames:     names,
		IPAddresses:  ips,
		NotBefore:    now.Add(-backdate),
		NotAfter:     notAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	if certPEM, err = certutil.EncodeCertificates(leaf, a.cert); err != nil {
		return nil, nil, err
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, nil, err
	}
	return certPEM, keyPEM, nil
}

// newSerial returns a random serial number, which is unique without a counter.
func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
}
