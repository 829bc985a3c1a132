package helmapplier

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	rspb "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/source/helm/chunked"
)

const maxReleaseBytes = 128 << 20

type stored struct {
	// Version and Status are from the labels of the index.
	Version int
	Status  string
	Index   *corev1.Secret
	// release is nil if it cannot be read; then err is the reason.
	release *rspb.Release
	err     error
}

// payload is the content of the Secrets. Helm does not encode the labels of a release, but leaves
// them to its storage.
type payload struct {
	*rspb.Release
	Labels map[string]string `json:"labels,omitempty"`
}

func encode(one *rspb.Release) ([]byte, error) {
	content, err := json.Marshal(payload{Release: one, Labels: one.Labels})
	if err != nil {
		return nil, fmt.Errorf("storing release %s: %w", one.Name, err)
	}
	return content, nil
}

func decode(index *corev1.Secret, find func(string) (*corev1.Secret, error)) stored {
	out := stored{Index: index, Status: index.Labels[chunked.LabelStatus]}
	version, err := strconv.Atoi(index.Labels[chunked.LabelVersion])
	if err != nil || version < 1 {
		out.err = fmt.Errorf("the Secret %s/%s: label %s is %q, and the number of a revision is expected", index.Namespace, index.Name, chunked.LabelVersion, index.Labels[chunked.LabelVersion])
		return out
	}
	out.Version = version
	packed, err := chunked.Packed(index, find)
	if err == nil {
		out.release, err = unpack(packed)
	}
	if err != nil {
		out.err = fmt.Errorf("the Secret %s/%s: %w", index.Namespace, index.Name, err)
	}
	return out
}

func unpack(packed []byte) (*rspb.Release, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxReleaseBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxReleaseBytes {
		return nil, fmt.Errorf("it is larger than %d MiB", maxReleaseBytes>>20)
	}
	out := payload{Release: &rspb.Release{}}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	if out.Release.Info == nil || out.Release.Version < 1 {
		return nil, errors.New("it has no info, or no number")
	}
	out.Release.Labels = out.Labels
	return out.Release, nil
}
