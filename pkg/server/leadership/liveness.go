package leadership

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apiserver/pkg/server/healthz"
)

// Liveness holds checks that fail when a controller hangs. A failing check makes /livez fail, so
// that the kubelet restarts the process.
type Liveness struct {
	mu     sync.Mutex
	checks map[string]func() error
}

// Add registers a check for the rest of the term. The check must return at once.
func (l *Liveness) Add(name string, check func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.checks == nil {
		l.checks = map[string]func() error{}
	}
	l.checks[name] = check
}

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

// Checker returns the check for /livez.
func (l *Liveness) Checker() healthz.HealthChecker {
	return healthz.NamedCheck("controllers", func(*http.Request) error { return l.check() })
}
