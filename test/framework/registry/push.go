package registry

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	versioned "github.com/opencontainers/image-spec/specs-go"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// Push pushes an image to the registry whose files are in dir.
func Push(ctx context.Context, dir, ref string, image *Image) error {
	named, err := reference.ParseNamed(ref)
	if err != nil {
		return fmt.Errorf("pushing to %s: %w", ref, err)
	}
	p, err := newPusher(dir, reference.Domain(named), reference.Path(named))
	if err != nil {
		return fmt.Errorf("pushing to %s: %w", ref, err)
	}
	tag := image.Digest()
	if tagged, isTagged := named.(reference.Tagged); isTagged {
		tag = tagged.Tag()
	}
	if err := p.image(ctx, tag, image); err != nil {
		return fmt.Errorf("pushing to %s: %w", ref, err)
	}
	return nil
}

// Attach attaches an artifact to an image, whose reference has a digest. It uses the tag for
// registries without the referrers API
// (https://github.com/opencontainers/distribution-spec/blob/main/spec.md#referrers-tag-schema).
func Attach(ctx context.Context, dir, ref, artifactType string, content []byte) error {
	named, err := reference.ParseNamed(ref)
	if err != nil {
		return fmt.Errorf("attaching to %s: %w", ref, err)
	}
	digested, is := named.(reference.Digested)
	if !is {
		return fmt.Errorf("attaching to %s: it has no digest", ref)
	}
	artifact, err := described("artifact", []byte("{}"), specs.MediaTypeEmptyJSON, content, artifactType)
	if err != nil {
		return fmt.Errorf("attaching to %s: %w", ref, err)
	}
	index, err := json.Marshal(specs.Index{Versioned: versioned.Versioned{SchemaVersion: 2}, MediaType: specs.MediaTypeImageIndex, Manifests: []specs.Descriptor{{
		MediaType: specs.MediaTypeImageManifest, ArtifactType: artifactType, Digest: digest.Digest(artifact.Digest()), Size: int64(len(artifact.manifest)),
	}}})
	if err != nil {
		return fmt.Errorf("attaching to %s: %w", ref, err)
	}
	p, err := newPusher(dir, reference.Domain(named), reference.Path(named))
	if err != nil {
		return fmt.Errorf("attaching to %s: %w", ref, err)
	}
	if err := p.image(ctx, artifact.Digest(), artifact); err != nil {
		return fmt.Errorf("attaching to %s: %w", ref, err)
	}
	tag := strings.Replace(digested.Digest().String(), ":", "-", 1)
	if _, err := p.send(ctx, http.MethodPut, p.base.JoinPath("manifests", tag), specs.MediaTypeImageIndex, index); err != nil {
		return fmt.Errorf("attaching to %s: %w", ref, err)
	}
	return nil
}

// pusher writes to one repository.
type pusher struct {
	base           *url.URL
	client         *http.Client
	user, password string
}

// newPusher reads the registry's certificate and password, as its clients do.
func newPusher(dir, host, repository string) (*pusher, error) {
	ca, err := os.ReadFile(filepath.Join(dir, CAFile))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	content, err := os.ReadFile(filepath.Join(dir, AuthFile))
	if err != nil {
		return nil, err
	}
	var known struct {
		Auths map[string]struct {
			Auth string `json:"auth"`
		} `json:"auths"`
	}
	if err := json.Unmarshal(content, &known); err != nil {
		return nil, fmt.Errorf("reading %s: %w", AuthFile, err)
	}
	secret, err := base64.StdEncoding.DecodeString(known.Auths[host].Auth)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", AuthFile, err)
	}
	p := &pusher{
		base:   &url.URL{Scheme: "https", Host: host, Path: "/v2/" + repository},
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}},
	}
	p.user, p.password, _ = strings.Cut(string(secret), ":")
	return p, nil
}

// image sends an image to a tag or a digest.
func (p *pusher) image(ctx context.Context, tag string, image *Image) error {
	for of, content := range map[string][]byte{string(image.configOf.Digest): image.config, string(image.layers.Digest): image.layer} {
		if err := p.blob(ctx, of, content); err != nil {
			return err
		}
	}
	_, err := p.send(ctx, http.MethodPut, p.base.JoinPath("manifests", tag), specs.MediaTypeImageManifest, image.manifest)
	return err
}

func (p *pusher) blob(ctx context.Context, of string, content []byte) error {
	began, err := p.send(ctx, http.MethodPost, p.base.JoinPath("blobs", "uploads/"), "", nil)
	if err != nil {
		return err
	}
	where, err := p.base.Parse(began.Get("Location"))
	if err != nil {
		return err
	}
	query := where.Query()
	query.Set("digest", of)
	where.RawQuery = query.Encode()
	_, err = p.send(ctx, http.MethodPut, where, "application/octet-stream", content)
	return err
}

func (p *pusher) send(ctx context.Context, method string, to *url.URL, mediaType string, body []byte) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if mediaType != "" {
		request.Header.Set("Content-Type", mediaType)
	}
	if p.user != "" {
		request.SetBasicAuth(p.user, p.password)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s %s", method, to, response.Status, said)
	}
	return response.Header, err
}
