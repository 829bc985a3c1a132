package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/server/host"
	"github.com/penstock-project/penstock/pkg/server/leadership"
	"github.com/penstock-project/penstock/pkg/server/memory"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
	"github.com/penstock-project/penstock/pkg/server/storeguard"
	"github.com/penstock-project/penstock/pkg/server/storehealth"
	"github.com/penstock-project/penstock/pkg/server/storemove"
	"github.com/penstock-project/penstock/pkg/store/identity"
)

// readyPoll is the interval of readiness checks at start. The server checks only itself, and stops
// when it is ready.
const readyPoll = 50 * time.Millisecond

// undecidedRetry is the pause before the next attempt to decide the identity of the store.
const undecidedRetry = 5 * time.Second

// Run serves until ctx ends, and then returns nil.
//
//  1. Open the store. Only one process may use a data directory.
//  2. Wait for the host, which knows whether the store is the right one.
//  3. Create the server (see newServer).
//  4. Serve. Register when ready, and run the controllers when leading.
//
// Everything is stopped in reverse order. A run is degraded while the identity of the store is
// undecided. It ends when the identity can be decided, and Run repeats steps 2 to 4 on the same
// port. Run also repeats them after a long outage of an embedded etcd. Store failures never end the
// process.
func Run(ctx context.Context, o *Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if err := o.setFeatures(); err != nil {
		return err
	}
	o.measureFeatures(ctx)
	cluster, err := host.New(o.Kubeconfig, o.Version)
	if err != nil {
		return err
	}
	db, err := database.Open(ctx, o.database())
	if err != nil {
		return err
	}
	if db, err = arrive(ctx, o, cluster, db); err != nil {
		return err
	}
	defer db.Close()

	running, cancel := context.WithCancel(ctx)
	defer cancel()
	go memory.New().GiveBack(running)
	stopping, stopped := context.WithCancel(context.WithoutCancel(ctx))
	defer stopped()
	hung, ended := make(chan struct{}), make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		if db.EndHung(stopping) {
			close(hung)
		}
	})()
	go func() { ended <- runUntilEnd(running, o, cluster, db) }()
	select {
	case err = <-ended:
	case <-hung:
		// Pending requests wait for an etcd that does not run. Their writes cannot succeed.
		return nil
	}
	if err != nil && ctx.Err() != nil {
		// Work that the end of ctx interrupts is not a failure.
		klog.FromContext(ctx).Info("Stopped before everything was done", "doing", err.Error())
		return nil
	}
	return err
}

// arrive restores the store that penstock move took into the cluster, if this installation has an
// empty database. It never replaces a database that has a record.
func arrive(ctx context.Context, o *Options, h *host.Host, db *database.Database) (*database.Database, error) {
	if db.Embedded == nil || !o.Register || o.RegisterServicePort == 0 {
		return db, nil
	}
	// Discovery works without a store, too.
	if _, down := db.Embedded.Down(); down != nil {
		klog.FromContext(ctx).Info("The store does not run, so a store that penstock move took into the cluster is not looked for; restart this process when it runs", "reason", down.Error())
		return db, nil
	}
	observed, err := identity.NewStore(db.Client, database.Prefix).Observe(ctx)
	if err != nil || observed.Found || observed.HighWater > 0 {
		return db, nil // the guard of the store reports the error
	}
	err = h.Wait(ctx)
	arrived, closed := false, false
	if err == nil {
		arrived, err = storemove.Arrive(ctx, h.ConfigFor("move"), o.Namespace, o.DataDir, func() { db.Close(); closed = true })
	}
	switch {
	case err != nil && closed:
		return nil, fmt.Errorf("taking over the store that penstock move took into the cluster: %w", err)
	case err != nil: // discovery is served anyway, and the guard of the store gives advice
		klog.FromContext(ctx).Error(err, "The store that penstock move took into the cluster cannot be taken over; restart this process to try again")
	}
	if !arrived {
		return db, nil
	}
	klog.FromContext(ctx).Info("Took over the store that penstock move took into the cluster")
	return database.Open(ctx, o.database())
}

// runUntilEnd runs until ctx ends. It starts over whenever the identity of the store must be
// decided.
func runUntilEnd(ctx context.Context, o *Options, h *host.Host, db *database.Database) error {
	err := runUntilDecided(ctx, o, h, db)
	for errors.Is(err, errDecided) {
		klog.FromContext(ctx).Info("The identity of the store is known now; starting over")
		err = runUntilDecided(ctx, o, h, db)
	}
	return err
}

// errDecided ends a degraded run when the identity of the store can be decided.
var errDecided = errors.New("the identity of the store is known now")

// runUntilDecided runs until ctx ends. It returns errDecided if the identity of the store must be
// decided again.
func runUntilDecided(ctx context.Context, o *Options, h *host.Host, db *database.Database) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go db.AfterOutage(ctx, func() { cancel(errDecided) })
	err := runOn(ctx, o, h, db)
	if errors.Is(context.Cause(ctx), errDecided) {
		return errDecided
	}
	return err
}

func runOn(ctx context.Context, o *Options, h *host.Host, db *database.Database) error {
	if err := h.Wait(ctx); err != nil {
		return err
	}
	run := o.forRun()
	server, err := newServer(ctx, run, h, db)
	if err != nil {
		return err
	}
	defer server.closeListeners()
	// The next run must use the same port, with a new listener.
	o.Recommended.SecureServing.BindPort, o.Recommended.SecureServing.Listener = run.Recommended.SecureServing.BindPort, nil
	return server.run(ctx)
}

// replicaIdentity names this replica as a candidate for the lease. With an embedded store, the name
// is the store's: the next process that serves the store takes over the lease at once. Replicas
// with an external etcd share a store, so each has its own name.
func replicaIdentity(o *Options, store identity.Identity) string {
	if !o.external() {
		return leadership.StoreIdentity(store.ID)
	}
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "unknown"
	}
	return hostname + "_" + uuid.NewString()
}

func (s *Server) run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	// The other goroutines must end also when serving fails.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := s.generic.AddPostStartHook("penstock", func(hook genericapiserver.PostStartHookContext) error {
		// A hook that blocks delays readiness, and an error of a hook ends the process. So this
		// hook only starts goroutines.
		for _, run := range s.parts(hook.LoopbackClientConfig) {
			running.Go(func() { run(ctx) })
		}
		if again := s.decision.Again; again != nil {
			running.Go(func() { cancelWhenDecided(ctx, again, undecidedRetry, cancel) })
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("adding the post-start hook: %w", err)
	}
	if err := s.generic.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	if errors.Is(context.Cause(ctx), errDecided) {
		return errDecided
	}
	return nil
}

// cancelWhenDecided retries until the identity of the store is decided, and then cancels. It also
// returns when ctx ends.
func cancelWhenDecided(ctx context.Context, again func(context.Context) error, interval time.Duration, cancel context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
		if again(ctx) == nil {
			cancel(errDecided)
			return
		}
	}
}

// parts returns the functions that run beside the API.
func (s *Server) parts(loopback *rest.Config) []func(context.Context) {
	parts := []func(context.Context){
		func(ctx context.Context) { s.announce(ctx, loopback) },
		s.trust.Run,
		s.health.Run,
	}
	parts = append(parts, s.companions...)
	if s.decision.Degraded != "" {
		return parts
	}
	parts = append(parts, s.crdConflict.Run)
	if keeper := s.decision.Keeper; keeper != nil {
		parts = append(parts, keeper.Run)
	}
	if target := s.target; target != nil {
		parts = append(parts, target.Run)
	}
	if s.snapshots != nil {
		parts = append(parts, s.snapshots.Run)
	}
	if len(s.options.Controllers) > 0 {
		leading := s.leadership(loopback)
		parts = append(parts, func(ctx context.Context) {
			s.accounts.Wait(ctx)
			storehealth.WhileReachable(ctx, s.health.Unreachable, leading.Run)
		})
	}
	return parts
}

func (s *Server) leadership(loopback *rest.Config) *leadership.Leadership {
	return leadership.New(leadership.Options{
		Controllers: s.options.Controllers,
		Term: leadership.Term{
			Host: s.host.ConfigFor("controllers"), Target: s.target.ConfigFor(serviceaccounts.Engine(), s.accounts), TargetName: s.target.Name(),
			Executor:  s.accounts.ConfigFor(serviceaccounts.Executor()),
			Templates: s.accounts.ConfigFor(serviceaccounts.Templates()),
			Profiles:  s.accounts.Profiles(),
			Account:   s.accounts.ConfigForAccount,
			Skew:      func() time.Duration { return time.Duration(s.host.ClockSkew() * float64(time.Second)) },
			Namespace: s.options.Namespace, Visitor: s.visitor(), Redactor: s.redactor, Liveness: s.liveness, Records: s.records,
		},
		Loopback: loopback, Scheme: s.scheme, Revisions: s.api.revisions.Revision.Local(), Own: s.own(), Metrics: s.term,
		Host: s.host.ConfigFor("leader-election"), Identity: replicaIdentity(s.options, s.decision.Identity), Times: s.options.leaseTimes(),
	})
}

// own returns the writer of revisions within this process. It refuses writes that etcd cannot take.
func (s *Server) own() *clusterextensionrevision.Own {
	return &clusterextensionrevision.Own{
		Storage: s.api.revisions, Admission: s.config.AdmissionControl, Scheme: s.scheme,
		Refuse: func() error {
			if err := storeguard.Refusal(s.database.Down); err != nil {
				return err
			}
			return s.health.Refusal()
		},
	}
}

// announce waits until the server is ready, registers it, logs that, and maintains the
// registration.
func (s *Server) announce(ctx context.Context, loopback *rest.Config) {
	log := klog.FromContext(ctx)
	if err := s.waitReady(ctx, loopback); err != nil {
		return
	}
	if reason := s.decision.Degraded; reason != "" {
		log.Error(nil, "Serving nothing but discovery", "reason", reason)
	} else {
		log.Info("Ready", "port", s.port())
	}
	if s.registration != nil {
		if err := s.registration.Run(ctx); err != nil {
			return
		}
	}
	if s.options.Ready != nil {
		s.options.Ready(Serving{Port: s.port(), Loopback: loopback, CABundle: s.trust.Bundle()})
	}
	s.keeper.Run(ctx)
}

func (s *Server) port() int {
	_, port, err := s.generic.SecureServingInfo.HostPort()
	if err != nil {
		return 0
	}
	return port
}

// waitReady returns when every readiness check passes, except the checks of the store's identity,
// space and records: a degraded server must serve discovery, too.
func (s *Server) waitReady(ctx context.Context, loopback *rest.Config) error {
	client, err := rest.HTTPClientFor(loopback)
	if err != nil {
		return fmt.Errorf("making a loopback client: %w", err)
	}
	defer client.CloseIdleConnections()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, loopback.Host+"/readyz?exclude="+storeguard.CheckName+"&exclude="+storehealth.CheckName+"&exclude="+storehealth.RecordsCheckName, nil)
		if err != nil {
			return fmt.Errorf("asking for readiness: %w", err)
		}
		if response, err := client.Do(request); err == nil {
			// Only the status matters. An error of Close changes nothing.
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(readyPoll):
		}
	}
}
