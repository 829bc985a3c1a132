// Package certificates creates the serving certificates of the server. All replicas share one
// certificate authority through a Secret. Each replica has a leaf in memory, which it replaces long
// before the leaf expires.
package certificates

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// bundleKey is the key of the Secret for all trusted certificates: the authority, and the
	// former authority while leaves of it may exist. cert-manager's injector reads the same key.
	bundleKey = "ca.crt"
	// authorityBackdate makes an authority valid for replicas and hosts with a slow clock.
	authorityBackdate = 24 * time.Hour
	// overlap is the time during which a former authority stays in the bundle: twice the life of
	// its last leaf.
	overlap = 2 * validity
)

// Authority signs the leaves.
type Authority struct {
	// PEM is the caBundle for an APIService or webhook: the authority's certificate, then the
	// certificates of former authorities.
	PEM []byte

	cert *x509.Certificate
	key  crypto.Signer
}

// loadOrCreate returns the authority in a Secret, and the Secret. It creates both if the Secret is
// missing. Replicas that start together get the same authority: Create fails for all replicas but
// one, and these read the Secret. An invalid authority is an error. It is never overwritten,
// because another user may have put it there, and clients trust the old content. former holds the
// trusted certificates so far, as PEM: the new authority's bundle includes them.
func loadOrCreate(ctx context.Context, secrets typedcorev1.SecretInterface, name string, now time.Time, former []byte) (*Authority, *corev1.Secret, error) {
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		var data map[string][]byte
		if data, err = newAuthority(name, now, former); err != nil {
			return nil, nil, err
		}
		secret, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS, Data: data,
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			secret, err = secrets.Get(ctx, name, metav1.GetOptions{})
		}
	}
	if apierrors.IsNotFound(err) {
		// A Secret that is not found after Create means that the namespace is missing.
		return nil, nil, fmt.Errorf("creating the certificate authority in secret %s: the namespace does not exist; create it, or start with --register, which creates it: %w", name, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("getting the certificate authority from secret %s: %w", name, err)
	}
	authority, err := parse(secret.Data, now)
	if err != nil {
		return nil, nil, fmt.Errorf("secret %s/%s does not hold a certificate authority (delete it, and Penstock creates a new one): %w",
			secret.Namespace, secret.Name, err)
	}
	return authority, secret, nil
}

// newAuthority returns the data of a Secret with a new authority.
func newAuthority(name string, now time.Time, former []byte) (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the authority's key: %w", err)
	}
	cert, err := selfSigned(name, key, now)
	if err != nil {
		return nil, fmt.Errorf("signing the authority's certificate: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the authority's key: %w", err)
	}
	certPEM, err := certutil.EncodeCertificates(cert)
	if err != nil {
		return nil, fmt.Errorf("encoding the authority's certificate: %w", err)
	}
	bundle, err := bundleOf(cert, former, now)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM, bundleKey: bundle}, nil
}

// selfSigned creates the certificate of an authority. It can sign server certificates, but no
// further authorities.
func selfSigned(name string, key crypto.Signer, now time.Time) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-authorityBackdate),
		NotAfter:              now.AddDate(10, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// bundleOf returns the trusted certificates as PEM: cert, and the former authorities that have not
// expired.
func bundleOf(cert *x509.Certificate, former []byte, now time.Time) ([]byte, error) {
	trusted := []*x509.Certificate{cert}
	if len(bytes.TrimSpace(former)) > 0 && now.Before(cert.NotBefore.Add(authorityBackdate+overlap)) {
		found, err := certutil.ParseCertsPEM(former)
		if err != nil {
			return nil, fmt.Errorf("reading former authorities: %w", err)
		}
		for _, other := range found {
			known := slices.ContainsFunc(trusted, other.Equal)
			if !known && now.Before(other.NotAfter) {
				trusted = append(trusted, other)
			}
		}
	}
	bundle, err := certutil.EncodeCertificates(trusted...)
	if err != nil {
		return nil, fmt.Errorf("encoding the bundle of authorities: %w", err)
	}
	return bundle, nil
}

// parse reads an authority. Its errors never contain the key.
func parse(data map[string][]byte, now time.Time) (*Authority, error) {
	certs, err := certutil.ParseCertsPEM(data[corev1.TLSCertKey])
	if err != nil {
		return nil, fmt.Errorf("reading its %s: %w", corev1.TLSCertKey, err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading its %s: no private key found", corev1.TLSPrivateKeyKey)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("its %s is a %T, which cannot sign", corev1.TLSPrivateKeyKey, parsed)
	}
	cert := certs[0]
	switch public, err := x509.MarshalPKIXPublicKey(key.Public()); {
	case err != nil:
		return nil, fmt.Errorf("reading its public key: %w", err)
	case !bytes.Equal(public, cert.RawSubjectPublicKeyInfo):
		return nil, errors.New("certificate and key do not belong together")
	case !cert.IsCA:
		return nil, errors.New("the certificate is not one of an authority")
	case now.After(cert.NotAfter):
		return nil, fmt.Errorf("the certificate expired at %s", cert.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(cert.NotBefore):
		return nil, fmt.Errorf("the certificate is not valid before %s, and the time here is %s: the clock of this machine is wrong, or the clock of the machine that made the certificate was",
			cert.NotBefore.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	bundle, err := bundleOf(cert, data[bundleKey], now)
	if err != nil {
		return nil, fmt.Errorf("reading its %s: %w", bundleKey, err)
	}
	return &Authority{PEM: bundle, cert: cert, key: key}, nil
}
