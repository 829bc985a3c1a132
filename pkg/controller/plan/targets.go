package plan

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// targetsPrefix begins the owner name for the watches of a profile's targets. They are watched
// whole and by name, from the first draft until the plan is inactive. The engine's own interests
// change with its work; these keep the watches open.
const targetsPrefix = "targets of "

func targetsOf(name v1alpha1.ProfileName) string { return targetsPrefix + string(name) }

// follow watches targets. It reports whether all of them are seen, or never can be.
func (s *scope) follow(refs []manifest.Ref) bool {
	interests := make([]observe.Interest, len(refs))
	for i, ref := range refs {
		interests[i] = observe.Interest{ID: ref.ID, Version: ref.Version, ByName: true, Reads: probe.Reads{Whole: true}}
	}
	observer := s.Engine.Observer
	observer.Want(targetsOf(s.plan.Spec.Profile), interests...)
	for _, ref := range refs {
		if _, presence := watchedTarget(observer, ref.ID); presence == observe.Unknown && observer.Trouble(ref.ID) == nil {
			return false
		}
	}
	return true
}

func (s *scope) followItems() bool {
	refs := make([]manifest.Ref, len(s.plan.Status.Items))
	for i, item := range s.plan.Status.Items {
		refs[i] = refOf(item)
	}
	return s.follow(refs)
}

// watchedTarget returns a watched target. An object that is not kept whole is Unknown. The object
// lacks the annotation in which kubectl apply stores its manifest.
func watchedTarget(observer rollout.Observer, id manifest.ID) (*unstructured.Unstructured, observe.Presence) {
	seen, presence := observer.Get(id)
	if presence != observe.Present {
		return nil, presence
	}
	if seen.Object == nil || seen.Kept == nil || !seen.Kept.Whole || seen.Managed == nil {
		return nil, observe.Unknown
	}
	live := seen.Object.DeepCopy()
	live.SetManagedFields(seen.Managed)
	return live, observe.Present
}

// watchedReader makes a preview read watched objects, so that each target costs a dry-run and no
// read. A dry-run has the resourceVersion of the object as its precondition. If the object has
// changed, the preview repeats with a read from the cluster.
type watchedReader struct {
	rollout.Reader
	trier    rollout.Trier
	observer rollout.Observer

	mu    sync.Mutex
	asked map[manifest.ID]bool
}

var (
	_ rollout.Reader = &watchedReader{}
	_ rollout.Trier  = &watchedReader{}
)

// Read returns the watched object. A second read of the same object reads from the cluster.
func (s *watchedReader) Read(ctx context.Context, ref manifest.Ref) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	again := s.asked[ref.ID]
	s.asked[ref.ID] = true
	s.mu.Unlock()
	live, presence := watchedTarget(s.observer, ref.ID)
	switch {
	case again || presence == observe.Unknown:
		return s.Reader.Read(ctx, ref)
	case presence == observe.Absent:
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: ref.Group, Resource: ref.Kind}, ref.Name)
	default:
		return live, nil
	}
}

// Try returns a conflict if the object exists but the watch has not shown it yet. The dry-run of a
// create has no precondition that would detect the object. But only the result for an existing
// object has a resourceVersion.
func (s *watchedReader) Try(ctx context.Context, ref manifest.Ref, body []byte, options targetclient.TryOptions) (*unstructured.Unstructured, error) {
	tried, err := s.trier.Try(ctx, ref, body, options)
	if err == nil && options.Precondition == (targetclient.Precondition{}) && tried.GetResourceVersion() != "" {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: ref.Group, Resource: ref.Kind}, ref.Name, errors.New("it exists by now"))
	}
	return tried, err
}

func (s *scope) previewer() *preview.Previewer {
	engine := s.Engine.Options
	watched := &watchedReader{Reader: engine.Reader, trier: engine.Trier, observer: engine.Observer, asked: map[manifest.ID]bool{}}
	return preview.New(preview.Options{Reader: watched, Trier: watched, Names: engine.Names, Parallel: engine.Parallel})
}

// trial is the cluster's answer about a target, with the inputs on which it depends.
type trial struct {
	digest manifest.Digest
	// delete is true if the target must be deleted. Then digest is the digest of its earlier
	// content.
	delete bool
	// presence and version describe the target. definition is the generation of its
	// CustomResourceDefinition.
	presence   observe.Presence
	version    string
	definition int64
	said       preview.Item
}

func (t trial) same(other trial) bool {
	return t.digest == other.digest && t.delete == other.delete && t.presence == other.presence &&
		t.version == other.version && t.definition == other.definition
}

// preview returns the results of dry-runs of the targets. An accepted dry-run of the same manifest
// on the same object is cached. A refused dry-run is repeated.
func (s *scope) preview(ctx context.Context, targets []wanted) (map[manifest.ID]preview.Item, error) {
	said, trials := map[manifest.ID]preview.Item{}, map[manifest.ID]trial{}
	var open []wanted
	for _, target := range targets {
		now := s.trialOf(target)
		if before, known := s.trials[target.object.ID]; known && now.presence != observe.Unknown && before.same(now) {
			said[target.object.ID], trials[target.object.ID] = before.said, before
			continue
		}
		trials[target.object.ID] = now
		open = append(open, target)
	}
	if len(open) > 0 {
		work, err := s.worked(open)
		if err != nil {
			return nil, err
		}
		found, err := s.previewer().Preview(ctx, work, nil)
		if err != nil {
			return nil, err
		}
		for _, item := range found.Items {
			said[item.ID] = item
			tried := trials[item.ID]
			tried.said = item
			if trials[item.ID] = tried; item.Failure != nil || item.Action == rollout.Deferred {
				delete(trials, item.ID)
			}
		}
	}
	s.trials = trials
	return said, nil
}

func (s *scope) trialOf(target wanted) trial {
	seen, presence := s.Engine.Observer.Get(target.object.ID)
	now := trial{digest: target.object.Digest, delete: target.delete, presence: presence}
	if presence == observe.Present {
		now.version = string(seen.UID) + "/" + seen.ResourceVersion
	}
	if p, found := s.profileOf(); found {
		for _, requirement := range p.Requires() {
			if requirement.Kind == target.object.GroupKind() {
				now.definition = s.facts.Definitions[requirement.Definition].Generation
			}
		}
	}
	return now
}
