package live

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
	"github.com/penstock-project/penstock/pkg/rollout/cause/gather"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// readsAtOnce bounds the concurrent reads for one answer.
const readsAtOnce = 16

// ObjectReader reads objects. *targetclient.Client implements it.
type ObjectReader interface {
	gather.Lister
	// Read and ReadMetadata return NotFound, or NoMatch for a kind that is not served.
	Read(ctx context.Context, ref manifest.Ref) (*unstructured.Unstructured, error)
	ReadMetadata(ctx context.Context, ref manifest.Ref) (*metav1.PartialObjectMetadata, error)
}

// inquiry is one request for the state of a revision's objects.
type inquiry struct {
	*Live
	caller   user.Info
	reviews  *accessReviews
	revision *olm.ClusterExtensionRevision
	work     rollout.Work
	// steps are the objects in rollout order. seen holds the findings for each object.
	steps []phased
	seen  []objectView
	gates map[manifest.ID][]probe.Probe
	// budget limits the cost of probes from users. mu guards it.
	mu     sync.Mutex
	budget *probe.CostBudget
}

// phased is an object with its phase.
type phased struct {
	manifest.Ref
	phase      string
	createOnly bool
}

// Objects returns the current state of a revision's objects:
//
//  1. Find the objects of the revision.
//  2. Wait for a place in the queue.
//  3. Find the objects that the caller may get.
//  4. Read these and run their probes.
//  5. Find the causes of unready objects, and the last repairs.
//
// Objects that the caller cannot get are counted and not read. A failure of any step is an error,
// except in step 5 and for single objects that cannot be read.
func (l *Live) Objects(ctx context.Context, revision *olm.ClusterExtensionRevision) (*v1alpha1.RevisionObjects, error) {
	const what = "how the objects are"
	caller, ok := request.UserFrom(ctx)
	if !ok || l.deps.Objects == nil {
		return nil, l.answerFor(ctx, what, &rightsError{"nobody asks, or nobody can look"})
	}
	work, _, err := l.work(ctx, revision)
	if err != nil {
		return nil, err
	}
	leave, err := l.queue.enter(ctx, len(steps(work)))
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, l.deps.Timeout)
	defer cancel()
	i := &inquiry{
		Live: l, caller: caller, revision: revision, work: work, gates: gates(work), budget: probe.NewCostBudget(probe.MaxCELCost),
		reviews: &accessReviews{authorizer: l.deps.Authorizer, kinds: l.deps.Kinds, caller: caller},
	}
	answer, err := i.answer(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, l.answerFor(ctx, what, err)
	}
	return answer, nil
}

// steps returns the objects of the revision's layer, each once.
func steps(work rollout.Work) []phased {
	var out []phased
	for _, stg := range work.Layers[0].Stages {
		for _, step := range stg.Steps {
			out = append(out, phased{step.Ref, stg.Phase, step.Policy.CreateOnly})
		}
	}
	return out
}

// gates returns the probes of each object.
func gates(work rollout.Work) map[manifest.ID][]probe.Probe {
	all := map[manifest.ID][]probe.Probe{}
	for _, stg := range work.Layers[0].Stages {
		for _, gate := range stg.Gates {
			all[gate.ID] = append(all[gate.ID], gate.Probe)
		}
	}
	return all
}

func (i *inquiry) answer(ctx context.Context) (*v1alpha1.RevisionObjects, error) {
	all := steps(i.work)
	visible, err := i.visible(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, n := range visible {
		i.steps = append(i.steps, all[n])
	}
	out := &v1alpha1.RevisionObjects{
		ObjectMeta: metav1.ObjectMeta{Name: i.revision.Name}, Objects: make([]v1alpha1.RevisionObjectStatus, len(i.steps)), Withheld: int32(len(all) - len(visible)),
	}
	if err := i.read(ctx); err != nil {
		return nil, err
	}
	for n, step := range i.steps {
		state, reason, message := i.seen[n].state()
		out.Objects[n] = v1alpha1.RevisionObjectStatus{
			Phase: step.phase, APIVersion: step.APIVersion(), Kind: step.Kind, Namespace: step.Namespace, Name: step.Name,
			State: state, Reason: reason, Message: message,
		}
		if seen := &i.seen[n]; seen.exists {
			out.Objects[n].CreatedAt = &seen.created
		}
	}
	i.explain(ctx, out.Objects)
	i.repairs(out.Objects)
	return out, nil
}

// visible returns the indices of the objects that the caller may get.
func (i *inquiry) visible(ctx context.Context, all []phased) ([]int, error) {
	subjects, indices := make([]preview.Subject, len(all)), make([]int, len(all))
	for n := range all {
		subjects[n], indices[n] = preview.Subject{Ref: all[n].Ref}, n
	}
	scopes, err := i.reviews.scopes(ctx, subjects, indices)
	if err != nil {
		return nil, err
	}
	return i.reviews.may(ctx, "get", subjects, scopes, indices)
}

// read reads the objects, with a limit on concurrent reads.
func (i *inquiry) read(ctx context.Context) error {
	failing := map[manifest.ID]*olm.ObjectFailure{}
	for p := range i.revision.Status.Phases {
		for f := range i.revision.Status.Phases[p].Failing {
			failure := &i.revision.Status.Phases[p].Failing[f]
			kind := schema.FromAPIVersionAndKind(failure.APIVersion, failure.Kind)
			failing[manifest.ID{Group: kind.Group, Kind: kind.Kind, Namespace: failure.Namespace, Name: failure.Name}] = failure
		}
	}
	i.seen = make([]objectView, len(i.steps))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for n, step := range i.steps {
		i.seen[n] = objectView{
			number: i.revision.Spec.Revision, layer: i.revision.IsLayer(), createOnly: step.createOnly,
			entry: i.work.Inventory.Entry(step.ID), failing: failing[step.ID], verdict: probe.Verdict{Status: probe.True},
		}
		group.Go(func() error { return i.readOne(ctx, step, &i.seen[n]) })
	}
	return group.Wait()
}

// readOne reads the parts of an object that its probes need. It reads only the metadata of Secrets,
// and of objects that no probe reads. It returns an error only if no answer is possible.
func (i *inquiry) readOne(ctx context.Context, step phased, seen *objectView) error {
	probes := i.gates[step.ID]
	if webhooks := cause.IsWebhookConfiguration(step.ID); step.IsSecret() || len(probes) == 0 && !webhooks {
		partial, err := i.deps.Objects.ReadMetadata(ctx, step.Ref)
		if err == nil {
			seen.found(partial)
		}
		return seen.failed(err)
	}
	live, err := i.deps.Objects.Read(ctx, step.Ref)
	if err != nil {
		return seen.failed(err)
	}
	seen.found(live)
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, p := range probes {
		if verdict := i.judge(ctx, step.ID, live, p); verdict.Status != probe.True {
			seen.verdict = verdict
			break
		}
	}
	if seen.verdict.Status != probe.True || cause.IsWebhookConfiguration(step.ID) {
		seen.live = live // to find its cause
	}
	return nil
}

// found records the facts about an existing object.
func (s *objectView) found(object metav1.Object) {
	s.exists, s.uid, s.created, s.deleting = true, object.GetUID(), object.GetCreationTimestamp(), object.GetDeletionTimestamp() != nil
}

// failed records why an object could not be read. Not Found is a finding. A missing right or an
// overloaded server is returned as an error.
func (s *objectView) failed(err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err):
		return err
	}
	s.unread = err
	return nil
}

// judge runs a probe on an object, and redacts its message.
func (i *inquiry) judge(ctx context.Context, id manifest.ID, live *unstructured.Unstructured, p probe.Probe) probe.Verdict {
	ask := p.Probe
	if metered, ok := p.(probe.Metered); ok {
		ask = func(o *unstructured.Unstructured) probe.Verdict { return metered.ProbeWithin(ctx, o, i.budget) }
	}
	verdict := ask(live)
	kind := id.GroupKind()
	if verdict.Status == probe.True || len(i.deps.Redactor.Mask(kind)) == 0 {
		return verdict
	}
	shown := ask(&unstructured.Unstructured{Object: i.deps.Redactor.Object(kind, live.Object)})
	verdict.Message = i.deps.Redactor.Values(kind, live.Object).Mask(shown.Message)
	if shown.Status != verdict.Status {
		verdict.Message = "does not pass its probe; why depends on a hidden field"
	}
	return verdict
}

// unready returns the indices of the first objects that are not ready, up to most.
func unready(objects []v1alpha1.RevisionObjectStatus, most int) []int {
	var indices []int
	for n := range objects {
		if objects[n].State == v1alpha1.ObjectStateUnready {
			indices = append(indices, n)
		}
	}
	return indices[:min(most, len(indices))]
}
