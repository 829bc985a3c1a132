package clusterextensionrevision

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// answering is a storage with the same answer to every read.
type answering struct {
	storage.Interface
	err error
}

func (a answering) Get(context.Context, string, storage.GetOptions, runtime.Object) error {
	return a.err
}

// TestNumberUsed: the error distinguishes two reasons for a used number, and an unknown reason.
func TestNumberUsed(t *testing.T) {
	revision := &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "e-1"}}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   func(error) bool
	}{
		"Exists":  {"this very revision", nil, apierrors.IsAlreadyExists},
		"Deleted": {"it was there, or was passed over", storage.NewKeyNotFoundError("e-1", 0), apierrors.IsInvalid},
		"Busy":    {"nothing is known yet: try again", apierrors.NewTooManyRequests("the watch cache starts", 1), apierrors.IsTooManyRequests},
		"Timeout": {"nothing is known", errors.New("context deadline exceeded"), apierrors.IsInternalError},
	} {
		t.Run(name, func(t *testing.T) {
			r := &REST{Store: &genericregistry.Store{
				NewFunc:                  func() runtime.Object { return &olm.ClusterExtensionRevision{} },
				KeyFunc:                  func(_ context.Context, name string) (string, error) { return name, nil },
				DefaultQualifiedResource: v1alpha1.Resource(resource),
				Storage:                  genericregistry.DryRunnableStorage{Storage: answering{err: tc.err}},
			}}
			if err := r.numberUsed(t.Context(), revision, 7, 8); !tc.want(err) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}
