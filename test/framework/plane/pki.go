package plane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// lifetime is the lifetime of every certificate. A plane that runs for years still works.
const lifetime = 10 * 365 * 24 * time.Hour

// serviceIP is the address of the Service kubernetes: the first address of kube-apiserver's service
// range.
const serviceIP = "10.96.0.1"

// nodeIP is the address of a real node, in its own network namespace.
const nodeIP = "10.231.0.1"

// pki has the keys and certificates of a plane's programs.
type pki struct {
	dir        string
	ca         *authority // signs kube-apiserver's certificate and all clients'
	frontProxy *authority // signs the aggregator's certificate for aggregated API servers
}

// file returns the path of a PEM file of the PKI.
func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

// newPKI creates all keys and certificates below dir.
func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the PKI: %w", err)
	}
	ca, err := newAuthority("penstock-local-ca")
	if err != nil {
		return nil, err
	}
	frontProxy, err := newAuthority("penstock-local-front-proxy-ca")
	if err != nil {
		return nil, err
	}
	p := &pki{dir: dir, ca: ca, frontProxy: frontProxy}

	server, err := ca.server("kube-apiserver")
	if err != nil {
		return nil, err
	}
	proxy, err := frontProxy.client("front-proxy-client")
	if err != nil {
		return nil, err
	}
	accounts, err := newKey()
	if err != nil {
		return nil, err
	}
	accountsKey, err := keyutil.MarshalPrivateKeyToPEM(accounts)
	if err != nil {
		return nil, fmt.Errorf("encoding the key of service accounts: %w", err)
	}
	for name, content := range map[string][]byte{
		"ca.crt":             ca.certPEM,
		"ca.key":             ca.keyPEM,
		"front-proxy-ca.crt": frontProxy.certPEM,
		"front-proxy.crt":    proxy.certPEM,
		"front-proxy.key":    proxy.keyPEM,
		"apiserver.crt":      server.certPEM,
		"apiserver.key":      server.keyPEM,
		"sa.key":             accountsKey,
	} {
		if err := os.WriteFile(p.file(name), content, 0o600); err != nil {
			return nil, fmt.Errorf("writing the PKI: %w", err)
		}
	}
	return p, nil
}

// loadPKI reads the part of a PKI that a later process needs: the authority that signs users.
func loadPKI(dir string) (*pki, error) {
	p := &pki{dir: dir}
	certPEM, err := os.ReadFile(p.file("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the PKI: %w", err)
	}
	keyPEM, err := os.ReadFile(p.file("ca.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the PKI: %w", err)
	}
	p.ca, err = parseAuthority(certPEM, keyPEM)
	return p, err
}

// pair is a certificate with its private key, in PEM.
type pair struct {
	certPEM, keyPEM []byte
}

// authority is a pair that signs certificates.
type authority struct {
	pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	return key, nil
}

// newAuthority returns a self-signed authority.
func newAuthority(name string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	signed, err := sign(template, nil, key, key)
	if err != nil {
		return nil, fmt.Errorf("making authority %s: %w", name, err)
	}
	return parseAuthority(signed.certPEM, signed.keyPEM)
}

func parseAuthority(certPEM, keyPEM []byte) (*authority, error) {
	block, _ := pem.Decode(certPEM)
	if block == nil {
		return nil, fmt.Errorf("parsing an authority: its certificate is not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parsing an authority: %w", err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("parsing the key of authority %s: %w", cert.Subject.CommonName, err)
	}
	signer, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("parsing the key of authority %s: found %T, want an ECDSA key", cert.Subject.CommonName, key)
	}
	return &authority{pair: pair{certPEM, keyPEM}, cert: cert, key: signer}, nil
}

// server signs a serving certificate for every name of kube-apiserver on this machine and inside a
// cluster.
func (a *authority) server(name string) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default",
			"kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.ParseIP(serviceIP), net.ParseIP(nodeIP)},
	})
}

// client signs a client certificate: kube-apiserver takes the user from its common name and the
// groups from its organisations.
func (a *authority) client(user string, groups ...string) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (pair, error) {
	key, err := newKey()
	if err != nil {
		return pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	signed, err := sign(template, a.cert, key, a.key)
	if err != nil {
		return pair{}, fmt.Errorf("signing a certificate for %s: %w", template.Subject.CommonName, err)
	}
	return signed, nil
}

// sign completes the template and signs it. A nil parent means self-signed.
func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return pair{}, err
	}
	template.SerialNumber = serial
	// An hour in the past, in case the clock is set back between two starts.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.Add(lifetime)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return pair{}, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return pair{}, err
	}
	return pair{certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM: keyPEM}, nil
}

// writeClient signs a client certificate into NAME.crt and NAME.key.
func (p *pki) writeClient(name, user string, groups ...string) error {
	signed, err := p.ca.client(user, groups...)
	if err != nil {
		return err
	}
	for ending, content := range map[string][]byte{".crt": signed.certPEM, ".key": signed.keyPEM} {
		if err := os.WriteFile(p.file(name+ending), content, 0o600); err != nil {
			return fmt.Errorf("writing the PKI: %w", err)
		}
	}
	return nil
}
