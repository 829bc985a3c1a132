package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/console"
	"github.com/penstock-project/penstock/pkg/console/screens"
	"github.com/penstock-project/penstock/pkg/console/web"
)

type consoleOptions struct {
	listen, certificate, key  string
	hosts                     []string
	cluster                   string
	server, serverCertificate string
	readOnly                  bool
	provider                  web.Provider
}

func newConsoleCommand() *cobra.Command {
	options := consoleOptions{}
	command := &cobra.Command{
		Use:   "console",
		Short: "Serve the console in a cluster, to users who bring their own token",
		Long: "Serve the pages of kubectl penstock console over TLS. It has no credentials, and sends no requests in its own name: each\n" +
			"request of a page has the token of its user, which the console passes to kube-apiserver unchanged. Users sign in at\n" +
			"an OpenID Connect provider, enter a token, or come through an authenticating proxy that adds it. --host is required: requests\n" +
			"for other hosts are refused.",
		Example: "  penstock console --host=console.example.com --tls-cert-file=tls.crt --tls-private-key-file=tls.key",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return options.run(genericapiserver.SetupSignalContext())
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.listen, "listen", ":8443", "Address to listen on.")
	flags.StringSliceVar(&options.hosts, "host", nil, "Host of the address that browsers open, with its port unless the port is 443: console.example.com, or localhost:8443. May be given several times.")
	flags.StringVar(&options.certificate, "tls-cert-file", "", "Certificate for TLS; it is read again when it changes.")
	flags.StringVar(&options.key, "tls-private-key-file", "", "Key of the certificate.")
	flags.StringVar(&options.cluster, "cluster-name", "this cluster", "Name of the cluster in the pages.")
	flags.StringVar(&options.server, "api-server", "", "URL of kube-apiserver. Default: the cluster that this process runs in.")
	flags.StringVar(&options.serverCertificate, "api-server-ca-file", "", "Certificate authority of kube-apiserver.")
	flags.StringVar(&options.provider.Issuer, "oidc-issuer-url", "", "URL of an OpenID Connect provider at which users sign in, as kube-apiserver has it: kube-apiserver must trust the same issuer. Only https.")
	flags.StringVar(&options.provider.ClientID, "oidc-client-id", "", "Client ID of the console at the provider, of a public client with PKCE and the redirect URI https://HOST/. kube-apiserver must accept it as audience.")
	flags.StringSliceVar(&options.provider.Scopes, "oidc-extra-scope", nil, "Scope to request beside openid, such as groups or offline_access. May be given several times.")
	flags.BoolVar(&options.readOnly, "read-only", false, "Only show: no button changes anything.")
	return command
}

func (o *consoleOptions) check() error {
	switch {
	case len(o.hosts) == 0:
		return errors.New("--host is required: the host that browsers open, such as console.example.com; every other host is refused")
	case o.certificate == "" || o.key == "":
		return errors.New("--tls-cert-file and --tls-private-key-file are required: tokens go over this connection")
	case o.serverCertificate == "":
		return errors.New("--api-server-ca-file is required: tokens are sent only to kube-apiserver")
	}
	for _, host := range o.hosts {
		if strings.ContainsAny(host, "/@?# ") || host != strings.ToLower(host) || hostname(host) == "" {
			return fmt.Errorf("--host %q: want a name in lower case and, unless the port is 443, a port, such as console.example.com or localhost:8443", host)
		}
	}
	if err := checkProvider(o.provider); err != nil {
		return err
	}
	if o.server == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return errors.New("--api-server is required: this process does not run in a cluster")
		}
		o.server = "https://" + net.JoinHostPort(host, port)
	}
	if !strings.HasPrefix(o.server, "https://") {
		return fmt.Errorf("--api-server %q: want a URL that begins with https://", o.server)
	}
	return nil
}

// checkProvider requires an issuer whose origin is valid in the Content-Security-Policy.
func checkProvider(provider web.Provider) error {
	switch {
	case provider.Issuer == "" && provider.ClientID == "" && len(provider.Scopes) == 0:
		return nil
	case provider.Issuer == "":
		return errors.New("--oidc-issuer-url is required beside other flags of OpenID Connect")
	case provider.ClientID == "":
		return errors.New("--oidc-client-id is required beside --oidc-issuer-url")
	}
	issuer, err := url.Parse(provider.Issuer)
	if err != nil || issuer.Scheme != "https" || issuer.User != nil || strings.ContainsAny(provider.Issuer, "?#") || strings.HasSuffix(issuer.Host, ":") || issuer.Port() == "443" || issuer.Host != strings.ToLower(issuer.Host) || hostname(issuer.Host) == "" {
		return fmt.Errorf("--oidc-issuer-url %q: want a URL that begins with https://, with a host in lower case, without user, query, fragment or the port 443", provider.Issuer)
	}
	for _, scope := range provider.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }) {
			return fmt.Errorf("--oidc-extra-scope %q: want one scope without spaces and quotes", scope)
		}
	}
	return nil
}

// hostname returns the name of a host without its port; empty if it is invalid.
func hostname(host string) string {
	name := host
	if split, _, err := net.SplitHostPort(host); err == nil {
		name = split
	}
	if net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return name
}

func (o *consoleOptions) handler() (http.Handler, error) {
	base := rest.Config{
		Host: o.server, TLSClientConfig: rest.TLSClientConfig{CAFile: o.serverCertificate},
		UserAgent: "penstock-console/" + programVersion(),
		QPS:       -1, // kube-apiserver shares its capacity among users
	}
	version := &client.ServerVersion{}
	return console.NewShared(console.SharedOptions{Hosts: slices.Clone(o.hosts), Provider: o.provider, As: func(token string) (*screens.API, error) {
		config := rest.CopyConfig(&base)
		config.BearerToken = token
		return screens.New(screens.Options{Config: config, Cluster: o.cluster, Version: programVersion(), ReadOnly: o.readOnly, Server: version})
	}})
}

// The timeouts of the console's server. There is none for a whole answer, because streams last.
const (
	consoleHeaderTime = 10 * time.Second
	consoleIdleTime   = 2 * time.Minute
)

func (o *consoleOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	handler, err := o.handler()
	if err != nil {
		return err
	}
	pair, err := dynamiccertificates.NewDynamicServingContentFromFiles("console", o.certificate, o.key)
	if err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	go pair.Run(ctx, 1)
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	fmt.Printf("the console listens on %s, for %s\n", listener.Addr(), strings.Join(o.hosts, ", "))
	// The console has no log: it would record users' requests, and libraries log whole requests.
	klog.SetLogger(logr.Discard())
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: consoleHeaderTime, IdleTimeout: consoleIdleTime, MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			now, err := tls.X509KeyPair(pair.CurrentCertKeyContent())
			return &now, err
		}},
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	select {
	case <-ctx.Done():
		return server.Close() // streams would last for ever
	case err := <-ended:
		return fmt.Errorf("serving the console: %w", err)
	}
}
