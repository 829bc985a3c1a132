package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/penstock-project/penstock/pkg/store"
)

// storeRecordsCheck is the name of the readiness check that fails while a record of the
// store cannot be read, and names it. A kubelet's probe should leave it out, as the
// others of the store: everything that the record does not belong to goes on.
const storeRecordsCheck = "store-records"

// recordsPatience bounds how long etcd is asked whether such records are still there.
const recordsPatience = 2 * time.Second

func recordsCheck(unreadable *store.Unreadable) healthz.HealthChecker {
	return healthz.NamedCheck(storeRecordsCheck, func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), recordsPatience)
		defer cancel()
		return unreadable.Check(ctx)
	})
}

// withoutStore leaves out the checks of etcd that the library adds. A process that is
// restarted because of its liveness finds the same etcd, and takes discovery away. It
// is ready while the embedded one does not run, for the same reason; of one elsewhere
// readiness tells which replica is cut off.
func withoutStore(checks []healthz.HealthChecker) []healthz.HealthChecker {
	return slices.DeleteFunc(slices.Clone(checks), func(check healthz.HealthChecker) bool {
		return check.Name() == "etcd" || check.Name() == "etcd-readiness"
	})
}

// Liveness is where controllers say how one can see that they hang. A failing
// check makes /livez fail, and so has the process restarted.
type Liveness struct {
	mu     sync.Mutex
	checks map[string]func() error
}

// Add registers a check for the rest of the term. It must return at once.
func (l *Liveness) Add(name string, check func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.checks == nil {
		l.checks = map[string]func() error{}
	}
	l.checks[name] = check
}

// reset forgets the checks of a term that ended.
func (l *Liveness) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checks = nil
}

func (l *Liveness) check() error {
	l.mu.Lock()
	checks := maps.Clone(l.checks)
	l.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if err := checks[name](); err != nil {
			errs = append(errs, fmt.Errorf("controller %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// checker is for /livez.
func (l *Liveness) checker() healthz.HealthChecker {
	return healthz.NamedCheck("controllers", func(*http.Request) error { return l.check() })
}
