//go:build integration

package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/cause/gather"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

var (
	_ rollout.Writer   = (*targetclient.Client)(nil)
	_ rollout.Reader   = (*targetclient.Client)(nil)
	_ gather.Lister    = (*targetclient.Client)(nil)
	_ rollout.Observer = (*observe.Cache)(nil)
)

// chain is a chain with the state that survives a killed process: its layers, the manifests and the
// stored inventory.
type chain struct {
	targetCluster
	name   string
	layers []rollout.Layer
	bodies map[manifest.Digest][]byte
	orphan map[int64]bool
	allow  map[string]bool
	// budget limits deletions. Without it there is no limit.
	budget *rollout.Budget
	ledger ledger
	clock  clock.PassiveClock
	// admin is the client configuration of the processes.
	admin *rest.Config
	// parallel is the maximum number of concurrent writes. 0 is the default.
	parallel int
	// skipPreflight disables dry-runs before writes.
	skipPreflight bool
	// explains enables the lookup of causes, which the program always has.
	explains bool
	// counter counts the requests of all processes.
	counter *targetclient.Counter

	process *process
	// events are the events of all passes since a test last cleared them.
	events []string
}

// ledger stores one inventory with compare-and-swap.
type ledger struct {
	mu        sync.Mutex
	version   int
	inventory rollout.Inventory
}

var errFenced = errors.New("another process has stored the inventory")

func (l *ledger) load() (rollout.Inventory, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return rollout.Inventory{Entries: maps.Clone(l.inventory.Entries), Reached: maps.Clone(l.inventory.Reached)}, l.version
}

func (l *ledger) store(inventory rollout.Inventory, version int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.version != version {
		return errFenced
	}
	l.version++
	l.inventory = inventory
	return nil
}

// process is the state that a crash destroys.
type process struct {
	engine  *rollout.Engine
	watches *observe.Cache
	client  targetclient.Accounted
	// heard has an element when a pass is due.
	heard chan struct{}
	stop  func()
	// wrapSave intercepts writes of the inventory.
	wrapSave func(save func() error) error
}

// interference intercepts the engine's calls.
type interference struct {
	writer   func(rollout.Writer) rollout.Writer
	observer func(rollout.Observer) rollout.Observer
	save     func(save func() error) error
}

// chain returns a new chain. It does not create the namespace of the same name. A process starts
// with the first pass.
func (w targetCluster) chain(name string) *chain {
	w.t.Helper()
	c := &chain{
		targetCluster: w, name: name, bodies: map[manifest.Digest][]byte{}, orphan: map[int64]bool{}, allow: map[string]bool{},
		clock: clock.RealClock{}, admin: w.Config(), counter: &targetclient.Counter{},
	}
	return c
}

// run replaces the process by a new process, which runs until the test ends.
func (c *chain) run(with ...interference) {
	c.t.Helper()
	c.kill()
	config := func(part string, usual targetclient.Reason) *rest.Config {
		config := rest.CopyConfig(c.admin)
		config.UserAgent = c.name + "/" + part
		config.Wrap(c.counter.WrapFor(usual))
		return config
	}
	target, err := targetclient.New(targetclient.Options{Config: config("targetClient", targetclient.Discovery)})
	if err != nil {
		c.t.Fatal(err)
	}
	targetClient := targetclient.Accounted{Client: target}
	p := &process{heard: make(chan struct{}, 1), client: targetClient}
	p.watches, err = observe.New(observe.Options{Config: config("watch", targetclient.Watch), Mapping: targetClient.Discover, Names: names(), Notify: func(string) { p.wake() }})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.watches.Run(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				c.t.Errorf("running the watches: %v", err)
			}
		case <-time.After(poll.Patience):
			c.t.Errorf("the watches did not stop")
		}
	})
	c.t.Cleanup(p.stop)
	options := rollout.Options{Writer: targetClient, Reader: targetClient, Observer: p.watches, Names: names(), Clock: c.clock, Parallel: c.parallel, SkipPreflight: c.skipPreflight}
	if c.explains {
		options.Explainer = gather.New(targetClient)
	}
	for _, i := range with {
		if i.writer != nil {
			options.Writer = i.writer(options.Writer)
		}
		if i.observer != nil {
			options.Observer = i.observer(options.Observer)
		}
		if i.save != nil {
			p.wrapSave = i.save
		}
	}
	p.engine = rollout.New(options)
	c.process = p
}

// kill ends the process.
func (c *chain) kill() {
	if c.process != nil {
		c.process.stop()
		c.process = nil
	}
}

// wake makes a pass due.
func (p *process) wake() {
	select {
	case p.heard <- struct{}{}:
	default:
	}
}

// Body returns a manifest by its digest.
func (c *chain) Body(_ context.Context, ref manifest.Ref) ([]byte, error) {
	body, ok := c.bodies[ref.Digest]
	if !ok {
		return nil, fmt.Errorf("the store has no manifest %s", ref.Digest)
	}
	return body, nil
}

// pass runs Reconcile once with the stored inventory.
func (c *chain) pass() (rollout.Report, error) {
	if c.process == nil {
		c.run()
	}
	inventory, version := c.ledger.load()
	save := func(_ context.Context, next rollout.Inventory) error {
		store := func() error {
			if err := c.ledger.store(next, version); err != nil {
				return err
			}
			version++
			return nil
		}
		if wrap := c.process.wrapSave; wrap != nil {
			return wrap(store)
		}
		return store()
	}
	report, err := c.process.engine.Reconcile(context.Background(), rollout.Work{
		Owner: c.name, Layers: c.layers, Inventory: inventory, Save: save, Bodies: c, Orphan: c.orphan, AllowCRDDeletion: c.allow, Budget: c.budget,
	})
	for _, e := range report.Events {
		c.events = append(c.events, e.Reason+": "+e.Message)
	}
	return report, err
}

// until runs passes as a controller would: after a notification or when the requeue is due. It
// returns the first report for which found is true.
func (c *chain) until(what string, found func(rollout.Report) bool) rollout.Report {
	c.t.Helper()
	deadline := time.After(poll.Patience)
	for {
		report, err := c.pass()
		if err != nil {
			c.t.Fatalf("reconciling %s: %v", c.name, err)
		}
		if found(report) {
			return report
		}
		var again <-chan time.Time
		if report.RequeueAfter > 0 {
			again = time.After(report.RequeueAfter)
		}
		select {
		case <-c.process.heard:
		case <-again:
		case <-deadline:
			c.t.Fatalf("waited %s for %s to be %s:\n%s", poll.Patience, c.name, what, strings.Join(failures(report), "\n"))
		}
	}
}

// complete reports whether the newest layer is rolled out and no object is left to delete.
func complete(r rollout.Report) bool {
	return len(r.Leaving) == 0 && (len(r.Layers) == 0 || r.Layers[0].Complete)
}

// roll sets the layers, newest first, and waits until the chain is complete.
func (c *chain) roll(revisions ...*revision) rollout.Report {
	c.t.Helper()
	c.become(revisions...)
	return c.until("complete", complete)
}

func (c *chain) become(revisions ...*revision) {
	c.t.Helper()
	c.layers = nil
	for _, r := range revisions {
		c.layers = append(c.layers, r.layer(c))
	}
}

// stuck waits until a report has exactly these failures.
func (c *chain) stuck(want ...string) rollout.Report {
	c.t.Helper()
	return c.until(fmt.Sprintf("stuck with %q", want), func(r rollout.Report) bool {
		return strings.Join(want, "\n") == strings.Join(failures(r), "\n")
	})
}

// failures lists the failures of a report as text.
func failures(r rollout.Report) []string {
	var out []string
	for _, layer := range r.Layers {
		for _, phase := range layer.Phases {
			for _, f := range phase.Failures {
				out = append(out, fmt.Sprintf("%d/%s %s: %s", layer.Revision, phase.Name, f.ID, f.Reason))
			}
		}
	}
	for _, f := range r.Leaving {
		out = append(out, fmt.Sprintf("leaving %s: %s", f.ID, f.Reason))
	}
	return out
}

// messages joins all messages of a report.
func messages(r rollout.Report) string {
	var out []string
	for _, layer := range r.Layers {
		for _, phase := range layer.Phases {
			for _, f := range phase.Failures {
				out = append(out, f.Message)
			}
		}
	}
	for _, f := range r.Leaving {
		out = append(out, f.Message)
	}
	return strings.Join(out, "\n")
}

// revision builds a revision:
//
//	rev(1).phase("config", configMap("a", "x", "1")).phase("deploy", deployment("a", "y", "1"))
type revision struct {
	number int64
	phases []phase
	adopt  stage.Adoption
	yields []manifest.FieldPath
	paused bool
}

type phase struct {
	name    string
	objects []map[string]any
}

func rev(number int64) *revision { return &revision{number: number} }

func (r *revision) phase(name string, objects ...map[string]any) *revision {
	r.phases = append(r.phases, phase{name, objects})
	return r
}

func (r *revision) adopting(a stage.Adoption) *revision {
	r.adopt = a
	return r
}

// yielding yields fields of all objects to the manager that changes them.
func (r *revision) yielding(fields ...string) *revision {
	for _, text := range fields {
		field, err := manifest.ParseFieldPath(text)
		if err != nil {
			panic(err) // a mistake in a test
		}
		r.yields = append(r.yields, field)
	}
	return r
}

// objects returns the objects of all phases.
func (r *revision) objects() []map[string]any {
	var all []map[string]any
	for _, p := range r.phases {
		all = append(all, p.objects...)
	}
	return all
}

// layer compiles the revision and stores its manifests in the chain.
func (r *revision) layer(c *chain) rollout.Layer {
	var phases []stage.Phase
	for _, p := range r.phases {
		compiled := stage.Phase{Name: p.name}
		for _, object := range p.objects {
			sealed := seal(object)
			c.bodies[sealed.Digest] = sealed.JSON
			compiled.Steps = append(compiled.Steps, stage.Step{Ref: sealed.Ref, Policy: stage.Policy{Adopt: r.adopt, Yield: r.yields}})
		}
		phases = append(phases, compiled)
	}
	stages, err := stage.Compile(phases, stage.Options{Probes: probe.Builtin()})
	if err != nil {
		c.t.Fatal(err)
	}
	return rollout.Layer{Key: fmt.Sprintf("%s-%d", c.name, r.number), Revision: r.number, Stages: stages, Paused: r.paused}
}

// spent counts the chain's requests since a mark, without watches. Keys are try (a dry-run), apply,
// patch (of field ownership), delete, get, list and discover.
func (c *chain) spent(mark plane.Mark) map[string]int {
	c.t.Helper()
	counts := map[string]int{}
	for _, r := range c.requests(mark) {
		switch {
		case r.Verb == "patch" && strings.Contains(r.URI, "dryRun=All"):
			counts["try"]++
		case r.Verb == "patch" && strings.Contains(r.URI, "fieldManager="):
			counts["apply"]++
		case r.Resource == "":
			counts["discover"]++
		default:
			counts[r.Verb]++
		}
	}
	return counts
}

// requests returns the requests of the chain since a mark, without watches.
func (c *chain) requests(mark plane.Mark) plane.Requests {
	c.t.Helper()
	return c.Audit().Since(mark, plane.ByAgent(c.name+"/"), plane.Not(plane.ByVerb("watch")))
}

// quiet runs passes over a settled chain. It fails if a pass sends a request or stores the
// inventory.
func (c *chain) quiet() {
	c.t.Helper()
	mark := c.Audit().Mark()
	_, version := c.ledger.load()
	for range 3 {
		if _, err := c.pass(); err != nil {
			c.t.Fatal(err)
		}
	}
	if requests := c.requests(mark); len(requests) > 0 {
		c.t.Errorf("passes over a complete rollout made requests:\n%s", requests)
	}
	if _, now := c.ledger.load(); now != version {
		c.t.Errorf("passes over a complete rollout stored the inventory")
	}
}

// settled compares the cluster and the inventory with the wanted objects.
func (c *chain) settled(t testing.TB, want ...map[string]any) {
	t.Helper()
	wanted := map[manifest.ID]bool{}
	var labelled []string
	inventory, _ := c.ledger.load()
	for _, object := range want {
		sealed := seal(object)
		wanted[sealed.ID] = true
		labelled = append(labelled, sealed.ID.String())
		live := c.get(sealed.ID)
		if live == nil {
			t.Errorf("%s is missing", sealed.ID)
			continue
		}
		seen := names().Observe(live)
		if seen.Chain != c.name || seen.Applied != sealed.Digest || valueOf(live.Object) != valueOf(object) {
			t.Errorf("%s is %q of extension %q at %s, want %q of %q at %s", sealed.ID, valueOf(live.Object), seen.Chain, seen.Applied, valueOf(object), c.name, sealed.Digest)
		}
		mine, _ := seen.Entry("penstock/" + c.name)
		entry := inventory.Entries[sealed.ID]
		if entry.UID != seen.UID || entry.Digest != sealed.Digest || entry.ManagedEntry != mine.Digest || entry.Version != sealed.Version {
			t.Errorf("%s is recorded as %+v, and is %+v", sealed.ID, entry, seen)
		}
	}
	for id := range inventory.Entries {
		if !wanted[id] {
			t.Errorf("%s is still in the inventory", id)
		}
	}
	got := c.ours(c.name)
	for _, id := range got {
		if !slices.Contains(labelled, id) {
			t.Errorf("%s exists, want it absent", id)
		}
	}
}
