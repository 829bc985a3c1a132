package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/identity"
)

const (
	// decideTimeout bounds one try to find out what the store is. An etcd that
	// does not answer would otherwise keep this process from serving discovery,
	// and with it every namespace in the cluster from being deleted.
	decideTimeout = 10 * time.Second
	// undecidedRetry is how often to try again while degraded for want of an
	// answer.
	undecidedRetry = 5 * time.Second
)

// standing is what the store's identity means for this run.
type standing struct {
	// degraded is why nothing is served and what to do about it, or empty.
	degraded string
	// again tries to decide once more, and is set when it is not known yet what
	// the store is; nil otherwise. No error means that there is a decision.
	again func(ctx context.Context) error
	// identity of the store; zero when degraded.
	identity identity.Identity
	// keeper raises the mark while the store is served; nil when degraded.
	keeper *markKeeper
}

// newGuard returns what compares the store of this process with what the host
// remembers.
func newGuard(o *Options, host *host, db *database) (*guard, error) {
	client, err := kubernetes.NewForConfig(host.configFor("identity"))
	if err != nil {
		return nil, fmt.Errorf("making a client for the store's witness: %w", err)
	}
	return &guard{
		store:   identity.NewStore(db.client, storagePrefix),
		witness: &witness{configMaps: client.CoreV1().ConfigMaps(o.Namespace), namespace: o.Namespace},
		forget:  chain.NewInventories(db.client, storagePrefix).ForgetAll,
		accept:  o.AcceptIdentity,
		now:     time.Now,
		timeout: decideTimeout,
	}, nil
}

// establish finds out whether this is the store that the host cluster knows, and
// makes both known to each other at a first start. What it decides holds for the
// whole run: a store does not become another one under a running process.
//
// It does not guess. While the host is busy it waits: nobody reaches us but
// through the host. Whatever else keeps it from deciding, an etcd that does not
// answer or a witness that cannot be read, makes this run degraded.
func (g *guard) establish(ctx context.Context) (standing, error) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("identity"))
	for {
		found, err := g.try(ctx)
		switch {
		case err == nil:
			return found, nil
		case ctx.Err() != nil:
			return standing{}, err
		case !passing(err):
			return g.undecided(ctx, err), nil
		}
		klog.FromContext(ctx).Error(err, "The host cluster does not say which store it knows; trying again", "after", hostRetry)
		select {
		case <-ctx.Done():
			return standing{}, context.Cause(ctx)
		case <-time.After(hostRetry):
		}
	}
}

// try decides within the timeout.
func (g *guard) try(ctx context.Context) (standing, error) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	return g.decide(ctx)
}

// undecided is the standing while err keeps us from knowing what the store is.
func (g *guard) undecided(ctx context.Context, err error) standing {
	advice := "solve that"
	if errors.Is(err, errUnreadable) {
		advice = g.howToMend(ctx)
	}
	again := func(ctx context.Context) error {
		_, err := g.try(ctx)
		return err
	}
	return standing{degraded: degradedMessage(err.Error(), advice+"; Penstock sees it within seconds and goes on by itself"), again: again}
}

// howToMend says what an unreadable witness should say.
func (g *guard) howToMend(ctx context.Context) string {
	const remove = "or delete it, if it is certain that this is the store of this cluster: it is made anew then"
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	observed, err := g.store.Observe(ctx)
	if err != nil || !observed.Found || observed.ID == "" {
		return "put back what it said, " + remove
	}
	return fmt.Sprintf("put back what it said (the store at hand has the storeID %s, the format %d, and has come to etcd revision %d, of which highWater may be anything up to it), %s",
		observed.ID, observed.Format, observed.Revision, remove)
}

// passing tells whether an error may go away by itself: the host was not
// reached, was busy or broken, or somebody came in between.
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

// guard compares the store with its witness.
type guard struct {
	store   *identity.Store
	witness *witness
	// forget makes every chain forget what it has in the cluster.
	forget func(context.Context) (int, error)
	// accept is the decision that a person has made, see decisionToken, or empty.
	accept string
	now    func() time.Time
	// timeout of one try to decide.
	timeout time.Duration
}

// decide returns what the comparison means.
//
//  1. Read the witness and the store.
//  2. Judge: a store that may be served is given an identity and a witness where
//     it has none yet.
//  3. One that may not be served is accepted when a person has decided so.
//  4. Otherwise it is degraded.
func (g *guard) decide(ctx context.Context) (standing, error) {
	mark, err := g.witness.read(ctx)
	if err != nil {
		return standing{}, err
	}
	observed, err := g.store.Observe(ctx)
	var damaged *store.DamagedError
	if errors.As(err, &damaged) {
		return standing{degraded: degradedMessage(err.Error(), "restore the data directory from a backup"+g.unhelpful())}, nil
	}
	if err != nil {
		return standing{}, err
	}
	verdict := identity.Judge(observed, mark)
	log := klog.FromContext(ctx)
	if verdict.Serve() {
		log.Info("Judged the store", "state", verdict.State, "reason", verdict.Reason)
		if g.accept != "" {
			log.Info("--accept-identity has nothing to decide any more and can be removed", "given", g.accept)
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
		log.Info("The value of --accept-identity stands for another decision than the one to be made now", "given", g.accept, "matching", matching(token, acceptable))
	}
	return standing{degraded: degradedMessage(verdict.Reason, g.advice(token, acceptable))}, nil
}

// advice says what to do about a store that is not the one that the host knows.
func (g *guard) advice(token string, acceptable bool) string {
	const choice = "bring the right store back, or, to go on with this one and give up what it lacks, restart penstock"
	switch {
	case !acceptable:
		return "nothing is lost" + g.unhelpful()
	case g.accept == "":
		return fmt.Sprintf("%s with --accept-identity=%s", choice, token)
	default:
		return fmt.Sprintf("%s with another value of --accept-identity (that of now, %q, stands for another decision): --accept-identity=%s", choice, g.accept, token)
	}
}

// unhelpful says that nothing can be accepted here, to somebody who tried.
func (g *guard) unhelpful() string {
	if g.accept == "" {
		return ""
	}
	return fmt.Sprintf("; the flag --accept-identity, which has the value %q, cannot help here", g.accept)
}

// matching is what would have been the right value of --accept-identity.
func matching(token string, acceptable bool) string {
	if !acceptable {
		return "none"
	}
	return token
}

func degradedMessage(reason, advice string) string {
	return fmt.Sprintf("Penstock serves nothing from its store, and changes nothing in the cluster: %s. What to do: %s", reason, advice)
}

// decisionToken names one decision: to serve this store in spite of this
// witness. Once it was taken there is another witness, so a flag that was
// forgotten does not accept the next loss as well.
func decisionToken(state identity.State, observed identity.Observed, mark *identity.Mark) string {
	seen := identity.Mark{}
	if mark != nil {
		seen = *mark
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s\n%d", state, observed.ID, observed.Epoch, seen.StoreID, seen.HighWater))
	return hex.EncodeToString(sum[:6])
}

// serve gives store and witness what they lack. The store's identity comes
// first: a witness of a store that does not exist would look like a loss.
func (g *guard) serve(ctx context.Context, observed identity.Observed, mark *identity.Mark) (standing, error) {
	present, err := g.identify(ctx, observed)
	if err != nil {
		return standing{}, err
	}
	if mark == nil {
		first, err := g.newMark(ctx, present)
		if err != nil {
			return standing{}, err
		}
		if mark, err = g.witness.create(ctx, first); err != nil {
			return standing{}, err
		}
		// Another replica may have been faster; it is then judged anew.
		if mark.StoreID != present.ID {
			return standing{}, fmt.Errorf("writing the witness of store %s: %w", present.ID, errChanged)
		}
	}
	return standing{identity: present, keeper: newMarkKeeper(g.store, g.witness, *mark)}, nil
}

// takeOver makes the witness speak of a store that it did not know. What such a
// store believes to have in the cluster is of another time, or another cluster:
// it is forgotten first, so that nothing is deleted for it. What the revisions
// ask for and is there is recognised by its marks, as after an import.
func (g *guard) takeOver(ctx context.Context, observed identity.Observed, mark *identity.Mark) (standing, error) {
	forgotten, err := g.forget(ctx)
	if err != nil {
		return standing{}, err
	}
	if forgotten > 0 {
		klog.FromContext(ctx).Info("Forgot what extensions have in the cluster: it is looked up again, and nothing is deleted for it", "extensions", forgotten)
	}
	if mark == nil {
		return g.serve(ctx, observed, nil)
	}
	present, err := g.identify(ctx, observed)
	if err != nil {
		return standing{}, err
	}
	next, err := g.newMark(ctx, present)
	if err != nil {
		return standing{}, err
	}
	if err := g.witness.replace(ctx, *mark, next); err != nil {
		return standing{}, err
	}
	return standing{identity: present, keeper: newMarkKeeper(g.store, g.witness, next)}, nil
}

// newMark is what is to be remembered of the store as it is now.
func (g *guard) newMark(ctx context.Context, present identity.Identity) (identity.Mark, error) {
	highWater, err := g.store.HighWater(ctx)
	if err != nil {
		return identity.Mark{}, err
	}
	return identity.Mark{StoreID: present.ID, HighWater: highWater, Format: present.Format, Epoch: present.Epoch}, nil
}

// identify returns the store's identity, and gives it one when it has none.
func (g *guard) identify(ctx context.Context, observed identity.Observed) (identity.Identity, error) {
	if observed.Found {
		present, found, err := g.store.Read(ctx)
		if err == nil && !found {
			err = errChanged
		}
		if err != nil {
			return identity.Identity{}, fmt.Errorf("reading the identity of the store: %w", err)
		}
		return present, nil
	}
	fresh, err := identity.New(rand.Reader, g.now())
	if err != nil {
		return identity.Identity{}, err
	}
	present, _, err := g.store.Create(ctx, fresh)
	return present, err
}
