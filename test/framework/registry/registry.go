package registry

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/registry"
	"k8s.io/client-go/util/cert"
)

// The files in the folder of a registry.
const (
	// CAFile contains the registry's certificate. AuthFile contains a client's credentials.
	CAFile   = "ca.crt"
	AuthFile = "auth.json"
	// CertsDir contains the certificate again, in a folder named after the registry.
	CertsDir = "certs"
	// MirrorsFile is a registries.conf that makes the registry a mirror of another registry.
	MirrorsFile = "registries.conf"
)

// Options configure a registry.
type Options struct {
	// Listen is an address on loopback.
	Listen string
	// User and Password are the required credentials. Without a User no credentials are required.
	User, Password string
	// MirrorOf is the host that MirrorsFile mirrors.
	MirrorOf string
}

// Registry serves images from memory until Close.
type Registry struct {
	// Host is host:port. Dir is the folder with the files.
	Host, Dir string
	server    *http.Server
	listener  net.Listener
	failed    chan error
}

// Start starts a registry, and writes the files that clients need into dir.
func Start(dir string, options Options) (*Registry, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", options.Listen)
	if err != nil {
		return nil, err
	}
	host := listener.Addr().String()
	address, _, err := net.SplitHostPort(host)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey(address, []net.IP{net.ParseIP(address)}, []string{"localhost"})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	r := &Registry{Host: host, Dir: dir, listener: listener, failed: make(chan error, 1)}
	if err := r.write(certificate, options); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	quiet := log.New(io.Discard, "", 0)
	r.server = &http.Server{
		Handler: protected(registry.New(registry.Logger(quiet)), options), ErrorLog: quiet, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	go func() { r.failed <- r.server.ServeTLS(listener, "", "") }()
	return r, nil
}

// Close stops the registry and drops its content.
func (r *Registry) Close() error { return r.server.Close() }

// Wait waits until the registry has stopped.
func (r *Registry) Wait(ctx context.Context) error {
	select {
	case err := <-r.failed:
		return err
	case <-ctx.Done():
		return r.Close()
	}
}

func (r *Registry) write(certificate []byte, options Options) error {
	auth := map[string]any{"auths": map[string]any{}}
	if options.User != "" {
		secret := map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(options.User + ":" + options.Password))}
		hosts := map[string]any{r.Host: secret}
		if options.MirrorOf != "" {
			hosts[options.MirrorOf] = secret
		}
		auth["auths"] = hosts
	}
	encoded, err := json.MarshalIndent(auth, "", "  ")
	if err != nil {
		return err
	}
	files := map[string][]byte{CAFile: certificate, AuthFile: encoded, filepath.Join(CertsDir, r.Host, CAFile): certificate}
	if err := os.MkdirAll(filepath.Join(r.Dir, CertsDir, r.Host), 0o700); err != nil {
		return err
	}
	if options.MirrorOf != "" {
		files[MirrorsFile] = fmt.Appendf(nil, "[[registry]]\nprefix = %q\nlocation = %q\n", options.MirrorOf, r.Host)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(r.Dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func protected(inner http.Handler, options Options) http.Handler {
	if options.User == "" {
		return inner
	}
	want := options.User + ":" + options.Password
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		user, password, _ := request.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(user+":"+password), []byte(want)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="images"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, request)
	})
}

// Serve starts a registry for a test, with a user, a password and mirrors of registry.example.com.
func Serve(t testing.TB) *Registry {
	t.Helper()
	r, err := Start(t.TempDir(), Options{Listen: "127.0.0.1:0", User: "me", Password: "lamp", MirrorOf: "registry.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// Push pushes an image of a folder for a test, and returns its reference by digest.
func (r *Registry) Push(t testing.TB, dir, repository string) string {
	t.Helper()
	image, err := FromFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	ref := r.Host + "/" + repository
	if err := Push(t.Context(), r.Dir, ref, image); err != nil {
		t.Fatal(err)
	}
	named, err := reference.ParseNamed(ref)
	if err != nil {
		t.Fatal(err)
	}
	return named.Name() + "@" + image.Digest()
}
