package server

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/server/registration"
)

// Unregister takes back what --register made in a host, see registration.Unregister.
func Unregister(ctx context.Context, config *rest.Config, namespace string, now time.Time, removed func(what string)) error {
	return registration.Unregister(ctx, config, namespace, Versions(), now, removed)
}
