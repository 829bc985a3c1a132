//go:build integration

package server_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"regexp"
	"testing"

	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// TestTLS: the API and the content of catalogs obey the TLS flags of k8s.io/apiserver.
func TestTLS(t *testing.T) {
	t.Parallel()
	c, program, dir := borrow(t), penstock.Build(t), dataDir(t)
	type attempt struct {
		reason string
		client *tls.Config
		want   bool
	}
	for _, test := range []struct {
		name     string
		flags    []string
		attempts []attempt
	}{
		{"Version", []string{"--tls-min-version=VersionTLS13", fmt.Sprintf("--tls-curve-preferences=%d,%d", tls.CurveP256, tls.SecP256r1MLKEM768)}, []attempt{
			{"an older version", &tls.Config{MaxVersion: tls.VersionTLS12}, false},
			{"another curve", &tls.Config{CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP384}}, false},
			{"a curve of the flag, whichever of its names: it is a number", &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP256}}, true},
			{"a post-quantum hybrid", &tls.Config{CurvePreferences: []tls.CurveID{tls.SecP256r1MLKEM768}}, true},
		}},
		{"Suites", []string{"--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}, []attempt{
			{"a suite of the flag", suites(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256), true},
			{"another suite", suites(tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384), false},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := program.Serve(t, c, dir, test.flags...)
			defer server.Stop(t)
			listens := regexp.MustCompile(`the content of catalogs" address="([^"]+)"`).FindStringSubmatch(server.Log())
			if listens == nil {
				t.Fatalf("the log has no address of the catalogs:\n%s", server.Log())
			}
			for what, address := range map[string]string{"the API": fmt.Sprint("127.0.0.1:", server.Port()), "catalogs": listens[1]} {
				for _, one := range test.attempts {
					if err := shakesHands(address, one.client); (err == nil) != one.want {
						t.Errorf("%s, %s: accepted: %t: %v", what, one.reason, err == nil, err)
					}
				}
			}
		})
	}
}

func suites(ids ...uint16) *tls.Config {
	return &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: ids}
}

// shakesHands makes a TLS connection and returns its error.
func shakesHands(address string, client *tls.Config) error {
	client = client.Clone()
	client.InsecureSkipVerify = true
	connection, err := tls.DialWithDialer(&net.Dialer{Timeout: poll.Patience}, "tcp", address, client)
	if err != nil {
		return err
	}
	return connection.Close()
}
