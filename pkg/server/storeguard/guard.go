// Package storeguard checks that the host knows the store of this process. A wrong store stays
// closed: discovery continues, and every resource answers 503 with the reason.
package storeguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/identity"
)

const (
	// decideTimeout bounds one attempt to identify the store. Otherwise an etcd that does not
	// answer would keep this process from serving discovery. Then no namespace in the cluster could
	// be deleted.
	decideTimeout = 10 * time.Second
	// hostRetry is the pause before the next request to a busy host.
	hostRetry = time.Second
)

// Decision is the result of the check of the store's identity, for this run.
type Decision struct {
	// Degraded is the reason why nothing is served, and how to repair it; empty if the store is
	// served.
	Degraded string
	// Again repeats the decision. It is set while the identity of the store is undecided, and nil
	// otherwise. It returns nil when there is a decision.
	Again func(ctx context.Context) error
	// Identity is the identity of the store; zero when degraded.
	Identity identity.Identity
	// Raised is true if this run gave the store its format: an earlier Penstock may still serve it.
	Raised bool
	// Keeper raises the mark while the store is served; nil when degraded.
	Keeper *MarkKeeper
}

// Options holds the dependencies of a Guard.
type Options struct {
	Store *identity.Store
	// ConfigMaps is the client for the witness. Namespace is its namespace, for messages.
	ConfigMaps typedcorev1.ConfigMapInterface
	Namespace  string
	// Forget makes every chain forget its objects in the cluster, and returns the number of chains
	// that had objects.
	Forget func(context.Context) (int, error)
	// Down returns a *DownError while the store does not run, and nil while it runs; optional.
	Down func() error
	// Accept is the value of --accept-identity, the user's decision; may be empty.
	Accept string
}

// New returns the guard that compares the store with its witness. It sends no request.
func New(o Options) *Guard {
	return &Guard{
		store:   o.Store,
		witness: &witness{configMaps: o.ConfigMaps, namespace: o.Namespace},
		forget:  o.Forget,
		accept:  o.Accept,
		now:     time.Now,
		timeout: decideTimeout,
		down:    o.Down,
	}
}

// Establish checks whether this is the store that the host cluster knows. At the first start it gives
// the store an identity, and records it in the host. Its decision holds for the whole run.
//
// It never guesses. It waits for a busy host, since requests reach Penstock only through the host.
// Any other obstacle, such as an etcd that does not answer or an unreadable witness, makes this run
// degraded.
func (g *Guard) Establish(ctx context.Context) (Decision, error) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("identity"))
	for {
		found, err := g.try(ctx)
		switch {
		case err == nil:
			return found, nil
		case ctx.Err() != nil:
			return Decision{}, err
		case !passing(err):
			return g.undecided(ctx, err), nil
		}
		klog.FromContext(ctx).Error(err, "The host cluster does not say which store it knows; trying again", "after", hostRetry)
		select {
		case <-ctx.Done():
			return Decision{}, context.Cause(ctx)
		case <-time.After(hostRetry):
		}
	}
}

func (g *Guard) try(ctx context.Context) (Decision, error) {
	if g.down != nil {
		if err := g.down(); err != nil {
			return Decision{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	return g.decide(ctx)
}

// undecided returns the decision while err prevents the check of the store.
func (g *Guard) undecided(ctx context.Context, err error) Decision {
	advice := "solve that"
	var stopped *DownError
	switch {
	case errors.Is(err, errUnreadable):
		advice = g.howToMend(ctx)
	case errors.As(err, &stopped):
		advice = downAdvice
	}
	again := func(ctx context.Context) error {
		_, err := g.try(ctx)
		return err
	}
	return Decision{Degraded: DegradedMessage(err.Error(), advice+"; "+healing), Again: again}
}

// passing reports whether an error may be temporary: the host was unreachable, busy or broken, or
// another writer interfered.
func passing(err error) bool {
	var unreachable *url.Error
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, errChanged), errors.As(err, &unreachable):
		return true
	case errors.As(err, &status):
		code := status.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	default:
		return false
	}
}

// Guard compares the store with its witness.
type Guard struct {
	store   *identity.Store
	witness *witness
	// forget makes every chain forget its objects in the cluster.
	forget func(context.Context) (int, error)
	// accept is the user's decision, see decisionToken, or empty.
	accept  string
	now     func() time.Time
	timeout time.Duration
	// down returns the reason why the store does not run, nil while it runs; optional.
	down func() error
	// raised is true if any attempt raised the format of the store.
	raised bool
}

// decide compares the store with its witness.
//
//  1. Read the witness and the store.
//  2. Judge: a store that may be served gets a missing identity and a missing witness.
//  3. Accept a refused store if the user has decided so.
//  4. Otherwise be degraded.
func (g *Guard) decide(ctx context.Context) (Decision, error) {
	mark, err := g.witness.read(ctx)
	if err != nil {
		return Decision{}, err
	}
	observed, err := g.store.Observe(ctx)
	var damaged *store.DamagedError
	if errors.As(err, &damaged) {
		return Decision{Degraded: DegradedMessage(err.Error(), "restore the data directory from a backup"+g.unhelpful())}, nil
	}
	if err != nil {
		return Decision{}, err
	}
	verdict := identity.Judge(observed, mark)
	log := klog.FromContext(ctx)
	if verdict.Serve() {
		log.Info("Judged the store", "state", verdict.State, "reason", verdict.Reason)
		if g.accept != "" {
			log.Info("--accept-identity is not needed any more and can be removed", "given", g.accept)
		}
		return g.serve(ctx, observed, mark)
	}
	token := decisionToken(verdict.State, observed, mark)
	acceptable := verdict.State != identity.NewerFormat
	if acceptable && g.accept == token {
		log.Info("Serving the store because of --accept-identity", "state", verdict.State, "reason", verdict.Reason)
		return g.takeOver(ctx, observed, mark)
	}
	if g.accept != "" {
		log.Info("The value of --accept-identity is for another decision than the present one", "given", g.accept, "matching", matching(token, acceptable))
	}
	return Decision{Degraded: DegradedMessage(verdict.Reason, g.advice(token, acceptable))}, nil
}

// serve adds the missing identity or witness. The store's identity comes first: a witness of a
// store that does not exist would look like a loss.
func (g *Guard) serve(ctx context.Context, observed identity.Observed, mark *identity.Mark) (Decision, error) {
	present, err := g.identify(ctx, observed)
	if err != nil {
		return Decision{}, err
	}
	if mark == nil {
		first, err := g.newMark(ctx, present)
		if err != nil {
			return Decision{}, err
		}
		if mark, err = g.witness.create(ctx, first); err != nil {
			return Decision{}, err
		}
		// Another replica may have been faster. The store is then judged again.
		if mark.StoreID != present.ID {
			return Decision{}, fmt.Errorf("writing the witness of store %s: %w", present.ID, errChanged)
		}
	}
	if mark.Format < present.Format {
		// With this format in the witness, an earlier Penstock explains its refusal even without a
		// store.
		raised := *mark
		raised.Format = present.Format
		if err := g.witness.replace(ctx, *mark, raised); err != nil {
			return Decision{}, err
		}
		mark = &raised
	}
	return Decision{Identity: present, Raised: g.raised, Keeper: newMarkKeeper(g.store, g.witness, *mark)}, nil
}

// takeOver makes the witness name a store that it did not know. Inventories of such a store may be
// from another time or cluster. So takeOver forgets them first, and nothing is deleted because of
// them. Objects of existing revisions are recognised by their marks, as after an import.
func (g *Guard) takeOver(ctx context.Context, observed identity.Observed, mark *identity.Mark) (Decision, error) {
	forgotten, err := g.forget(ctx)
	if err != nil {
		return Decision{}, err
	}
	if forgotten > 0 {
		klog.FromContext(ctx).Info("Discarded the inventories of extensions: their objects are looked up in the cluster again, and nothing is deleted", "extensions", forgotten)
	}
	if mark == nil {
		return g.serve(ctx, observed, nil)
	}
	present, err := g.identify(ctx, observed)
	if err != nil {
		return Decision{}, err
	}
	next, err := g.newMark(ctx, present)
	if err != nil {
		return Decision{}, err
	}
	if err := g.witness.replace(ctx, *mark, next); err != nil {
		return Decision{}, err
	}
	return Decision{Identity: present, Raised: g.raised, Keeper: newMarkKeeper(g.store, g.witness, next)}, nil
}

func (g *Guard) newMark(ctx context.Context, present identity.Identity) (identity.Mark, error) {
	highWater, err := g.store.HighWater(ctx)
	if err != nil {
		return identity.Mark{}, err
	}
	return identity.Mark{StoreID: present.ID, HighWater: highWater, Format: present.Format, Epoch: present.Epoch}, nil
}

// raise upgrades a store of an earlier format to the present format.
func (g *Guard) raise(ctx context.Context, present identity.Identity) (identity.Identity, error) {
	if present.Format == identity.Format {
		return present, nil
	}
	raised, err := g.store.Raise(ctx)
	if err != nil {
		return identity.Identity{}, err
	}
	g.raised = true
	klog.FromContext(ctx).Info("Raised the format of the store: an earlier Penstock refuses it from now on", "before", present.Format, "now", raised.Format)
	return raised, nil
}

// identify returns the store's identity in the present format, and creates a missing identity.
func (g *Guard) identify(ctx context.Context, observed identity.Observed) (identity.Identity, error) {
	if observed.Found {
		present, found, err := g.store.Read(ctx)
		if err == nil && !found {
			err = errChanged
		}
		if err != nil {
			return identity.Identity{}, fmt.Errorf("reading the identity of the store: %w", err)
		}
		return g.raise(ctx, present)
	}
	fresh, err := identity.New(rand.Reader, g.now())
	if err != nil {
		return identity.Identity{}, err
	}
	present, _, err := g.store.Create(ctx, fresh)
	return present, err
}
