//go:build integration

package server_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/plane"
)

const (
	apiService = "v1alpha1.olm.operatorframework.io"
	system     = "--namespace=penstock-system"
)

// TestCertificates: the certificates that the host trusts are repaired after a change, and renewed
// without failing requests.
func TestCertificates(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	dir := dataDir(t)
	p := start(t, newOptions(t, c, dir))
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	t.Run("Restored", func(t *testing.T) { restored(t, c.In(t)) })
	t.Run("Metrics", func(t *testing.T) {
		body, _ := get(t, p.Loopback(), "/metrics")
		for _, want := range []string{`penstock_certificate_expiration_timestamp_seconds{certificate="serving"}`,
			`penstock_certificate_expiration_timestamp_seconds{certificate="authority"}`, "penstock_host_clock_skew_seconds 0"} {
			if !strings.Contains(body, want) {
				t.Errorf("/metrics does not have %s", want)
			}
		}
	})
	t.Run("AnotherAuthority", func(t *testing.T) { anotherAuthority(t, c.In(t), p.Port) })
	p.halt(t)
	t.Run("Files", func(t *testing.T) { certificateFiles(t, c.In(t), dir, p.Port) })
	t.Run("Leaving", func(t *testing.T) { leaving(t, c.In(t), dir) })
}

// restored: within seconds Penstock repairs any change of the objects that it needs in the host.
func restored(t *testing.T, c *cluster.Cluster) {
	bundle := c.MustKubectl("get", "apiservice", apiService, "-o", "jsonpath={.spec.caBundle}")
	foreign, _, _ := newPair(t, "foreign")
	cases := map[string]struct {
		reason string
		harm   []string
		// read names the object, and path the JSONPath of the value that must be restored.
		read []string
		path string
	}{
		"NoBundle": {
			reason: "the bundle is removed",
			harm:   []string{"patch", "apiservice", apiService, "--type=json", `-p=[{"op":"remove","path":"/spec/caBundle"}]`},
			read:   []string{"apiservice", apiService}, path: "{.spec.caBundle}",
		},
		"OtherBundle": {
			reason: "somebody puts their own there",
			harm: []string{"patch", "apiservice", apiService, "--type=merge",
				fmt.Sprintf(`-p={"spec":{"caBundle":%q}}`, base64.StdEncoding.EncodeToString(foreign))},
			read: []string{"apiservice", apiService}, path: "{.spec.caBundle}",
		},
		"NoVerification": {
			reason: "verification is switched off",
			harm: []string{"patch", "apiservice", apiService, "--type=merge",
				`-p={"spec":{"caBundle":null,"insecureSkipTLSVerify":true}}`},
			read: []string{"apiservice", apiService}, path: "{.spec.caBundle}{.spec.insecureSkipTLSVerify}",
		},
		"OtherService": {
			reason: "our API is led to somebody else",
			harm:   []string{"patch", "apiservice", apiService, "--type=merge", `-p={"spec":{"service":{"namespace":"default","name":"other"}}}`},
			read:   []string{"apiservice", apiService}, path: "{.spec.service}",
		},
		"APIServiceDeleted": {
			reason: "the registration is deleted",
			harm:   []string{"delete", "apiservice", apiService},
			read:   []string{"apiservice", apiService}, path: "{.spec}",
		},
		"ServiceDeleted": {
			reason: "the Service is deleted",
			harm:   []string{"delete", "service", "penstock", system},
			read:   []string{"service", "penstock", system}, path: "{.spec.externalName}",
		},
		"AccountDeleted": {
			reason: "the account of live diffs is deleted",
			harm:   []string{"delete", "serviceaccount", "penstock-reader", system},
			read:   []string{"serviceaccount", "penstock-reader", system}, path: "{.metadata.name}",
		},
		"RoleChanged": {
			reason: "rights are taken from it",
			harm:   []string{"patch", "clusterrole", "penstock-reader", "--type=merge", `-p={"rules":[]}`},
			read:   []string{"clusterrole", "penstock-reader"}, path: "{.rules}",
		},
		"BindingDeleted": {
			reason: "all rights are",
			harm:   []string{"delete", "clusterrolebinding", "penstock-reader"},
			read:   []string{"clusterrolebinding", "penstock-reader"}, path: "{.subjects}{.roleRef}",
		},
		"PolicyUnbound": {
			reason: "its dry-runs could become writes",
			harm:   []string{"delete", "validatingadmissionpolicybinding", "penstock-identities"},
			read:   []string{"validatingadmissionpolicybinding", "penstock-identities"}, path: "{.spec}",
		},
		"PolicyOpened": {
			reason: "they could, too",
			harm: []string{"patch", "validatingadmissionpolicy", "penstock-identities", "--type=json",
				`-p=[{"op":"replace","path":"/spec/validations/0/expression","value":"true"}]`},
			read: []string{"validatingadmissionpolicy", "penstock-identities"}, path: "{.spec.validations}",
		},
	}
	for name, tc := range cases {
		// These subtests run in sequence, because some change the same object.
		t.Run(name, func(t *testing.T) {
			c := c.In(t)
			read := append([]string{"get", "-o", "jsonpath=" + tc.path, "--ignore-not-found"}, tc.read...)
			before := c.MustKubectl(read...)
			c.MustKubectl(tc.harm...)
			eventually(t, tc.reason, func() error {
				if got := c.Kubectl(read...).Stdout; got != before || got == "" {
					return fmt.Errorf("it is %q, want %q as before", got, before)
				}
				return nil
			})
		})
	}
	eventually(t, "our API after all that", func() error {
		if out := c.Kubectl("get", "cer", "argocd-1"); out.ExitCode != 0 {
			return errors.New(out.Stderr)
		}
		return nil
	})
	if got := c.MustKubectl("get", "apiservice", apiService, "-o", "jsonpath={.spec.caBundle}"); got != bundle {
		t.Errorf("the bundle has changed")
	}
}

// load requests a revision through the host until the context ends. It fails the test if a request
// fails.
func load(ctx context.Context, t *testing.T, c *cluster.Cluster) (wait func() int32) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	// kube-apiserver may use the old registration for a moment after a repair.
	eventually(t, "an answer through the host", func() error {
		_, err := client.Resource(revisionsResource()).Get(ctx, "argocd-1", metav1.GetOptions{})
		return err
	})
	var callers sync.WaitGroup
	var served atomic.Int32
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				_, err := client.Resource(revisionsResource()).Get(ctx, "argocd-1", metav1.GetOptions{})
				switch {
				case err == nil:
					served.Add(1)
				case ctx.Err() == nil:
					t.Errorf("a request failed: %v", err)
					return
				}
				// Requests must arrive during the change, but need not be many. The pause leaves
				// processor time to other tests.
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return func() int32 { callers.Wait(); return served.Load() }
}

// anotherAuthority: the authority is replaced under load, and no request is lost.
func anotherAuthority(t *testing.T, c *cluster.Cluster, port int) {
	old := issuer(t, port)
	ctx, stop := context.WithCancel(t.Context())
	wait := load(ctx, t, c)
	c.MustKubectl("delete", "secret", "penstock-ca", system)
	eventually(t, "a leaf of another authority", func() error {
		if bytes.Equal(issuer(t, port), old) {
			return errors.New("the certificate is still signed by the old authority")
		}
		return nil
	})
	// Clients that reconnect must be able to verify the new certificate.
	out := c.MustKubectl("get", "apiservice", apiService, "-o", "jsonpath={.spec.caBundle}")
	bundle, err := base64.StdEncoding.DecodeString(out)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := certutil.ParseCertsPEM(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if len(certs) != 2 {
		t.Errorf("the bundle has %d authorities, want the new and the old authority", len(certs))
	}
	dial(t, port, bundle)
	stop()
	t.Logf("%d requests", wait())
}

// certificateFiles: Penstock reads changed certificate files again, and updates the bundle. Here
// another tool has created the Service.
func certificateFiles(t *testing.T, c *cluster.Cluster, data string, port int) {
	dir := t.TempDir()
	certFile, keyFile, caFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")
	oldCA, oldCert, oldKey := newPair(t, "one")
	newCA, newCert, newKey := newPair(t, "two")
	write(t, caFile, oldCA)
	write(t, certFile, oldCert)
	write(t, keyFile, oldKey)
	options := newOptions(t, c, data, "--tls-cert-file="+certFile, "--tls-private-key-file="+keyFile, "--register-ca-file="+caFile,
		"--secure-port", strconv.Itoa(port), "--register-service-port", strconv.Itoa(port))
	options.Version = "files"
	p := start(t, options)
	old := issuer(t, p.Port)
	ctx, stop := context.WithCancel(t.Context())
	wait := load(ctx, t, c)

	// This is the right order to replace an authority: first trust the new authority, then use it.
	both := append(bytes.Clone(oldCA), newCA...)
	write(t, caFile, both)
	eventually(t, "the bundle of the file", func() error {
		got := c.Kubectl("get", "apiservice", apiService, "-o", "jsonpath={.spec.caBundle}").Stdout
		if got != base64.StdEncoding.EncodeToString(both) {
			return errors.New("the bundle does not have both authorities")
		}
		return nil
	})
	// kube-apiserver learns of the bundle from a watch, with a delay.
	time.Sleep(2 * time.Second)
	write(t, keyFile, newKey)
	write(t, certFile, newCert)
	eventually(t, "the certificate of the file", func() error {
		if bytes.Equal(issuer(t, p.Port), old) {
			return errors.New("the authority is still the old one")
		}
		return nil
	})
	dial(t, p.Port, newCA)
	stop()
	t.Logf("%d requests", wait())
	if written := c.Audit().Since(0, plane.ByAgent("penstock/files/"), plane.ByResource("services"), plane.Writes()); len(written) > 0 {
		t.Errorf("another owner's Service was written:\n%s", written)
	}
}

// leaving: a user deletes all of Penstock without unregistering it first. A process that still runs
// must not restore the registration, because no server would answer for it.
func leaving(t *testing.T, c *cluster.Cluster, dir string) {
	options := newOptions(t, c, dir)
	options.Version = "leaving"
	start(t, options)
	mark := c.Audit().Mark()
	c.MustKubectl("delete", "namespace", "penstock-system", "--wait=false")
	c.MustKubectl("delete", "apiservice", apiService)
	deleted := c.Audit().Since(mark, plane.ByVerb("delete"), plane.ByResource("apiservices"))
	if len(deleted) == 0 {
		t.Fatal("the deletion is not in the audit log")
	}
	registration := func(r plane.Request) bool {
		return plane.ByAgent("penstock/leaving/registration")(r) && r.Received.After(deleted[0].Received)
	}
	eventually(t, "the look at the namespace", func() error {
		if len(c.Audit().Since(mark, registration, plane.ByVerb("get"), plane.ByResource("namespaces"))) == 0 {
			return errors.New("the registration has not been checked")
		}
		return nil
	})
	// An access review is a create that stores nothing.
	leavesSomething := func(r plane.Request) bool { return r.Resource != "selfsubjectaccessreviews" }
	if written := c.Audit().Since(mark, registration, plane.Writes(), leavesSomething); len(written) > 0 {
		t.Errorf("the registration was created again:\n%s", written)
	}
	if out := c.Kubectl("get", "apiservice", apiService); out.ExitCode == 0 {
		t.Errorf("the registration exists: %s", out)
	}
}

// issuer returns the id of the key that signed a server's certificate. The names of the two
// authorities are equal, so they cannot be compared.
func issuer(t *testing.T, port int) []byte {
	t.Helper()
	conn, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].AuthorityKeyId
}

// dial verifies a server's certificate as kube-apiserver does.
func dial(t *testing.T, port int, bundle []byte) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	conn, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), &tls.Config{RootCAs: roots, ServerName: "penstock.penstock-system.svc"})
	if err != nil {
		t.Errorf("connecting with the bundle: %v", err)
		return
	}
	_ = conn.Close()
}

// newPair returns a new authority, and a certificate and key that it signed, in PEM.
func newPair(t *testing.T, name string) (caPEM, certPEM, keyPEM []byte) {
	t.Helper()
	caKey, leafKey := newKey(t), newKey(t)
	ca, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, caKey)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "penstock"},
		DNSNames:  []string{"penstock.penstock-system.svc", "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, leafKey.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(leafKey); err != nil {
		t.Fatal(err)
	}
	caPEM, certPEM = encode(t, ca), encode(t, leaf)
	return caPEM, certPEM, keyPEM
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encode(t *testing.T, cert *x509.Certificate) []byte {
	t.Helper()
	encoded, err := certutil.EncodeCertificates(cert)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// write replaces a file atomically.
func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
