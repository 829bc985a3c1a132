package app

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/authz"
)

// rememberedFor is how long an "allowed" answer is cached. The authorizer of an API server has the
// same default (k8s.io/apiserver/pkg/server/options, DelegatingAuthorizationOptions).
const rememberedFor = 10 * time.Second

type rights interface {
	May(ctx context.Context, who user.Info, asked authz.Right) (bool, error)
}

// recentRights checks the rights of users, and caches "allowed" answers for a while. Equal checks
// at the same time share one request. Use it only before requests that impersonate the user.
type recentRights struct {
	rights
	asking  *singleflight.Group
	allowed *cache.Expiring
}

func newRecentRights(of rights, clock clock.Clock) recentRights {
	return recentRights{of, &singleflight.Group{}, cache.NewExpiringWithClock(clock)}
}

// May implements extension.Rights.
func (r recentRights) May(ctx context.Context, who user.Info, asked authz.Right) (bool, error) {
	// fmt prints maps in the order of their keys.
	key := fmt.Sprintf("%q %q %q %q %#v", who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra(), asked)
	may, err, _ := r.asking.Do(key, func() (any, error) {
		if _, found := r.allowed.Get(key); found {
			return true, nil
		}
		may, err := r.rights.May(ctx, who, asked)
		if may && err == nil {
			r.allowed.Set(key, nil, rememberedFor)
		}
		return may, err
	})
	allowed, _ := may.(bool)
	return allowed, err
}
