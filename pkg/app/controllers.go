package app

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/penstock-project/penstock/pkg/controller/chain"
	"github.com/penstock-project/penstock/pkg/controller/freeze"
	windows "github.com/penstock-project/penstock/pkg/controller/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/controller/rendering"
	"github.com/penstock-project/penstock/pkg/controller/retention"
	"github.com/penstock-project/penstock/pkg/controller/rolloutevents"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/leadership"
)

// pendingChanges is the capacity for notifications of the observer that wait for the queue of the
// chain controller. The queue merges them.
const pendingChanges = 4096

// Settings has the settings for controllers, which come from flags.
type Settings struct {
	// Version is the version of the program. Each execution of a plan records it.
	Version string
	// Preflight enables the dry-run of each phase before it is written.
	Preflight bool
	// Catalogs holds the ClusterCatalogs; nil for none.
	Catalogs *Catalogs
	// OperatorControllerNamespaces are the namespaces in which Penstock looks for the lease of
	// OLM's operator-controller. While the lease is held, Penstock does not change
	// ClusterExtensions.
	OperatorControllerNamespaces []string
	// ByHelm reports, at the start of the controllers, whether Helm applies ClusterExtensions.
	ByHelm func() bool
	// KeepReleases keeps the Secrets of Helm releases after the engine has taken over their
	// objects.
	KeepReleases bool

	// looked is called with each ClusterExtension before its pass, in the current term.
	looked func(*extension.Extension)
	// pool bounds the pulling and rendering of all controllers together.
	pool *rendering.Pool
	// windows decides when upgrades may begin, in the current term.
	windows *windows.Controller
}

// Controllers returns the loops that run on the leader.
func (s *Settings) Controllers() []leadership.Controller {
	s.pool = rendering.NewPool()
	controllers := []leadership.Controller{
		{Name: "notify", Start: s.startNotifications},
		{Name: "chain", Start: s.startChains},
		{Name: "plan", Start: s.startPlans},
		{Name: "retention", Start: func(_ context.Context, term leadership.Term) error {
			return retention.Add(term.Manager, term.Manager.GetClient())
		}},
		{Name: "upkeep", Start: startUpkeep},
		{Name: "image-templates", Start: startTemplates},
		{Name: "maintenance-windows", Start: s.startWindows},
	}
	if s.Catalogs != nil {
		controllers = append(controllers, s.Catalogs.Controller(), leadership.Controller{Name: "extensions", Start: s.startExtensions},
			leadership.Controller{Name: "chartkinds", Start: s.startChartKinds})
	}
	return controllers
}

// startChains assembles the chain controller and its engines: one for the default target cluster,
// and one for each cluster that chains name.
func (s *Settings) startChains(ctx context.Context, term leadership.Term) error {
	requests := &targetclient.Counter{}
	changed := make(chan ctrlevent.TypedGenericEvent[string], pendingChanges)
	notify := notifier(ctx, changed)
	metrics, err := addMetrics(ctx, term, requests)
	if err != nil {
		return err
	}
	open := func(ctx context.Context, config *rest.Config) (*rollout.Engine, []func(context.Context) error, error) {
		return s.open(ctx, engineParts{config: config, requests: requests, notify: notify, metrics: metrics, redactor: term.Redactor})
	}
	engine, parts, err := open(ctx, term.Target)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := term.Manager.Add(manager.RunnableFunc(part)); err != nil {
			return fmt.Errorf("adding what serves the engine: %w", err)
		}
	}
	targets, err := targetsOf(ctx, term, notify, open)
	if err != nil {
		return err
	}
	host, err := hostEvents(term, requests)
	if err != nil {
		return err
	}
	events := rolloutevents.New(host)
	if err := term.Manager.Add(manager.RunnableFunc(events.Run)); err != nil {
		return fmt.Errorf("adding what writes events: %w", err)
	}
	own, err := versioned.NewForConfig(component(term.Manager.GetConfig(), "rollback"))
	if err != nil {
		return fmt.Errorf("connecting to our own API for rollbacks: %w", err)
	}
	owners, err := metadata.NewForConfig(component(term.Host, "owners"))
	if err != nil {
		return fmt.Errorf("connecting to the host for owners of extensions: %w", err)
	}
	frozen, err := freezeOf(ctx, term, "freeze")
	if err != nil {
		return err
	}
	checks, err := metricChecks(term, notify)
	if err != nil {
		return err
	}
	running := &chain.Passes{Clock: clock.RealClock{}}
	term.Liveness.Add("chain", hanging(running, clock.RealClock{}))
	return chain.Add(term.Manager, chain.Options{
		Client:      term.Manager.GetClient(),
		Reader:      term.Manager.GetAPIReader(),
		Engine:      engine,
		Targets:     targets,
		Events:      recorderTo(ctx, term, events),
		Packs:       term.Packs,
		Heads:       term.Heads,
		Inventories: term.Inventories,
		Owners:      chain.NewOwnerWatch(ctx, owners, notify),
		Freezes:     frozen,
		Metrics:     checks,
		Rollbacks:   own.OlmV1alpha1().ClusterExtensionRevisions(),
		Clock:       clock.RealClock{},
		Changed:     changed,
		Passes:      running,
	})
}

// freezeOf watches the freeze in the host until the term ends. name is the name of the client.
func freezeOf(ctx context.Context, term leadership.Term, name string) (*freeze.Watch, error) {
	client, err := kubernetes.NewForConfig(component(term.Host, name))
	if err != nil {
		return nil, fmt.Errorf("connecting to the host for the freeze: %w", err)
	}
	return freeze.New(ctx, client, term.Namespace), nil
}

// notifier returns a function that passes notifications of the observer to the channel.
func notifier(ctx context.Context, changed chan<- ctrlevent.TypedGenericEvent[string]) func(string) {
	return func(chain string) {
		select {
		case changed <- ctrlevent.TypedGenericEvent[string]{Object: chain}:
		case <-ctx.Done():
		}
	}
}

// recorder writes events to the host until the term ends.
func recorder(ctx context.Context, term leadership.Term, requests *targetclient.Counter) (record.EventRecorder, error) {
	events, err := hostEvents(term, requests)
	if err != nil {
		return nil, err
	}
	return recorderTo(ctx, term, &typedcorev1.EventSinkImpl{Interface: events}), nil
}

// hostEvents returns the client for events of the host. It counts its requests.
func hostEvents(term leadership.Term, requests *targetclient.Counter) (typedcorev1.EventInterface, error) {
	client, err := kubernetes.NewForConfig(countedFor(component(term.Host, "events"), requests, targetclient.Event))
	if err != nil {
		return nil, fmt.Errorf("connecting to the host for events: %w", err)
	}
	return client.CoreV1().Events(corev1.NamespaceAll), nil
}

// recorderTo returns a recorder of the core group. The recorder of events.k8s.io treats an event
// that differs only in its message as a repetition, and drops the message. With it, a revision
// would report repairs, and the authors of the changes, only once in six minutes (client-go,
// tools/events/event_broadcaster.go, getKey).
func recorderTo(ctx context.Context, term leadership.Term, sink record.EventSink) record.EventRecorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(sink)
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return broadcaster.NewRecorder(term.Manager.GetScheme(), corev1.EventSource{Component: "penstock"})
}

// component returns a client configuration with its own name in the host's audit log, and with
// watches that take little memory.
func component(config *rest.Config, name string) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent += " " + name
	return uncompressedWatches(config)
}
