package image

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/distribution/reference"
	"github.com/docker/distribution/registry/api/errcode"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
)

// Registries are the configuration files for registries, in the formats of podman and CRI-O. A file
// that is not set is not searched elsewhere.
type Registries struct {
	// Conf is registries.conf: mirrors, blocked registries, and registries without TLS.
	Conf string
	// Certs is a folder with one folder per host:port, with CAs (*.crt) and client certificates
	// (*.cert, *.key).
	Certs string
	// CAs is a folder with CAs (*.crt) for all registries, in addition to the system's CAs. If it
	// is set, Certs is not read.
	CAs string
	// Policy is policy.json: the required signers of images. Without it, no signatures are
	// required.
	Policy string
	// Rules returns the required Sigstore bundles for an image of a catalog, or nil. It is called
	// for each pull.
	Rules func(reference, catalog string) (Rules, error)
	// Lookaside is the folder registries.d with the places of signatures.
	Lookaside string
	// Helpers allows authentication files to name programs that return credentials. An untrusted
	// file must not choose which program runs here.
	Helpers bool
}

// largestAuthFile limits an authentication file, in bytes.
const largestAuthFile = 1 << 20

// parse parses a reference. As in OLM, it must include the registry. If it has a digest, the tag is
// dropped.
func parse(ref string) (named reference.Named, pinned digest.Digest, err error) {
	if named, err = reference.ParseNamed(ref); err != nil {
		return nil, "", &Refused{Image: ref, Reason: "a reference with registry, repository, and tag or digest is expected", Err: err}
	}
	if canonical, ok := named.(reference.Canonical); ok {
		if named, err = reference.WithDigest(reference.TrimNamed(named), canonical.Digest()); err != nil {
			return nil, "", err
		}
		return named, canonical.Digest(), nil
	}
	return reference.TagNameOnly(named), "", nil
}

// system returns the configuration for access to registries. It sets every path that the library
// would otherwise search in the user's folders.
func (s *Store) system(auth string) (*types.SystemContext, error) {
	or := func(file, missing string) string {
		if file == "" {
			return missing
		}
		return file
	}
	nowhere := filepath.Join(s.root, nowhere)
	system := &types.SystemContext{
		SystemRegistriesConfPath:    or(s.options.Registries.Conf, os.DevNull),
		SystemRegistriesConfDirPath: nowhere,
		RegistriesDirPath:           or(s.options.Registries.Lookaside, nowhere),
		DockerCertPath:              s.options.Registries.CAs,
		DockerPerHostCertDirPath:    or(s.options.Registries.Certs, nowhere),
		OSChoice:                    "linux",
		DockerRegistryUserAgent:     "penstock",
	}
	if auth == "" {
		system.DockerAuthConfig = &types.DockerAuthConfig{}
		return system, nil
	}
	if err := s.checkAuthFile(auth); err != nil {
		return nil, err
	}
	system.AuthFilePath = auth
	return system, nil
}

func (s *Store) checkAuthFile(file string) error {
	found, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("reading the authentication file: %w", err)
	}
	if found.Size() > largestAuthFile {
		return fmt.Errorf("the authentication file %s has %d bytes; at most %d are allowed", file, found.Size(), largestAuthFile)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the authentication file: %w", err)
	}
	var helpers struct {
		CredsStore  string            `json:"credsStore"`
		CredHelpers map[string]string `json:"credHelpers"`
	}
	if err := json.Unmarshal(content, &helpers); err != nil {
		// The decoder's error may quote the file, which is secret.
		return fmt.Errorf("the authentication file %s is no JSON in the format of docker's config.json", file)
	}
	if !s.options.Registries.Helpers && (helpers.CredsStore != "" || len(helpers.CredHelpers) > 0) {
		return fmt.Errorf("the authentication file %s names programs in credsStore or credHelpers, which are not run here; auths is allowed", file)
	}
	return nil
}

// session is one image at the registry or mirror that has it.
type session struct {
	source   types.ImageSource
	system   *types.SystemContext
	top      types.UnparsedImage
	manifest []byte
	kind     string
	// digest is the digest of the manifest or index as served, to which references are pinned.
	digest digest.Digest
	rules  Rules
}

func (s *Store) connect(ctx context.Context, named reference.Named, auth string) (*session, error) {
	system, err := s.system(auth)
	if err != nil {
		return nil, err
	}
	// The library caches configuration by file name.
	sysregistriesv2.InvalidateCache()
	ref, err := docker.ParseReference("//" + named.String())
	if err != nil {
		return nil, &Refused{Reason: "it is no reference to an image in a registry", Err: err}
	}
	source, err := ref.NewImageSource(ctx, system)
	if err != nil {
		return nil, remote(err)
	}
	o := &session{source: source, system: system, top: image.UnparsedInstance(source, nil)}
	if o.manifest, o.kind, err = o.top.Manifest(ctx); err == nil {
		o.digest, err = manifest.Digest(o.manifest)
	}
	if err != nil {
		_ = source.Close()
		return nil, remote(err)
	}
	return o, nil
}

// remote converts an error of a registry. It returns an outage if a later attempt may succeed.
func remote(err error) error {
	var (
		unauthorized docker.ErrUnauthorizedForCredentials
		status       docker.UnexpectedHTTPStatusError
		coded        errcode.ErrorCoder
		certificate  *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &unauthorized), errors.As(err, &certificate):
		return err
	case errors.As(err, &status) && lasting(status.StatusCode), errors.As(err, &coded) && lasting(coded.ErrorCode().Descriptor().HTTPStatusCode):
		return err
	case strings.Contains(err.Error(), "does not match provided manifest digest"), strings.Contains(err.Error(), "is blocked in"):
		return &Refused{Reason: "it is not what was asked for, or not allowed", Err: err}
	}
	return &outage{err}
}

func lasting(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}

// instance returns the manifest for this platform: the top-level manifest, or one from its list.
func (o *session) instance(ctx context.Context) (types.UnparsedImage, *specs.Manifest, error) {
	chosen, content, kind := o.top, o.manifest, o.kind
	if manifest.MIMETypeIsMultiImage(kind) {
		list, err := manifest.ListFromBlob(content, kind)
		if err != nil {
			return nil, nil, &Refused{Reason: "its index cannot be read", Err: err}
		}
		one, err := list.ChooseInstance(o.system)
		if err != nil {
			return nil, nil, &Refused{Reason: "its index has no image for this machine", Err: err}
		}
		chosen = image.UnparsedInstance(o.source, &one)
		if content, kind, err = chosen.Manifest(ctx); err != nil {
			return nil, nil, remote(err)
		}
	}
	if kind != manifest.DockerV2Schema2MediaType && kind != specs.MediaTypeImageManifest {
		return nil, nil, refuse("", "its manifest has the media type %q; %s and %s are allowed", kind, specs.MediaTypeImageManifest, manifest.DockerV2Schema2MediaType)
	}
	// Docker and OCI manifests have the same fields here.
	parsed := &specs.Manifest{}
	if err := json.Unmarshal(content, parsed); err != nil {
		return nil, nil, &Refused{Reason: "its manifest is no JSON that can be read", Err: err}
	}
	return chosen, parsed, nil
}

// blob opens a blob. It does not pass the descriptor's URLs to the library, because otherwise an
// image could choose where Penstock connects to.
func (o *session) blob(ctx context.Context, of specs.Descriptor) (*blob, func(), error) {
	r, size, err := o.source.GetBlob(ctx, types.BlobInfo{Digest: of.Digest, Size: of.Size, MediaType: of.MediaType}, none.NoCache)
	if err != nil {
		return nil, nil, remote(err)
	}
	if size >= 0 && size != of.Size {
		_ = r.Close()
		return nil, nil, refuse("", "the registry has %d bytes of it, and the manifest says %d", size, of.Size)
	}
	return newBlob(r, of.Size, of.Digest), func() { _ = r.Close() }, nil
}

// config reads the configuration of the image, which has its labels.
func (o *session) config(ctx context.Context, of specs.Descriptor) (*specs.Image, error) {
	b, done, err := o.blob(ctx, of)
	if err != nil {
		return nil, err
	}
	defer done()
	content, err := io.ReadAll(b)
	if err == nil {
		err = b.finish()
	}
	if err != nil {
		return nil, err
	}
	parsed := &specs.Image{}
	if err := json.Unmarshal(content, parsed); err != nil {
		return nil, &Refused{Reason: "its configuration is no JSON that can be read", Err: err}
	}
	return parsed, nil
}
