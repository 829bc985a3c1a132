// Package helm decodes releases as Helm 3 and Helm 4 store them in a cluster, and renders the
// manifest of each revision into phased objects. It is pure: callers read the Secrets and use the
// objects.
package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// SecretType is the type of Secrets with a release.
	SecretType = "helm.sh/release.v1"
	// DataKey is the key of a Secret's data with the release.
	DataKey         = "release"
	maxReleaseBytes = 128 << 20
)

// Status of a revision, in Helm's spelling. Helm's other statuses are pending-install,
// pending-upgrade, pending-rollback, uninstalling, uninstalled and unknown.
const (
	StatusDeployed   = "deployed"
	StatusSuperseded = "superseded"
	StatusFailed     = "failed"
)

// Release is one revision of a release.
type Release struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Version is the number of the revision, starting at 1.
	Version int  `json:"version"`
	Info    Info `json:"info"`
	// Manifest is YAML, without hooks.
	Manifest string `json:"manifest"`
	Hooks    []Hook `json:"hooks"`
	Chart    Chart  `json:"chart"`
	// ApplyMethod is "ssa" for server-side apply; any other value means client-side apply.
	ApplyMethod string `json:"apply_method"`
	// Labels are the user's labels of the release, usually none.
	Labels map[string]string `json:"labels"`
}

// Info is the state of a revision.
type Info struct {
	LastDeployed time.Time `json:"last_deployed"`
	Status       string    `json:"status"`
	Description  string    `json:"description"`
}

// Hook is an object that Helm applies at certain events. It is not part of the release's manifest.
type Hook struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	Events []string `json:"events"`
}

// Test reports whether the hook is only for `helm test`.
func (h Hook) Test() bool {
	for _, event := range h.Events {
		if event != "test" && event != "test-success" && event != "test-failure" {
			return false
		}
	}
	return len(h.Events) > 0
}

// Chart has the needed fields of the chart.
type Chart struct {
	Metadata struct {
		Name       string `json:"name"`
		Version    string `json:"version"`
		AppVersion string `json:"appVersion"`
	} `json:"metadata"`
	Files []struct {
		Name string `json:"name"`
	} `json:"files"`
}

// Decode decodes the value at DataKey of a Secret: base64 of JSON, gzipped since Helm 3. It ignores
// unknown JSON keys.
func Decode(data []byte) (Release, error) {
	raw, err := base64.StdEncoding.AppendDecode(nil, data)
	if err != nil {
		return Release{}, fmt.Errorf("reading a Helm release: %w", err)
	}
	return DecodeJSON(raw)
}

// DecodeJSON decodes the JSON of a release, which may be gzipped. It is the content of a Helm
// Secret after base64 decoding.
func DecodeJSON(raw []byte) (Release, error) {
	var err error
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b, 0x08}) {
		if raw, err = unpack(raw); err != nil {
			return Release{}, fmt.Errorf("unpacking a Helm release: %w", err)
		}
	}
	var release Release
	if err := json.Unmarshal(raw, &release); err != nil {
		return Release{}, fmt.Errorf("reading a Helm release: %w", err)
	}
	if release.Name == "" || release.Version < 1 {
		return Release{}, errors.New("reading a Helm release: it has no name or no number")
	}
	return release, nil
}

func unpack(raw []byte) ([]byte, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(unpacked, maxReleaseBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxReleaseBytes {
		return nil, fmt.Errorf("it is larger than %d MiB", maxReleaseBytes>>20)
	}
	return text, nil
}
