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
	// LeaseName is the Lease that the replica holds whose controllers run.
	LeaseName = "penstock-controllers"

	// termBackoff is the wait after a failed term.
	termBackoff = 2 * time.Second
)

// Times are the duration of a lease, and the interval of its renewals, RetryPeriod. Each renewal is
// a write to the host's etcd.
type Times struct {
	Duration, RenewDeadline, RetryPeriod time.Duration
}

// ReplicatedTimes are for replicas that share an etcd. One that dies without
// giving its lease back is succeeded after Duration and two retries, each of which
// client-go stretches by up to 2.2: the first until the last renewal was seen, the
// second until the lease that ran out is. That is 14.8 s.
func ReplicatedTimes() Times {
	return Times{Duration: 6 * time.Second, RenewDeadline: 5 * time.Second, RetryPeriod: 2 * time.Second}
}

// SingleTimes are for the one process that can serve an embedded store. Nobody
// waits to take over: the process that opens the store next has the same identity, and leads at
// once.
func SingleTimes() Times {
	return Times{Duration: time.Minute, RenewDeadline: 45 * time.Second, RetryPeriod: 15 * time.Second}
}

// leaseRequestTimeout bounds a request for the lease: a host that hangs must not cost
// the whole deadline at the first try, nor hold up a shutdown.
const leaseRequestTimeout = 3 * time.Second

// Options of a Leadership; all are required.
type Options struct {
	Controllers []Controller
	// Term is the shared part of all terms. Manager and Metrics are made anew in each.
	Term Term
	// Loopback is a privileged client configuration for our own API, of these types.
	Loopback *rest.Config
	Scheme   *runtime.Scheme
	// Revisions are read within this process.
	Revisions Revisions
	// Own writes revisions within this process.
	Own RevisionWriter
	// Metrics are those of the term that runs.
	Metrics *Metrics
	// Host is for the lease.
	Host *rest.Config
	// Identity of this replica. A replica that comes back with the identity it had need not
	// wait for its own lease to run out.
	Identity string
	Times    Times
}

// Leadership runs the controllers, a term, for as long as this replica holds the lease,
// again and again. Losing the lease ends the term and nothing else: the API goes on.
type Leadership struct {
	Options
	writes ownWrites
}

// New returns a Leadership. It sends no request before Run.
func New(options Options) *Leadership { return &Leadership{Options: options} }

// Run contends until ctx ends, and returns when the last term has ended.
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

// contend waits for the lease, runs one term, and returns its error. The lease is
// given back after the term has returned, not when it is told to: another
// replica must not begin while this one finishes.
func (l *Leadership) contend(ctx context.Context) error {
	lock, err := l.lock()
	if err != nil {
		return err
	}
	// The elector outlives ctx, up to the end of the term.
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
				// Leading with nothing running must not happen: whatever
				// ends the term gives the lease back.
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
		// Run returned from contending, or OnStartedLeading, which runs in a
		// goroutine of its own, is about to find both contexts ended.
		return nil
	}
	return <-ended
}

// lead runs a term until the process or the lease ends.
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
