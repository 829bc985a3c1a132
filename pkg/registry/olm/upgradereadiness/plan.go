package upgradereadiness

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/readiness"
)

const (
	// mostWaited is the time that a plan waits for bundles to be pulled and rendered, after
	// everything else is read.
	mostWaited = 20 * time.Second
	// answering is the part of a request's time that is reserved for the answer.
	answering = 5 * time.Second
	// mostRendering bounds the time for one bundle.
	mostRendering = 5 * time.Minute
	// mostKept bounds the number of cached and waiting bundles. mostPlanned bounds the bundles of
	// one plan.
	mostKept, mostPlanned = 4000, 2000
	// mostCandidates bounds the candidate versions of one extension, lowest first.
	mostCandidates = 8
	// kept is the lifetime of the cached contents of a bundle. Failures, and contents of an image
	// without a digest, are cached for unusedKept after the last request, so that a repeated
	// request for a plan completes.
	kept, unusedKept = time.Hour, time.Minute
)

// Render pulls and renders the bundle of a version. user waits for a place in the pool of images;
// ErrBusy means that no place was free.
type Render func(ctx context.Context, user string, wanted Wanted) (readiness.Contents, error)

var (
	// ErrBusy reports that too many bundles wait. A later request gets the bundle.
	ErrBusy = errors.New("too many bundles wait to be rendered: ask again")
	// ErrNotPulled reports that an image cannot be pulled now. Images of later versions of the
	// extension are then not pulled.
	ErrNotPulled = errors.New("the bundle cannot be pulled")
)

// Wanted is one bundle with the settings of an extension.
type Wanted struct {
	// Catalog is the catalog that offers the bundle. Its rules verify the image too.
	Catalog, Image string
	Settings
}

// Settings are the settings for rendering an extension.
type Settings struct {
	// Namespace is the namespace of the bundle's objects. Config is its configuration as JSON.
	Namespace, Config string
}

// PlanREST serves the subresource plan: the same answer, computed with the rendered bundles of the
// next versions. Rendering continues after the request, so a later request has the bundle.
type PlanREST struct {
	*REST
	rendered *rendered
}

// NewPlanREST returns the subresource.
func NewPlanREST(main *REST) *PlanREST {
	return &PlanREST{REST: main, rendered: newRendered(main.deps.Render, clock.RealClock{})}
}

// Get returns the plan for the version in the name.
func (r *PlanREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	return r.answer(ctx, name, options, func(ctx context.Context, judge *readiness.Judge, caller user.Info, extensions []*readiness.Extension) (int, error) {
		plan := plan{Judge: judge, user: caller.GetName()}
		var err error
		if r.deps.Extensions != nil {
			if plan.settings, err = r.deps.Extensions(ctx); err != nil {
				return 0, apierrors.NewServiceUnavailable("the ClusterExtensions cannot be listed: " + err.Error())
			}
		}
		plan.mayRead = func(name string) bool {
			may, err := authz.On(extension.Resource, "get", "", name).Has(ctx, r.deps.Authorizer, caller)
			return may && err == nil
		}
		until := time.Now().Add(mostWaited)
		if last, ok := ctx.Deadline(); ok && last.Add(-answering).Before(until) {
			until = last.Add(-answering)
		}
		wait, end := context.WithDeadline(ctx, until)
		defer end()
		return r.rendered.fill(wait, &plan, extensions), nil
	})
}

// plan is one plan that is being computed.
type plan struct {
	*readiness.Judge
	user     string
	settings map[string]Settings
	// mayRead reports whether the user may get a ClusterExtension: errors may contain text of its
	// configuration.
	mayRead func(extension string) bool
	started atomic.Int32
}

// rendered caches the contents of bundles by image. Catalogs name images by digest.
type rendered struct {
	render Render
	clock  clock.WithDelayedExecution
	most   int

	mu    sync.Mutex
	known map[key]*result
}

func newRendered(render Render, clock clock.WithDelayedExecution) *rendered {
	return &rendered{render: render, known: map[key]*result{}, clock: clock, most: mostKept}
}

// key holds all inputs of a bundle's contents. The target and the cluster are not inputs.
type key struct {
	catalog, image, namespace string
	config                    [sha256.Size]byte
}

func keyOf(wanted *Wanted) key {
	return key{catalog: wanted.Catalog, image: wanted.Image, namespace: wanted.Namespace, config: sha256.Sum256([]byte(wanted.Config))}
}

// result is the result for one bundle. It must not be read before ended is closed.
type result struct {
	ended    chan struct{}
	contents readiness.Contents
	err      error
	// used is the time of the last request. The result is cached for idle after that. If idle is 0,
	// it is cached until it is removed.
	used time.Time
	idle time.Duration
}

func (r *result) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// fill adds the contents of bundles to the next versions of each extension, until a version solves
// the problem. It returns the number of bundles that are not rendered yet.
func (r *rendered) fill(ctx context.Context, plan *plan, extensions []*readiness.Extension) int {
	var pending atomic.Int32
	var all sync.WaitGroup
	for _, one := range extensions {
		if len(one.Revisions) == 0 {
			continue // the caller must not see its content
		}
		all.Go(func() {
			if !r.fillOne(ctx, plan, one) {
				pending.Add(1)
			}
		})
	}
	all.Wait()
	return int(pending.Load())
}

// fillOne returns false if a bundle is not rendered yet.
func (r *rendered) fillOne(ctx context.Context, plan *plan, one *readiness.Extension) bool {
	has := plan.settings[one.Name]
	has.Namespace = cmp.Or(has.Namespace, "default")
	left := mostCandidates
	for i := range one.Statement.Next {
		candidate := &one.Statement.Next[i]
		if plan.Excludes(candidate) {
			continue
		}
		if left--; left < 0 {
			break
		}
		if plan.started.Add(1) > mostPlanned {
			candidate.Rendered, candidate.Contents.NotLooked = true, fmt.Sprintf("a plan renders at most %d versions: ask for one extension", mostPlanned)
			break
		}
		found := r.start(ctx, plan.user, &Wanted{Catalog: candidate.Catalog, Image: candidate.Image, Settings: has})
		select {
		case <-found.ended:
		case <-ctx.Done():
			if !found.hasEnded() {
				return false
			}
		}
		if errors.Is(found.err, ErrBusy) {
			return false
		}
		candidate.Rendered, candidate.Contents = true, found.contents
		switch {
		case found.err == nil:
		case plan.mayRead(one.Name):
			candidate.Contents.NotLooked = found.err.Error()
		default:
			candidate.Contents.NotLooked = "it cannot be rendered; users who may get the ClusterExtension see why"
		}
		// An unreachable registry would cause a timeout for each further version.
		if errors.Is(found.err, ErrNotPulled) || plan.Settles(candidate) {
			break
		}
	}
	return true
}

// start renders a bundle, unless its result is cached or being computed.
func (r *rendered) start(ctx context.Context, user string, wanted *Wanted) *result {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := keyOf(wanted)
	if found := r.known[key]; found != nil && (!found.hasEnded() || found.idle == 0 || r.clock.Since(found.used) < found.idle) {
		found.used = r.clock.Now()
		return found
	}
	made := &result{ended: make(chan struct{}), used: r.clock.Now()}
	r.forget()
	if len(r.known) >= r.most {
		made.err = ErrBusy
		close(made.ended)
		return made
	}
	r.known[key] = made
	// The bundle is also for later requests.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mostRendering)
	go func() {
		defer cancel()
		contents, err := r.render(ctx, user, *wanted)
		r.mu.Lock()
		defer r.mu.Unlock()
		made.contents, made.err = contents, err
		close(made.ended)
		forget := func() {
			if r.known[key] == made {
				delete(r.known, key)
			}
		}
		switch {
		case errors.Is(err, ErrBusy):
			forget()
			return
		case err != nil || !strings.Contains(wanted.Image, "@"):
			made.idle = unusedKept
		}
		r.clock.AfterFunc(kept, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			forget()
		})
	}()
	return made
}

// forget removes the least recently used results if the cache is full.
func (r *rendered) forget() {
	if len(r.known) < r.most {
		return
	}
	var ended []key
	for key, one := range r.known {
		if one.hasEnded() {
			ended = append(ended, key)
		}
	}
	slices.SortFunc(ended, func(a, b key) int { return r.known[a].used.Compare(r.known[b].used) })
	for _, key := range ended[:min(len(ended), r.most/4)] {
		delete(r.known, key)
	}
}

// stillRendering adds a message to an answer that is incomplete.
func stillRendering(answer *v1alpha1.UpgradeReadiness, pending int) {
	answer.Pending = int32(pending)
	if pending > 0 {
		answer.Message += fmt.Sprintf("; packages that are not rendered yet: %d, ask again", pending)
	}
}
