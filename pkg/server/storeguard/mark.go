package storeguard

import (
	"context"

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/penstock-project/penstock/pkg/store/identity"
)

// ReadMark returns what the host remembers of the store, nil for nothing.
func ReadMark(ctx context.Context, configMaps typedcorev1.ConfigMapInterface, namespace string) (*identity.Mark, error) {
	return (&witness{configMaps: configMaps, namespace: namespace}).read(ctx)
}

// ReplaceMark writes a mark in place of one that was read.
func ReplaceMark(ctx context.Context, configMaps typedcorev1.ConfigMapInterface, namespace string, old, next identity.Mark) error {
	return (&witness{configMaps: configMaps, namespace: namespace}).replace(ctx, old, next)
}
