package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/catalog/contentserver"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/controller/catalog"
	"github.com/penstock-project/penstock/pkg/server"
	"github.com/penstock-project/penstock/pkg/server/leadership"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/pkg/verification"
)

const (
	// DefaultCatalogAddr is the address at which the content of catalogs is served.
	DefaultCatalogAddr = ":8444"
	folderRetry        = 15 * time.Second
	catalogdTimeout    = 5 * time.Minute
)

// Catalogs has the settings for ClusterCatalogs, which come from flags, and the catalogs known at
// run time.
type Catalogs struct {
	// Addr is the address that serves the content of catalogs; empty serves none.
	Addr string
	// Dir is the folder of the catalogs on disk; empty turns catalogs off.
	Dir string
	// Registries configure the access to registries.
	Registries image.Registries
	// VerificationPolicy is a file with the rules for Sigstore bundles of images; empty for no
	// rules.
	VerificationPolicy string
	// AuthFile and PullSecret (namespace/name) hold credentials in addition to the credentials of
	// Penstock's ServiceAccount.
	AuthFile, PullSecret string
	// CatalogdCAFile is the certificate authority that verifies catalogd.
	CatalogdCAFile string
	// CatalogdNamespaces are the namespaces in which Penstock looks for the lease of catalogd.
	CatalogdNamespaces []string
	// TakeOver lets Penstock write ClusterCatalogs although catalogd's lease exists, unless
	// catalogd holds the lease.
	TakeOver bool

	// Inventory holds the known catalogs.
	Inventory *inventory.Inventory

	mu         sync.Mutex
	controller *catalog.Controller
	// images and credentials belong to the controller, and pull images; nil without a controller.
	images      catalog.Images
	credentials catalog.Credentials
	changed     chan struct{}
}

// NewCatalogs returns the default settings.
func NewCatalogs() *Catalogs {
	return &Catalogs{Addr: DefaultCatalogAddr, CatalogdNamespaces: clustercatalog.CatalogdNamespaces(), Inventory: inventory.New(clock.RealClock{}), changed: make(chan struct{})}
}

// AddFlags adds the flags.
func (c *Catalogs) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Addr, "catalog-addr", c.Addr,
		"Address at which the content of ClusterCatalogs is served over HTTPS, without authentication. Port 0 takes any free port. Empty: it is not served; packages are listed all the same.")
	flags.StringVar(&c.Dir, "catalog-dir", c.Dir,
		"Directory for ClusterCatalogs, created when absent. Several processes may share it: they share downloads then. Without it, a folder in --data-dir; with an external etcd, ClusterCatalogs are left alone.")
	flags.BoolVar(&c.TakeOver, "adopt-catalogs", c.TakeOver,
		"Write ClusterCatalogs although OLM's catalogd has a lease (catalogd-operator-lock) in this cluster, once catalogd no longer holds it. Without this flag Penstock reads what catalogd serves and writes nothing.")
	flags.StringSliceVar(&c.CatalogdNamespaces, "catalogd-namespaces", c.CatalogdNamespaces,
		"Namespaces where OLM's catalogd may be installed. While its lease is in one of them, Penstock does not write ClusterCatalogs. A lease of the same name elsewhere does not count.")
	flags.StringVar(&c.CatalogdCAFile, "catalogd-ca-file", c.CatalogdCAFile,
		"PEM bundle that verifies OLM's catalogd, where catalogd serves the ClusterCatalogs, besides the authorities of this system. The file is read again for each download.")
	flags.StringVar(&c.AuthFile, "registry-auth-file", c.AuthFile,
		"Credentials for registries, in the format of docker's config.json. The file is read again for each pull. Pull secrets of the ServiceAccount \"penstock\" in --namespace are used, too.")
	flags.StringVar(&c.PullSecret, "pull-secret", c.PullSecret,
		"Secret with credentials for registries, as namespace/name. It takes precedence over other credentials for the same registry. Penstock needs the right to read it.")
	flags.StringVar(&c.Registries.Conf, "registries-conf", c.Registries.Conf,
		"registries.conf of podman and CRI-O: mirrors, blocked registries, and registries without TLS.")
	flags.StringVar(&c.Registries.Certs, "registry-certs-dir", c.Registries.Certs,
		"Directory with a folder for each registry (host:port) that has authorities (*.crt) and client certificates (*.cert, *.key).")
	flags.StringVar(&c.Registries.CAs, "registry-cas-dir", c.Registries.CAs,
		"Directory with authorities (*.crt) for all registries, besides those of this system. --registry-certs-dir is not read then.")
	flags.StringVar(&c.Registries.Policy, "signature-policy", c.Registries.Policy,
		"policy.json of podman and CRI-O: whose signatures an image needs. Without it, no signatures are needed.")
	flags.StringVar(&c.VerificationPolicy, "verification-policy", c.VerificationPolicy,
		"File that says which keys or identities must have signed an image by a Sigstore bundle, and where it must have been built. It adds to --signature-policy. The file is read again for each pull. Without it, no bundles are needed.")
	flags.StringVar(&c.Registries.Lookaside, "registries-d", c.Registries.Lookaside,
		"registries.d of podman and CRI-O: where signatures are.")
}

// Validate returns all errors of the flags.
func (c *Catalogs) Validate() error {
	var errs []error
	if c.Addr != "" {
		if _, port, err := net.SplitHostPort(c.Addr); err != nil {
			errs = append(errs, fmt.Errorf("--catalog-addr %q must be host:port, or :port, or empty: %w", c.Addr, err))
		} else if n, err := strconv.ParseUint(port, 10, 16); err != nil {
			errs = append(errs, fmt.Errorf("the port of --catalog-addr %q must be 0 (any free port) to 65535, and is %d", c.Addr, n))
		}
	}
	if _, err := c.pullSecret(); err != nil {
		errs = append(errs, err)
	}
	if c.VerificationPolicy != "" {
		if _, err := verification.Load(c.VerificationPolicy); err != nil {
			errs = append(errs, fmt.Errorf("--verification-policy: %w", err))
		}
	}
	return errors.Join(errs...)
}

// registries returns Registries with the rules for Sigstore bundles.
func (c *Catalogs) registries() image.Registries {
	with := c.Registries
	if file := c.VerificationPolicy; file != "" {
		with.Rules = func(reference, catalog string) (image.Rules, error) {
			policy, err := verification.Load(file)
			if err != nil {
				return nil, err
			}
			if found := policy.For(reference, catalog); found != nil {
				return found, nil
			}
			return nil, nil
		}
	}
	return with
}

func (c *Catalogs) pullSecret() (types.NamespacedName, error) {
	if c.PullSecret == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, both := strings.Cut(c.PullSecret, "/")
	if !both || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("--pull-secret %q must be namespace/name", c.PullSecret)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

var _ server.Companion = &Catalogs{}

// Listen implements server.Companion. Without Dir there are no catalogs.
func (c *Catalogs) Listen() (net.Listener, error) {
	if c.Addr == "" || c.Dir == "" {
		return nil, nil
	}
	return contentserver.Listen(c.Addr)
}

// Prepare implements server.Companion.
func (c *Catalogs) Prepare(ctx context.Context, with server.Surroundings, listener net.Listener) (func(context.Context), error) {
	if c.Dir == "" {
		klog.FromContext(ctx).Info("Going without a feature", "feature", "ClusterCatalogs", "reason", "--catalog-dir is missing: it is where catalogs are kept")
		c.Inventory.MarkComplete() // there are none, so lists of packages are complete
		return func(context.Context) {}, nil
	}
	options, access, err := c.options(with)
	if err != nil {
		return nil, err
	}
	if listener != nil {
		port := listener.Addr().(*net.TCPAddr).Port
		options.Base = "https://" + net.JoinHostPort(with.ReachedAt, strconv.Itoa(port)) + strings.TrimSuffix(contentserver.Root, "/")
		klog.FromContext(ctx).Info("Listening for requests for the content of catalogs", "address", listener.Addr().String(), "url", options.Base)
	}
	run := &catalogsRun{catalogs: c, options: options, access: access, dir: c.Dir, listener: listener, certificate: with.Certificate, tls: with.TLS}
	if err := with.Metrics.Register(run); err != nil {
		return nil, fmt.Errorf("registering the metrics of catalogs: %w", err)
	}
	return run.run, nil
}

// options returns the options of the controller that need neither requests nor the disk.
func (c *Catalogs) options(with server.Surroundings) (catalog.Options, kubernetes.Interface, error) {
	config := with.Host("catalogs")
	catalogs, err := dynamic.NewForConfig(config)
	if err != nil {
		return catalog.Options{}, nil, fmt.Errorf("making a client for ClusterCatalogs: %w", err)
	}
	definitions, err := metadata.NewForConfig(config)
	if err != nil {
		return catalog.Options{}, nil, fmt.Errorf("making a client for ClusterCatalogs: %w", err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return catalog.Options{}, nil, fmt.Errorf("making a client for ClusterCatalogs: %w", err)
	}
	secret, err := c.pullSecret()
	if err != nil {
		return catalog.Options{}, nil, err
	}
	return catalog.Options{
		Clients:   catalog.Clients{Catalogs: catalogs, Definitions: definitions, Leases: core},
		Inventory: c.Inventory, Clock: clock.RealClock{}, CatalogdNamespaces: c.CatalogdNamespaces, TakeOver: c.TakeOver, Catalogd: c.catalogd,
		Credentials: &catalog.PullSecrets{
			Client: core, Global: secret, Path: c.AuthFile,
			ServiceAccount: types.NamespacedName{Namespace: with.Namespace, Name: registration.ServiceAccount},
		},
	}, core, nil
}

// catalogd returns a client for content that catalogd serves. The writer of a status chooses the
// address, so the client follows no redirect to another host, and sends no credentials.
func (c *Catalogs) catalogd() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if c.CatalogdCAFile != "" {
		bundle, err := os.ReadFile(c.CatalogdCAFile)
		if err != nil {
			return nil, fmt.Errorf("reading --catalogd-ca-file: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("--catalogd-ca-file %s has no certificate in PEM", c.CatalogdCAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{
		Transport: transport, Timeout: catalogdTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// Controller returns the controller that writes ClusterCatalogs while this replica leads.
func (c *Catalogs) Controller() leadership.Controller {
	return leadership.Controller{Name: "catalogs", Start: func(_ context.Context, term leadership.Term) error {
		return term.Manager.Add(manager.RunnableFunc(c.lead))
	}}
}

// lead runs the current controller as the leader. If the controller changes, it runs the new
// controller.
func (c *Catalogs) lead(ctx context.Context) error {
	for ctx.Err() == nil {
		c.mu.Lock()
		controller, changed := c.controller, c.changed
		c.mu.Unlock()
		leading, stop := context.WithCancel(ctx)
		go func() {
			select {
			case <-changed:
			case <-leading.Done():
			}
			stop()
		}()
		if controller != nil {
			controller.Lead(leading)
		}
		<-leading.Done()
		stop()
	}
	return nil
}

func (c *Catalogs) set(controller *catalog.Controller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.controller, c.images, c.credentials = controller, nil, nil
	if controller != nil {
		c.images, c.credentials = controller.Images, controller.Credentials
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// puller returns the puller of images, or nil while the folder is not open.
func (c *Catalogs) puller() (catalog.Images, catalog.Credentials) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.images, c.credentials
}

func (c *Catalogs) present() *catalog.Controller {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.controller
}
