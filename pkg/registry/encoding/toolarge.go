package encoding

import (
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/store"
)

// answering is the codec of the store. It converts its encoding errors to answers, because the
// generic registry returns them unchanged, also on a dry-run.
type answering struct {
	runtime.Codec
	resource schema.GroupResource
}

// Encode implements runtime.Encoder.
func (a answering) Encode(object runtime.Object, w io.Writer) error {
	err := a.Codec.Encode(object, w)
	if err == nil {
		return nil
	}
	name := "an object"
	if accessor, err := meta.Accessor(object); err == nil {
		name = accessor.GetName()
	}
	var large *store.TooLargeError
	var undecodable *store.UndecodableError
	switch {
	case errors.As(err, &undecodable):
		return apierrors.NewBadRequest(fmt.Sprintf("%s %q: %v", a.resource, name, undecodable))
	case !errors.As(err, &large):
		return err
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
		"%s %q would have %d bytes in the store, %d are allowed, without manifests: make its metadata smaller", a.resource, name, large.Bytes, large.Limit))
}
