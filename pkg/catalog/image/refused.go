package image

import (
	"errors"
	"fmt"
	"strings"
)

// Refused is the error for an image that is not accepted. Another attempt cannot succeed until the
// image or the policy of the cluster changes.
type Refused struct {
	// Image is the requested reference.
	Image string
	// Layer is the digest of a layer, and Path an entry in it; both may be empty.
	Layer, Path string
	// Reason describes the refused value and the allowed values.
	Reason string
	// SignatureFormat is the artifact type of the image's signatures that Penstock cannot verify
	// here, or empty.
	SignatureFormat string
	// Unverified is true if a signature policy refuses the image. A later signature or another
	// policy may allow it.
	Unverified bool
	// Err is the library's error, or nil.
	Err error

	// unsigned is true if the signature policy found no signature in a format that it verifies.
	unsigned bool
}

func (r *Refused) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "image %s is refused: ", r.Image)
	if r.Layer != "" {
		fmt.Fprintf(&b, "layer %s: ", r.Layer)
	}
	if r.Path != "" {
		fmt.Fprintf(&b, "%q: ", r.Path)
	}
	b.WriteString(r.Reason)
	if r.Err != nil {
		fmt.Fprintf(&b, ": %s", r.Err.Error())
	}
	return b.String()
}

func (r *Refused) Unwrap() error { return r.Err }

// refuse returns a refusal. The caller adds the image and the layer by calling about.
func refuse(path, format string, args ...any) *Refused {
	return &Refused{Path: path, Reason: fmt.Sprintf(format, args...)}
}

func about(err error, image, layer string) error {
	var refused *Refused
	if errors.As(err, &refused) {
		if refused.Image == "" {
			refused.Image = image
		}
		if refused.Layer == "" {
			refused.Layer = layer
		}
	}
	return err
}

// outage is an error that can be over at the next attempt.
type outage struct{ err error }

func (o *outage) Error() string { return o.err.Error() }
func (o *outage) Unwrap() error { return o.err }
