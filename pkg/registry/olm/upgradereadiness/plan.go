package upgradereadiness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/readiness"
)

const (
	// mostWaited is how long a plan waits for packages that are pulled and rendered.
	mostWaited = 20 * time.Second
	// mostRendering bounds one package.
	mostRendering = 5 * time.Minute
	// mostKept bounds the packages that are kept, and those that wait.
	mostKept = 2000
	// mostCandidates bounds the versions of one extension, the lowest first.
	mostCandidates = 8
	// failureKept is how long a package that could not be rendered is not tried again.
	failureKept = time.Minute
)

// Render pulls and renders the package of a version, as an extension would have it in a version of
// Kubernetes. A user waits for others in the pool of images.
type Render func(ctx context.Context, user string, wanted Wanted) (readiness.Contents, error)

// Wanted is one package.
type Wanted struct {
	// Image of the package, and the extension that would have it.
	Image, Extension string
	Settings
	// Kubernetes is the version that charts are rendered for, such as 1.38.0.
	Kubernetes string
}

// Settings are what an extension is rendered with.
type Settings struct {
	// Namespace is where its objects are, and Config its configuration as JSON.
	Namespace, Config string
}

// PlanREST serves the subresource plan: the same answer, with the packages of the versions that follow
// pulled and rendered. A package that takes longer than a request goes on: the next request has it.
type PlanREST struct {
	*REST
	rendered *rendered
}

// NewPlanREST returns the subresource.
func NewPlanREST(main *REST) *PlanREST {
	return &PlanREST{REST: main, rendered: &rendered{render: main.deps.Render, known: map[Wanted]*result{}, now: time.Now}}
}

// Get answers for the version in the name.
func (r *PlanREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, mostWaited+mostWaited/2)
	defer cancel()
	wait, end := context.WithTimeout(ctx, mostWaited)
	defer end()
	settings := map[string]Settings{}
	if r.deps.Extensions != nil {
		var err error
		if settings, err = r.deps.Extensions(ctx); err != nil {
			return nil, apierrors.NewServiceUnavailable("the ClusterExtensions cannot be listed: " + err.Error())
		}
	}
	return r.answer(ctx, name, options, func(user string, target readiness.Target, extensions []*readiness.Extension) int {
		return r.rendered.fill(wait, user, target, extensions, settings)
	})
}

// rendered keeps what packages have, by image: those of catalogs are named by digest.
type rendered struct {
	render Render
	now    func() time.Time

	mu    sync.Mutex
	known map[Wanted]*result
}

// result is one package. It must not be read before ended is closed.
type result struct {
	ended    chan struct{}
	contents readiness.Contents
	err      error
	at       time.Time
}

// errTooMany says that the packages have to wait for others.
var errTooMany = errors.New("too many packages wait to be rendered: ask again")

// fill gives the versions that follow what their packages have. It returns how many are not rendered yet.
func (r *rendered) fill(ctx context.Context, user string, target readiness.Target, extensions []*readiness.Extension, settings map[string]Settings) (pending int) {
	type one struct {
		candidate *readiness.Candidate
		result    *result
	}
	var all []one
	for _, extension := range extensions {
		if len(extension.Revisions) == 0 {
			continue // its content is not for this caller
		}
		has := settings[extension.Name]
		has.Namespace = cmp.Or(has.Namespace, "default")
		left := mostCandidates
		for i := range extension.Statement.Next {
			candidate := &extension.Statement.Next[i]
			if candidate.Excluded(target) || left == 0 {
				continue
			}
			left--
			wanted := Wanted{Image: candidate.Image, Extension: extension.Name, Settings: has, Kubernetes: target.Kubernetes.String()}
			all = append(all, one{candidate, r.start(ctx, user, wanted)})
		}
	}
	for _, each := range all {
		select {
		case <-each.result.ended:
			each.candidate.Contents = each.result.contents
			if each.result.err != nil {
				each.candidate.Contents.NotLooked = each.result.err.Error()
			}
			each.candidate.Rendered = true
		case <-ctx.Done():
			pending++
		}
	}
	return pending
}

// start renders a package, unless it is known or on its way.
func (r *rendered) start(ctx context.Context, user string, wanted Wanted) *result {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.known[wanted]; found != nil {
		select {
		case <-found.ended:
			if found.err == nil && strings.Contains(wanted.Image, "@") || r.now().Sub(found.at) < failureKept {
				return found
			}
		default:
			return found
		}
	}
	made := &result{ended: make(chan struct{})}
	if len(r.known) >= mostKept {
		r.forget()
	}
	if len(r.known) >= mostKept {
		made.err = errTooMany
		close(made.ended)
		return made
	}
	r.known[wanted] = made
	// The package is for whoever asks next, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mostRendering)
	go func() {
		defer cancel()
		contents, err := r.render(ctx, user, wanted)
		r.mu.Lock()
		defer r.mu.Unlock()
		made.contents, made.err, made.at = contents, err, r.now()
		close(made.ended)
	}()
	return made
}

// forget drops all that has ended.
func (r *rendered) forget() {
	for wanted, one := range r.known {
		select {
		case <-one.ended:
			delete(r.known, wanted)
		default:
		}
	}
}

// stillRendering says that a plan is not whole.
func stillRendering(answer *olm.UpgradeReadiness, pending int) {
	answer.Pending = int32(pending)
	if pending > 0 {
		answer.Message += fmt.Sprintf("; packages that are not rendered yet: %d, ask again", pending)
	}
}
