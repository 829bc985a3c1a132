// Package certificates makes the certificates that the server shows: a
// certificate authority that all replicas share through a Secret, and a leaf of
// each replica, which lives in memory and is replaced long before it expires.
package certificates

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Authority signs the leaves.
type Authority struct {
	// PEM is its certificate, for the caBundle of an APIService or webhook.
	PEM []byte

	cert *x509.Certificate
	key  crypto.Signer
}

// LoadOrCreate returns the authority that a Secret holds, and makes both when
// there is none. Replicas that start together end with the same one: the Secret
// is created only if absent, and whoever comes second reads it. A Secret that
// does not hold a usable authority is an error, never overwritten: somebody may
// have put it there, and others trust what it held.
func LoadOrCreate(ctx context.Context, secrets typedcorev1.SecretInterface, name string, now time.Time) (*Authority, error) {
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret, err = create(ctx, secrets, name)
		if apierrors.IsAlreadyExists(err) {
			secret, err = secrets.Get(ctx, name, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("getting the certificate authority from secret %s: %w", name, err)
	}
	authority, err := parse(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], now)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s does not hold a certificate authority (delete it, and a new one is made): %w",
			secret.Namespace, secret.Name, err)
	}
	return authority, nil
}

func create(ctx context.Context, secrets typedcorev1.SecretInterface, name string) (*corev1.Secret, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the authority's key: %w", err)
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
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
	return secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM},
	}, metav1.CreateOptions{})
}

// parse reads an authority. Its errors never contain the key.
func parse(certPEM, keyPEM []byte, now time.Time) (*Authority, error) {
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		return nil, fmt.Errorf("reading its %s: %w", corev1.TLSCertKey, err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(keyPEM)
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
	}
	return &Authority{PEM: certPEM, cert: cert, key: key}, nil
}
