package storeguard

import (
	"context"

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/penstock-project/penstock/pkg/store/identity"
)

// ReadMark returns the host's record of the store, nil if there is none.
func ReadMark(ctx context.Context, configMaps typedcorev1.ConfigMapInterface, namespace string) (*identity.Mark, error) {
	return (&witness{configMaps: configMaps, namespace: namespace}).read(ctx)
}

// ReplaceMark replaces a mark that was read before.
func ReplaceMark(ctx context.Context, configMaps typedcorev1.ConfigMapInterface, namespace string, old, next identity.Mark) error {
	return (&witness{configMaps: configMaps, namespace: namespace}).replace(ctx, old, next)
}
