package server

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/server/registration"
)

// DefaultNamespace is where everything of this process lives in the host.
const DefaultNamespace = defaultNamespace

// Unregister takes back what --register made in a host, see registration.Unregister.
func Unregister(ctx context.Context, config *rest.Config, namespace string, now time.Time, removed func(what string)) error {
	return registration.Unregister(ctx, config, namespace, servedVersions(), now, removed)
}
