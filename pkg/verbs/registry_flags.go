package verbs

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/penstock-project/penstock/pkg/catalog/image"
)

// imageScheme begins the references of images, where a file is possible, too.
const imageScheme = "oci://"

// imageReference returns the reference of an image, if the argument has the scheme.
func imageReference(given string) (ref string, isImage bool) {
	return strings.CutPrefix(given, imageScheme)
}

// unusedImages is the time after which an unused image is removed from the cache.
const unusedImages = 7 * 24 * time.Hour

// registryFlags configure the pulling of images. Proxies are from the environment: HTTPS_PROXY and
// NO_PROXY.
type registryFlags struct {
	authFile  string
	conf      string
	policy    string
	lookaside string
	certs     string
	ca        string
	cache     string
}

func (f *registryFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.authFile, "auth-file", "", "File with credentials for registries, in the format of docker's config.json. Default: $REGISTRY_AUTH_FILE (oci://).")
	flags.StringVar(&f.conf, "registries-conf", "",
		"File registries.conf, with mirrors, blocked registries and registries without TLS. Default: $CONTAINERS_REGISTRIES_CONF (oci://).")
	flags.StringVar(&f.policy, "signature-policy", "", "File policy.json, which says whose signatures an image needs; without it, no signatures are needed (oci://).")
	flags.StringVar(&f.lookaside, "registries-d", "", "Directory registries.d, which says where signatures are (oci://).")
	flags.StringVar(&f.certs, "certs-dir", "", "Directory with a subdirectory for each host:port, which has CAs (*.crt) and client certificates (*.cert, *.key) (oci://).")
	flags.StringVar(&f.ca, "ca-file", "", "File with CAs for all registries, besides those of the system (oci://).")
	flags.StringVar(&f.cache, "image-cache", "", "Directory for pulled images. Default: penstock/images in the user's cache (oci://).")
}

func registryFlagNames() []string {
	return []string{"auth-file", "registries-conf", "signature-policy", "registries-d", "certs-dir", "ca-file", "image-cache"}
}

func (f *registryFlags) fetch(ctx context.Context, ref string) (fetched *image.Image, err error) {
	if f.ca != "" && f.certs != "" {
		return nil, errors.New("--ca-file and --certs-dir: want one or the other")
	}
	options := image.DefaultOptions()
	options.Registries = image.Registries{
		Conf: orEnvironment(f.conf, "CONTAINERS_REGISTRIES_CONF"), Certs: f.certs, Policy: f.policy, Lookaside: f.lookaside,
		// The credentials file is the user's own, so its helpers may run.
		Helpers: true,
	}
	// A user waits, so there are few retries.
	options.Backoff.Steps = 3
	if f.ca != "" {
		if options.Registries.CAs, err = folderOf(f.ca); err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		defer os.RemoveAll(options.Registries.CAs)
	}
	store, err := f.open(options)
	if err != nil {
		return nil, err
	}
	auth := orEnvironment(f.authFile, "REGISTRY_AUTH_FILE")
	if fetched, err = store.Fetch(ctx, image.Request{Reference: ref, Auth: auth}); err != nil {
		return nil, f.explain(err, auth)
	}
	if err := store.CollectUnused(time.Now().Add(-unusedImages)); err != nil {
		return nil, errors.Join(err, fetched.Close())
	}
	return fetched, nil
}

// explain adds a flag that may help to a registry's refusal.
func (f *registryFlags) explain(err error, auth string) error {
	var authority x509.UnknownAuthorityError
	switch unauthorized := strings.Contains(strings.ToLower(err.Error()), "unauthorized"); {
	case unauthorized && auth == "":
		return fmt.Errorf("%w: no credentials were given; set --auth-file to a file with credentials", err)
	case unauthorized:
		return fmt.Errorf("%w: the registry refuses the credentials in %s, or the file has none for it", err, auth)
	case errors.As(err, &authority) && f.ca == "":
		return fmt.Errorf("%w: set --ca-file to a file with the certificate authority of the registry", err)
	}
	return err
}

func (f *registryFlags) open(options image.Options) (*image.Store, error) {
	folder := f.cache
	if folder == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("there is no folder for images: set --image-cache: %w", err)
		}
		folder = filepath.Join(user, "penstock", "images")
	}
	return image.Open(folder, options)
}

// folderOf copies a file with CAs into a separate folder, because the library needs a folder.
func folderOf(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "penstock-ca-")
	if err != nil {
		return "", err
	}
	return folder, os.WriteFile(filepath.Join(folder, "ca.crt"), content, 0o600)
}

func orEnvironment(value, name string) string {
	if value != "" {
		return value
	}
	return os.Getenv(name)
}
