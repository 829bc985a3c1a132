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

	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
	"github.com/penstock-project/penstock/pkg/server/storeguard"
	"github.com/penstock-project/penstock/pkg/server/storehealth"
	"github.com/penstock-project/penstock/pkg/store/identity"
)

// readyPoll is how often a starting server looks whether it is ready. It asks
// itself, not the host, and stops when it is.
const readyPoll = 50 * time.Millisecond

// undecidedRetry is how often to try again while degraded for want of an answer.
const undecidedRetry = 5 * time.Second

// Run serves until ctx ends, and returns nil then.
//
//  1. The store: one process per data directory, before anything else is touched.
//  2. The host: it is waited for, because it knows whether the store is the right one.
//  3. The configuration (see newConfig).
//  4. Serve; when ready, register; when leading, run the controllers.
//
// Everything is stopped in reverse order. A run that is degraded because it could
// not be found out what the store is ends as soon as it can, and steps 2 to 4 are
// done again, on the same port. So they are after an embedded etcd was away for long.
// Nothing that becomes of the store ends the process.
func Run(ctx context.Context, o *Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if err := o.Run.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("setting feature gates: %w", err)
	}
	host, err := newHost(o.Kubeconfig, o.Version)
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, o)
	if err != nil {
		return err
	}
	defer db.close()

	running, cancel := context.WithCancel(ctx)
	defer cancel()
	go newSpareMemory(nil).giveBack(running)
	stopping, stopped := context.WithCancel(context.WithoutCancel(ctx))
	defer stopped()
	hung, ended := make(chan struct{}), make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		if db.endHung(stopping) {
			close(hung)
		}
	})()
	go func() { ended <- runUntilEnd(running, o, host, db) }()
	select {
	case err = <-ended:
	case <-hung:
		// Requests wait for an etcd that is gone. Nothing of them can be written.
		return nil
	}
	if err != nil && ctx.Err() != nil {
		// What was cut off by the end of ctx is no failure.
		klog.FromContext(ctx).Info("Stopped before everything was done", "doing", err.Error())
		return nil
	}
	return err
}

// runUntilEnd runs until ctx ends, anew whenever what the store is has to be decided.
func runUntilEnd(ctx context.Context, o *Options, host *host, db *database) error {
	err := runUntilDecided(ctx, o, host, db)
	for errors.Is(err, errDecided) {
		klog.FromContext(ctx).Info("It can be told now what the store is; starting over")
		err = runUntilDecided(ctx, o, host, db)
	}
	return err
}

// errDecided ends a run that was degraded for want of an answer, when the answer
// is there.
var errDecided = errors.New("it is known now what the store is")

// runUntilDecided runs until ctx ends, or what the store is has to be decided anew:
// then the error is errDecided.
func runUntilDecided(ctx context.Context, o *Options, host *host, db *database) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go db.restartAfterOutage(ctx, cancel)
	err := runOn(ctx, o, host, db)
	if errors.Is(context.Cause(ctx), errDecided) {
		return errDecided
	}
	return err
}

func runOn(ctx context.Context, o *Options, host *host, db *database) error {
	if err := host.wait(ctx); err != nil {
		return err
	}
	run := o.forRun()
	config, err := newConfig(ctx, run, host, db)
	if err != nil {
		return err
	}
	// Another run must be found where this one was; its listener is closed then.
	o.Recommended.SecureServing.BindPort, o.Recommended.SecureServing.Listener = run.Recommended.SecureServing.BindPort, nil
	server, err := config.Complete().New()
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// replicaIdentity names this replica as a candidate for the lease. With an embedded
// store it is that store: whoever serves it next, wherever, follows at once. Replicas
// that share an etcd have it in common, so each has a name of its own.
func replicaIdentity(o *Options, store identity.Identity) string {
	if !o.external() {
		return "store_" + store.ID
	}
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "unknown"
	}
	return hostname + "_" + uuid.NewString()
}

// Server is an API server that is ready to run.
type Server struct {
	generic  *genericapiserver.GenericAPIServer
	extra    *ExtraConfig
	liveness *Liveness
	term     *termMetrics
}

// New makes the server: it installs the API, the checks and the metrics.
func (c CompletedConfig) New() (*Server, error) {
	generic, err := c.generic.New("penstock", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("making the generic API server: %w", err)
	}
	s := &Server{generic: generic, extra: c.extra, liveness: &Liveness{}, term: &termMetrics{}}
	if err := c.extra.api.install(generic, c.generic.RESTOptionsGetter); err != nil {
		return nil, err
	}
	if err := generic.AddLivezChecks(0, s.liveness.checker()); err != nil {
		return nil, fmt.Errorf("adding the check of the controllers: %w", err)
	}
	measured, err := s.measured()
	if err != nil {
		return nil, err
	}
	generic.Handler.NonGoRestfulMux.Handle("/metrics", metricsHandler(c.extra.metrics, measured))
	return s, nil
}

// Run serves until ctx ends and everything has stopped.
func (s *Server) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	// The others must end also when serving fails.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := s.generic.AddPostStartHook("penstock", func(hook genericapiserver.PostStartHookContext) error {
		// A hook that waits holds readiness up, and an error of it ends the
		// process: so it only starts things.
		for _, run := range s.parts(hook.LoopbackClientConfig) {
			running.Go(func() { run(ctx) })
		}
		if again := s.extra.decision.Again; again != nil {
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

// cancelWhenDecided tries again and again to find out what the store is, and
// cancels when that is known. It returns when ctx ends, too.
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

// parts are what runs beside the API.
func (s *Server) parts(loopback *rest.Config) []func(context.Context) {
	parts := []func(context.Context){
		func(ctx context.Context) { s.announce(ctx, loopback) },
		s.extra.trust.Run,
		s.extra.health.Run,
	}
	if s.extra.decision.Degraded != "" {
		return parts
	}
	if keeper := s.extra.decision.Keeper; keeper != nil {
		parts = append(parts, keeper.Run)
	}
	if target := s.extra.target; target != nil {
		parts = append(parts, target.run)
	}
	if s.extra.snapshots != nil {
		parts = append(parts, s.extra.snapshots.run)
	}
	if len(s.extra.controllers) > 0 {
		terms := &terms{
			controllers: s.extra.controllers, loopback: loopback,
			host: s.extra.host.configFor("controllers"), target: s.extra.targetConfig(serviceaccounts.Engine()),
			executor: s.extra.accounts.ConfigFor(serviceaccounts.Executor()),
			scheme:   s.extra.scheme, liveness: s.liveness, metrics: s.term, redactor: s.extra.redactor, store: s.extra.api.store,
			namespace: s.extra.namespace, visitor: newVisitor(s.extra.host, s.extra.decision),
			revisions: s.extra.api.revisions.Revision.Local(),
		}
		leadership := &leadership{
			host: s.extra.host.configFor("leader-election"), namespace: s.extra.namespace,
			identity: s.extra.identity, times: s.extra.lease, term: terms.run,
		}
		parts = append(parts, func(ctx context.Context) {
			s.extra.accounts.Wait(ctx)
			storehealth.WhileReachable(ctx, s.extra.health.Unreachable, leadership.run)
		})
	}
	return parts
}

// announce waits until the server is ready, registers it, says so, and keeps the
// registration.
func (s *Server) announce(ctx context.Context, loopback *rest.Config) {
	log := klog.FromContext(ctx)
	if err := s.waitReady(ctx, loopback); err != nil {
		return
	}
	if reason := s.extra.decision.Degraded; reason != "" {
		log.Error(nil, "Serving nothing but discovery", "reason", reason)
	} else {
		log.Info("Ready", "port", s.port())
	}
	if s.extra.registration != nil {
		if err := s.extra.registration.Run(ctx); err != nil {
			return
		}
	}
	if s.extra.ready != nil {
		s.extra.ready(Serving{Port: s.port(), Loopback: loopback, CABundle: s.extra.trust.Bundle()})
	}
	s.extra.keeper.Run(ctx)
}

func (s *Server) port() int {
	_, port, err := s.generic.SecureServingInfo.HostPort()
	if err != nil {
		return 0
	}
	return port
}

// waitReady returns when every check of readiness passes, but for those of the
// store's identity, room and records: discovery is to be reached also when we are
// degraded.
func (s *Server) waitReady(ctx context.Context, loopback *rest.Config) error {
	client, err := rest.HTTPClientFor(loopback)
	if err != nil {
		return fmt.Errorf("making a loopback client: %w", err)
	}
	defer client.CloseIdleConnections()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, loopback.Host+"/readyz?exclude="+storeguard.CheckName+"&exclude="+storehealth.CheckName+"&exclude="+storeRecordsCheck, nil)
		if err != nil {
			return fmt.Errorf("asking for readiness: %w", err)
		}
		if response, err := client.Do(request); err == nil {
			// Only the status matters; a body that cannot be closed is gone.
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
