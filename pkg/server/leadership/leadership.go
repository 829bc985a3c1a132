// Package leadership runs the controllers only on the replica that holds the lease. Each term has
// its own manager, metrics and liveness checks.
package leadership

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

const (
	// LeaseName is the name of the Lease of the replica that runs the controllers.
	LeaseName = "penstock-controllers"

	termBackoff = 2 * time.Second
)

// Times are the periods of a lease. The leader renews the lease every RetryPeriod, with a write to
// the host's etcd.
type Times struct {
	Duration, RenewDeadline, RetryPeriod time.Duration
}

// ReplicatedTimes returns the times for replicas that share an etcd. A replica that dies without
// releasing its lease is replaced within 14.8 s. That is Duration plus two retries: until the last
// renewal is seen, and until the expiry is seen. client-go stretches each retry by up to 2.2.
func ReplicatedTimes() Times {
	return Times{Duration: 6 * time.Second, RenewDeadline: 5 * time.Second, RetryPeriod: 2 * time.Second}
}

// SingleTimes returns the times for the only process of an embedded store. No other process waits
// for the lease: the next process that opens the store has the same identity, and leads at once.
func SingleTimes() Times {
	return Times{Duration: time.Minute, RenewDeadline: 45 * time.Second, RetryPeriod: 15 * time.Second}
}

// leaseRequestTimeout bounds a request for the lease. A host that hangs must not use up the whole
// deadline at the first try, nor delay a shutdown.
const leaseRequestTimeout = 3 * time.Second

// Options of a Leadership; all are required.
type Options struct {
	Controllers []Controller
	// Term holds the parts that all terms share. Each term gets its own Manager and Metrics.
	Term Term
	// Loopback is a privileged client configuration for Penstock's own API, with these types.
	Loopback *rest.Config
	Scheme   *runtime.Scheme
	// Revisions reads revisions within this process.
	Revisions Revisions
	// Own writes revisions within this process.
	Own RevisionWriter
	// Metrics holds the metrics of the current term.
	Metrics *Metrics
	// Host is the client configuration for the lease.
	Host *rest.Config
	// Identity names this replica. A replica that restarts with the same identity need not wait for
	// its lease to expire.
	Identity string
	Times    Times
}

// Leadership runs the controllers in terms: a term lasts as long as this replica holds the lease.
// Losing the lease ends the term only; the API continues.
type Leadership struct {
	Options
	writes ownWrites
}

// New returns a Leadership. It sends no request before Run.
func New(options Options) *Leadership { return &Leadership{Options: options} }

// Run competes for the lease until ctx ends, and returns when the last term has ended.
func (l *Leadership) Run(ctx context.Context) {
	log := klog.FromContext(ctx).WithName("leadership")
	for ctx.Err() == nil {
		if err := l.contend(ctx); err != nil {
			log.Error(err, "The controllers failed; trying again", "after", termBackoff)
			select {
			case <-ctx.Done():
			case <-time.After(termBackoff):
			}
		}
	}
}

// contend waits for the lease, runs one term, and returns its error. It releases the lease only
// after the term has returned: another replica must not begin while this replica finishes.
func (l *Leadership) contend(ctx context.Context) error {
	lock, err := l.lock()
	if err != nil {
		return err
	}
	// The elector outlives ctx, until the end of the term.
	electorCtx, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	var leading atomic.Bool
	ended := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: LeaseName, Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: l.Times.Duration, RenewDeadline: l.Times.RenewDeadline, RetryPeriod: l.Times.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leaseCtx context.Context) {
				leading.Store(true)
				// The lease is released after every end of the term. Otherwise this replica would
				// lead without controllers.
				defer release()
				ended <- l.lead(ctx, leaseCtx)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("setting up leader election: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		if !leading.Load() {
			release()
		}
	})
	defer stop()
	elector.Run(electorCtx)
	if !leading.Load() {
		// Either the lease was never acquired, or OnStartedLeading has not started in its goroutine
		// yet. It will find both contexts ended.
		return nil
	}
	return <-ended
}

func (l *Leadership) lead(ctx, leaseCtx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(leaseCtx, cancel)()
	log := klog.FromContext(ctx).WithName("leadership")
	if ctx.Err() != nil || leaseCtx.Err() != nil {
		return nil
	}
	log.Info("Holding the lease; starting the controllers", "lease", klog.KRef(l.Term.Namespace, LeaseName), "identity", l.Identity)
	err := l.runTerm(ctx)
	if ctx.Err() == nil && err == nil {
		err = fmt.Errorf("they ended by themselves")
	}
	if ctx.Err() != nil {
		log.Info("The controllers have stopped", "leaseLost", leaseCtx.Err() != nil)
	}
	return err
}

func (l *Leadership) lock() (resourcelock.Interface, error) {
	config := rest.CopyConfig(l.Host)
	config.Timeout = min(l.Times.RenewDeadline/2, leaseRequestTimeout)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the lease: %w", err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, l.Term.Namespace, LeaseName,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: l.Identity})
	if err != nil {
		return nil, fmt.Errorf("making the lease %s/%s: %w", l.Term.Namespace, LeaseName, err)
	}
	return ownLease{Interface: lock, writes: &l.writes}, nil
}
