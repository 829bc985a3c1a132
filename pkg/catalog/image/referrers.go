package image

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/pkg/docker/config"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/pkg/tlsclientconfig"
	"go.podman.io/image/v5/types"
)

const (
	// sigstoreBundle is the prefix of the artifact type of signatures that cosign writes since
	// version 3 (https://github.com/sigstore/cosign/blob/main/specs/BUNDLE_SPEC.md).
	sigstoreBundle = "application/vnd.dev.sigstore.bundle"
	// largestReferrers limits each answer of a registry about referrers, in bytes.
	largestReferrers = 1 << 20
	mostPages        = 20
	referrersTimeout = 30 * time.Second
)

// explainUnsigned searches signatures in other formats if the policy found none.
func (o *session) explainUnsigned(ctx context.Context, err error, unparsed types.UnparsedImage) error {
	var refused *Refused
	if !errors.As(err, &refused) || !refused.unsigned {
		return err
	}
	content, _, err := unparsed.Manifest(ctx)
	if err != nil {
		return remote(err)
	}
	instance, err := manifest.Digest(content)
	if err != nil {
		return err
	}
	of := []digest.Digest{o.digest}
	if instance != o.digest {
		of = append(of, instance)
	}
	return o.unsupported(ctx, refused, of)
}

// unsupported adds an image's Sigstore bundle to the refusal of a signature policy that found no
// signature. It returns the refusal unchanged if there is no bundle, and an outage if the registry
// does not answer. It never allows an image.
func (o *session) unsupported(ctx context.Context, refused *Refused, of []digest.Digest) error {
	ctx, cancel := context.WithTimeout(ctx, referrersTimeout)
	defer cancel()
	found, err := o.bundle(ctx, of)
	var away *outage
	switch {
	case errors.As(err, &away):
		return &outage{fmt.Errorf("%s: %w; searching signatures in other formats: %w", refused.Reason, refused.Err, away.err)}
	case err != nil:
		refused.Reason += fmt.Sprintf(" (its referrers cannot be read: %s)", err)
	case found != "":
		refused.SignatureFormat = found
		refused.Reason += fmt.Sprintf(": SignatureFormatUnsupported: it has a signature or an attestation of type %q, and a signature policy verifies simple signing and Sigstore attachments (tag sha256-DIGEST.sig)", shortened(found))
	}
	return refused
}

// bundle returns the artifact type of the first Sigstore bundle that refers to one of the digests.
// It requests from the mirrors and the registry in the same order as the library's pull.
func (o *session) bundle(ctx context.Context, of []digest.Digest) (string, error) {
	found := ""
	err := o.eachSource(func(client *referrersClient) (done bool, err error) {
		for _, d := range of {
			bundles, err := client.bundles(ctx, d, 1)
			if err != nil || len(bundles) > 0 {
				if len(bundles) > 0 {
					found = bundles[0].ArtifactType
				}
				return found != "", err
			}
		}
		return false, nil
	})
	return found, err
}

// eachSource calls ask for the mirrors and then for the registry, until ask is done.
func (o *session) eachSource(ask func(*referrersClient) (done bool, err error)) error {
	named := o.source.Reference().DockerReference()
	sources := []sysregistriesv2.PullSource{{Reference: named}}
	registry, err := sysregistriesv2.FindRegistry(o.system, named.Name())
	if err != nil {
		return err
	}
	if registry != nil {
		if sources, err = registry.PullSourcesFromReference(named); err != nil {
			return err
		}
	}
	var failed []error
	for _, source := range sources {
		var done bool
		var client *referrersClient
		if client, err = o.client(source); err == nil {
			done, err = ask(client)
		}
		if done {
			return nil
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	joined := errors.Join(failed...)
	if joined != nil && err == nil {
		// The registry itself comes last, and has answered. A mirror that never answers must not
		// count as an outage, which would be retried. Mirrors matter less, because few of them copy
		// referrers.
		return errors.New(joined.Error())
	}
	return joined
}

// bundles returns the descriptors of the Sigstore bundles that refer to a digest. It returns at
// most the given number.
func (c *referrersClient) bundles(ctx context.Context, of digest.Digest, most int) ([]specs.Descriptor, error) {
	var found []specs.Descriptor
	seen := map[digest.Digest]bool{}
	// A registry without the referrers API has the same index at a tag.
	for _, path := range []string{"referrers/" + of.String(), "manifests/" + strings.Replace(of.String(), ":", "-", 1)} {
		for page := 0; path != ""; page++ {
			if page == mostPages {
				return nil, fmt.Errorf("the registry has more than %d pages of referrers", mostPages)
			}
			index, next, err := c.referrers(ctx, path)
			if err != nil {
				return nil, err
			}
			for _, m := range index.Manifests {
				if !strings.HasPrefix(m.ArtifactType, sigstoreBundle) || seen[m.Digest] {
					continue
				}
				seen[m.Digest] = true
				if found = append(found, m); len(found) == most {
					return found, nil
				}
			}
			path = next
		}
	}
	return found, nil
}

type referrersClient struct {
	http       *http.Client
	host       string
	repository string
	schemes    []string
	login      types.DockerAuthConfig
	// authorization is the header that the registry accepted, or empty.
	authorization string
}

func (o *session) client(source sysregistriesv2.PullSource) (*referrersClient, error) {
	host := reference.Domain(source.Reference)
	certificates := o.system.DockerCertPath
	if certificates == "" {
		certificates = filepath.Join(o.system.DockerPerHostCertDirPath, host)
	}
	plain := tlsclientconfig.NewTransport()
	plain.TLSClientConfig = &tls.Config{InsecureSkipVerify: source.Endpoint.Insecure} //nolint:gosec // registries.conf asks for it
	plain.DisableKeepAlives = true
	if err := tlsclientconfig.SetupCertificates(certificates, plain.TLSClientConfig); err != nil {
		return nil, err
	}
	login, err := config.GetCredentialsForRef(o.system, source.Reference)
	if err != nil {
		return nil, err
	}
	if host == "docker.io" {
		host = "registry-1.docker.io"
	}
	c := &referrersClient{
		http: &http.Client{Transport: &guard{inner: plain, insecure: source.Endpoint.Insecure}},
		host: host, repository: reference.Path(source.Reference), schemes: []string{"https"}, login: login,
	}
	if source.Endpoint.Insecure {
		c.schemes = append(c.schemes, "http")
	}
	return c, nil
}

// referrers reads one page of an index of referrers, and returns the path of the next page; empty
// for the last page. The index is empty if the registry has none at this path.
func (c *referrersClient) referrers(ctx context.Context, path string) (index *specs.Index, next string, err error) {
	response, err := c.get(ctx, path, specs.MediaTypeImageIndex)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	index = &specs.Index{}
	switch {
	case response.StatusCode == http.StatusOK:
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return nil, "", fmt.Errorf("%s: %s", response.Request.URL, response.Status)
	case lasting(response.StatusCode):
		return index, "", nil
	default:
		return nil, "", &outage{fmt.Errorf("%s: %s", response.Request.URL, response.Status)}
	}
	if kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";"); kind != specs.MediaTypeImageIndex {
		return index, "", nil
	}
	if err := decode(response, index); err != nil {
		return nil, "", err
	}
	return index, c.next(response), nil
}

var linked = regexp.MustCompile(`<([^>]*)>\s*;\s*rel="?next"?`)

// next returns the path of the next page. It ignores a link to another host or repository.
func (c *referrersClient) next(response *http.Response) string {
	link := linked.FindStringSubmatch(response.Header.Get("Link"))
	if link == nil {
		return ""
	}
	at, err := response.Request.URL.Parse(link[1])
	if err != nil || at.Host != response.Request.URL.Host {
		return ""
	}
	path, ok := strings.CutPrefix(at.EscapedPath(), "/v2/"+c.repository+"/")
	if !ok {
		return ""
	}
	if at.RawQuery != "" {
		path += "?" + at.RawQuery
	}
	return path
}

func (c *referrersClient) get(ctx context.Context, path, mediaType string) (*http.Response, error) {
	response, err := c.send(ctx, path, mediaType)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	challenge := response.Header.Get("WWW-Authenticate")
	_ = response.Body.Close()
	if c.authorization, err = c.authorize(ctx, challenge); err != nil {
		return nil, err
	}
	return c.send(ctx, path, mediaType)
}

func (c *referrersClient) send(ctx context.Context, path, mediaType string) (response *http.Response, err error) {
	for _, scheme := range c.schemes {
		var request *http.Request
		request, err = http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s/v2/%s/%s", scheme, c.host, c.repository, path), nil)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Accept", mediaType)
		if c.authorization != "" {
			request.Header.Set("Authorization", c.authorization)
		}
		if response, err = c.http.Do(request); err == nil {
			return response, nil
		}
	}
	return nil, remote(err)
}

var challenged = regexp.MustCompile(`(\w+)="([^"]*)"`)

// authorize returns the header that a challenge requires
// (https://distribution.github.io/distribution/spec/auth/token/).
func (c *referrersClient) authorize(ctx context.Context, challenge string) (string, error) {
	if c.login.IdentityToken != "" {
		return "", errors.New("identity tokens cannot be used for referrers")
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(c.login.Username+":"+c.login.Password))
	scheme, rest, _ := strings.Cut(challenge, " ")
	if strings.EqualFold(scheme, "Basic") && c.login.Username != "" {
		return basic, nil
	}
	parameters := map[string]string{}
	for _, p := range challenged.FindAllStringSubmatch(rest, -1) {
		parameters[strings.ToLower(p[1])] = p[2]
	}
	realm, err := url.Parse(parameters["realm"])
	if !strings.EqualFold(scheme, "Bearer") || err != nil || realm.Host == "" {
		return "", errors.New("the registry asks for credentials in a way that is unknown")
	}
	query := realm.Query()
	query.Set("scope", "repository:"+c.repository+":pull")
	if service := parameters["service"]; service != "" {
		query.Set("service", service)
	}
	realm.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), nil)
	if err != nil {
		return "", err
	}
	if c.login.Username != "" {
		request.Header.Set("Authorization", basic)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", remote(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		err := fmt.Errorf("asking %s for a token: %s", realm.Host, response.Status)
		if lasting(response.StatusCode) {
			return "", err
		}
		return "", &outage{err}
	}
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if err := decode(response, &answer); err != nil {
		return "", err
	}
	return "Bearer " + cmp.Or(answer.Token, answer.AccessToken), nil
}

func decode(response *http.Response, into any) error {
	content, err := io.ReadAll(response.Body)
	if errors.Is(err, errTooLarge) {
		return err
	}
	if err != nil {
		return &outage{err}
	}
	if json.Unmarshal(content, into) != nil {
		return fmt.Errorf("%s is no JSON that can be read", response.Request.URL.Path)
	}
	return nil
}

var errTooLarge = fmt.Errorf("an answer of the registry has more than %d bytes", largestReferrers)

// guard limits the size of every answer, including answers of token services. It refuses requests
// without TLS unless registries.conf allows them.
type guard struct {
	inner    http.RoundTripper
	insecure bool
}

func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" && !g.insecure {
		return nil, fmt.Errorf("%s is reached without TLS, which registries.conf does not allow", request.URL.Host)
	}
	response, err := g.inner.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &atMost{ReadCloser: response.Body, left: largestReferrers}
	return response, nil
}

type atMost struct {
	io.ReadCloser
	left int
}

func (a *atMost) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if a.left -= n; a.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
