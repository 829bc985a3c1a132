package screens

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extensionset"
)

// batch is the time during which changes are collected before they are sent.
const batch = 100 * time.Millisecond

// The parts of the overview are read independently of each other.
const (
	partRevisions  = "extensions"
	partPlans      = "plans"
	partExtensions = "ClusterExtensions"
	partSets       = "ClusterExtensionSets"
)

// picture is the overview in the cluster, and the overview that the page has.
type picture struct {
	mu        sync.Mutex
	revisions []*v1alpha1.ClusterExtensionRevision
	asked     map[*unstructured.Unstructured]overview.Asked
	plans     []*hcov1alpha1.ConfigurationPlan
	sets      []*extensionset.Set
	// unknown holds the parts that were not read yet.
	unknown map[string]bool
	// changed has a token after a change.
	changed chan struct{}

	sentExtensions map[string]ExtensionRow
	sentPlans      map[string]PlanRow
	sentSets       map[string]SetRow
}

// watchOverview sends all extensions, plans and sets, and then their changes.
func (a *API) watchOverview(ctx context.Context, _ *http.Request, send func(Message)) error {
	p := &picture{
		unknown: map[string]bool{partRevisions: true, partPlans: true, partExtensions: true, partSets: true}, changed: make(chan struct{}, 1),
		sentExtensions: map[string]ExtensionRow{}, sentPlans: map[string]PlanRow{}, sentSets: map[string]SetRow{},
	}
	unarchived := metav1.ListOptions{FieldSelector: v1alpha1.LifecycleStateField + "!=" + string(v1alpha1.LifecycleStateArchived)}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	all.Go(func() {
		err := part(ctx, p, partRevisions, follow.Revisions(a.penstock, unarchived), send, func(all []*v1alpha1.ClusterExtensionRevision) { p.revisions = all })
		stop(err) // without revisions there is no overview
	})
	all.Go(func() {
		if err := part(ctx, p, partPlans, follow.Plans(a.penstock, metav1.ListOptions{}), send, func(all []*hcov1alpha1.ConfigurationPlan) { p.plans = all }); err != nil {
			p.without(partPlans, err, send)
		}
	})
	all.Go(func() {
		err := part(ctx, p, partExtensions, a.clusterExtensions(), send, p.ask)
		if err != nil {
			p.without(partExtensions, err, send)
		}
	})
	all.Go(func() {
		if err := part(ctx, p, partSets, a.sets(), send, p.readSets); err != nil {
			p.without(partSets, err, send)
		}
	})
	p.show(ctx, send)
	all.Wait()
	return context.Cause(ctx)
}

// part follows the objects of one kind, and stores them.
func part[T metav1.Object](ctx context.Context, p *picture, name string, source follow.Source[T], send func(Message), note func([]T)) error {
	troubled := false
	return source.Follow(ctx, func(err error) { troubled = true; send(trouble(name, err)) }, func(all []T) (bool, error) {
		if troubled {
			troubled = false
			send(Message{Kind: kindHeard, Part: name})
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		note(all)
		p.heard(name)
		return false, nil
	})
}

// clusterExtensions follows ClusterExtensions. A cluster might not have the kind.
func (a *API) clusterExtensions() follow.Source[*unstructured.Unstructured] {
	return ofHost(a.host.Resource(extension.Resource))
}

func ofHost(resource dynamic.ResourceInterface) follow.Source[*unstructured.Unstructured] {
	return follow.Source[*unstructured.Unstructured]{
		List: func(ctx context.Context, options metav1.ListOptions) ([]*unstructured.Unstructured, string, error) {
			list, err := resource.List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			return follow.Pointers(list.Items), list.GetResourceVersion(), nil
		},
		Watch: resource.Watch,
	}
}

func (p *picture) ask(all []*unstructured.Unstructured) {
	asked := make(map[*unstructured.Unstructured]overview.Asked, len(all))
	for _, object := range all {
		if known, is := p.asked[object]; is {
			asked[object] = known
		} else if read, err := extension.From(object); err == nil {
			asked[object] = overview.Ask(read)
		}
	}
	p.asked = asked
}

// readSets stores sets. It omits sets that cannot be read.
func (p *picture) readSets(all []*unstructured.Unstructured) {
	p.sets = nil
	for _, object := range all {
		if read, err := extensionset.From(object); err == nil {
			p.sets = append(p.sets, read)
		}
	}
}

// heard marks a part as known, and wakes show. The lock is held.
func (p *picture) heard(part string) {
	delete(p.unknown, part)
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// without continues without a part. If the cluster does not serve the kind, nothing is missing.
func (p *picture) without(part string, err error, send func(Message)) {
	if !apierrors.IsNotFound(err) {
		send(trouble(part, err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard(part)
}

// show sends changes, at most once per batch, until the context ends.
func (p *picture) show(ctx context.Context, send func(Message)) {
	synced := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		}
		rows, complete := p.difference()
		if rows != nil {
			send(Message{Kind: "rows", Rows: rows})
		}
		if complete && !synced {
			synced = true
			send(Message{Kind: kindSynced})
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(batch):
		}
	}
}

// difference returns the rows that the page lacks, or nil. complete is false while a part is
// unknown.
func (p *picture) difference() (rows *Rows, complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unknown[partRevisions] {
		return nil, false
	}
	extensions, plans, sets := map[string]ExtensionRow{}, map[string]PlanRow{}, map[string]SetRow{}
	for _, one := range overview.Join(overview.Of(p.revisions), slices.Collect(maps.Values(p.asked))) {
		extensions[one.Name] = extensionRow(one)
	}
	for _, plan := range p.plans {
		plans[plan.Name] = planRow(plan)
	}
	for _, set := range p.sets {
		sets[set.Name] = setRow(set)
	}
	rows = &Rows{}
	rows.Extensions, rows.GoneExtensions = news(p.sentExtensions, extensions)
	rows.Plans, rows.GonePlans = news(p.sentPlans, plans)
	rows.Sets, rows.GoneSets = news(p.sentSets, sets)
	p.sentExtensions, p.sentPlans, p.sentSets = extensions, plans, sets
	if len(rows.Extensions)+len(rows.Plans)+len(rows.Sets)+len(rows.GoneExtensions)+len(rows.GonePlans)+len(rows.GoneSets) == 0 {
		rows = nil
	}
	return rows, len(p.unknown) == 0
}

// news returns the rows that differ from the sent rows, and the names of removed rows.
func news[R comparable](sent, now map[string]R) (changed []R, gone []string) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if before, was := sent[name]; !was || before != now[name] {
			changed = append(changed, now[name])
		}
	}
	for name := range sent {
		if _, is := now[name]; !is {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return changed, gone
}
