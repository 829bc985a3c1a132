package host

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"strings"
	"testing"

	certutil "k8s.io/client-go/util/cert"
)

func TestRefuseSharedCA(t *testing.T) {
	users, proxies := authorityPEM(t, "users"), authorityPEM(t, "proxies")
	cases := map[string]struct {
		reason string
		data   map[string]string
		want   string
	}{
		"Usual":      {"the proxy has an authority and a name", map[string]string{clientCAKey: users, proxyCAKey: proxies, proxyNamesKey: `["front-proxy-client"]`}, ""},
		"NoNames":    {"who has a certificate of the proxy's authority is the proxy", map[string]string{clientCAKey: users, proxyCAKey: proxies, proxyNamesKey: `[]`}, ""},
		"OnlyProxy":  {"nobody else has certificates", map[string]string{proxyCAKey: proxies}, ""},
		"SharedName": {"one authority, and one name that it gives to nobody else", map[string]string{clientCAKey: users, proxyCAKey: users, proxyNamesKey: `["front-proxy-client"]`}, ""},
		"Shared":     {"every user is the proxy", map[string]string{clientCAKey: users, proxyCAKey: users, proxyNamesKey: `[]`}, `the authority "users" signs`},
		"SharedNull": {"names that were never given", map[string]string{clientCAKey: users, proxyCAKey: users}, "any user could act as any other user"},
		"SharedPart": {"one of several", map[string]string{clientCAKey: users + proxies, proxyCAKey: proxies}, `the authority "proxies" signs`},
		"Garbage":    {"what cannot be read is not believed", map[string]string{clientCAKey: users, proxyCAKey: users, proxyNamesKey: `front-proxy-client`}, "reading requestheader-allowed-names"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := refuseSharedCA(tc.data)
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got error %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func authorityPEM(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := certutil.EncodeCertificates(cert)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
