package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// mostSteps is how many phases a plan may go through in one pass.
const maxSteps = 10

// visit is one pass over one plan.
type visit struct {
	*reconciler
	*memory
	// Engine is the one of the plan's profile.
	Engine *rollout.Engine
	// own is the definition of the plan, of a profile that users define.
	own  *own
	plan *v1alpha1.ConfigurationPlan
	// stored is status as it is stored.
	stored v1alpha1.ConfigurationPlanStatus
	// observed is the generation that status spoke of when the pass began, speaks the
	// one that it speaks of now.
	observed, speaks int64
	// reason of the phase, where it is not the usual one, and what is to be done.
	reason   string
	outdated bool
	// unhealthy is what operators report against targets of a plan in effect.
	unhealthy string
	facts     profile.Facts
	again     time.Duration
	// moves are the transitions of this pass, for the log.
	moves []string
}

// Reconcile does one pass over a plan:
//
//  1. read it,
//  2. step from phase to phase as far as that goes now,
//  3. write what is known.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	plan := &v1alpha1.ConfigurationPlan{} // its own: Get copies what the cache has
	err := r.Client.Get(ctx, request.NamespacedName, plan)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.forget(ctx, request.Name)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading plan %s: %w", request.Name, err)
	}
	if objectmeta.IsUnreadable(plan) {
		// It keeps its profile, and nothing is done for it. A change of its record
		// brings the next pass.
		return ctrl.Result{}, nil
	}
	v := &visit{
		reconciler: r, memory: r.memoryOf(plan), plan: plan, stored: *plan.Status.DeepCopy(),
		observed: plan.Status.ObservedGeneration, speaks: plan.Generation,
		// Keep the last reported value for anything this pass skips.
		outdated:  meta.IsStatusConditionTrue(plan.Status.Conditions, v1alpha1.ConditionUpgradeAvailable),
		unhealthy: unhealthyBefore(plan.Status),
	}
	err = v.find(ctx)
	if err == nil {
		err = v.tidy(ctx)
	}
	if err == nil {
		err = v.pass(ctx)
	}
	if len(v.moves) > 0 {
		log.FromContext(ctx).V(1).Info("Plan moved", "moves", v.moves)
	}
	if errors.As(err, new(*overtakenError)) {
		// Somebody wrote the plan meanwhile; that write brings another pass.
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, errors.Join(err, v.complain(ctx, err))
	}
	return ctrl.Result{RequeueAfter: v.again}, nil
}

// overtakenError says that somebody wrote the plan since it was read. Any other
// conflict is about something else, and nobody brings another pass.
type overtakenError struct{ err error }

func (e *overtakenError) Error() string { return e.err.Error() }
func (e *overtakenError) Unwrap() error { return e.err }

// quiet is for how long a plan that fails again and again goes on showing the same
// error. Each write brings another pass at once: an error whose text is another one
// each time, as of a connection that names its port, would leave no pause in between.
const quiet = time.Minute

// complain makes an error visible for whoever reads the plan. Of the spec status says
// nothing new: a change of it has yet to be acted on.
func (v *visit) complain(ctx context.Context, why error) error {
	if v.complaint != "" && v.stored.Message == v.complaint && v.Clock.Since(v.complained) < quiet {
		return nil
	}
	v.speaks = v.stored.ObservedGeneration
	v.plan.Status = *v.stored.DeepCopy()
	v.plan.Status.Message, v.reason = governance.Clip(why.Error()), v.reasonBefore()
	err := v.save(ctx)
	if errors.As(err, new(*overtakenError)) {
		return nil
	}
	if err == nil {
		v.complaint, v.complained = v.stored.Message, v.Clock.Now()
	}
	return err
}

// pass steps from phase to phase.
func (v *visit) pass(ctx context.Context) error {
	for range maxSteps {
		before := v.plan.Status.Phase
		if err := v.step(ctx); err != nil {
			return err
		}
		if v.plan.Status.Phase == before {
			break
		}
	}
	if !governance.Active(v.plan.Status.Phase) {
		if err := v.release(ctx); err != nil {
			return err
		}
	}
	return v.save(ctx)
}

// step does what is to be done in a phase.
func (v *visit) step(ctx context.Context) error {
	status := &v.plan.Status
	if v.plan.Spec.Action == v1alpha1.ActionIgnore || v.plan.DeletionTimestamp != nil {
		return v.ignore(ctx)
	}
	if governance.Active(status.Phase) {
		if locked, err := v.lock(ctx); err != nil || locked {
			return err
		}
	}
	switch status.Phase {
	case "", v1alpha1.PhasePending, v1alpha1.PhaseIgnored:
		return v.move(governance.EventDraft, "", "")
	case v1alpha1.PhaseDrafting:
		return v.draft(ctx)
	case v1alpha1.PhaseReviewRequired, v1alpha1.PhaseScheduled:
		return v.review(ctx)
	case v1alpha1.PhaseInProgress:
		return v.execute(ctx)
	case v1alpha1.PhaseCompleted, v1alpha1.PhaseCompletedWithErrors, v1alpha1.PhaseDrifted:
		return v.watch(ctx)
	case v1alpha1.PhasePrerequisiteFailed:
		return v.lacking()
	default: // Failed, Expired
		return v.stopped(ctx)
	}
}

// move takes the plan into the phase that an event leads to, and tells people.
func (v *visit) move(event governance.Event, reason, message string) error {
	status := &v.plan.Status
	next, err := governance.Next(status.Phase, event)
	if err != nil {
		return err
	}
	if next == v1alpha1.PhaseDrafting {
		v.restart("")
	}
	// This decision is for the spec as it is: what fails in the pass
	// that finds the approval stays failed.
	v.observed, v.speaks = v.plan.Generation, v.plan.Generation
	v.moves = append(v.moves, fmt.Sprintf("%s %s %s", cmp.Or(string(status.Phase), string(v1alpha1.PhasePending)), event, next))
	status.Phase, v.reason, v.unhealthy = next, reason, ""
	status.Message = governance.Clip(message)
	return nil
}

// ignore lets go of everything.
func (v *visit) ignore(ctx context.Context) error {
	status := &v.plan.Status
	if status.Phase == v1alpha1.PhaseIgnored {
		return nil
	}
	if status.Phase == v1alpha1.PhaseInProgress {
		if err := v.endRun(ctx, v1alpha1.PhaseIgnored); err != nil {
			return err
		}
	}
	v.restart("")
	status.Approval = nil
	return v.move(governance.EventIgnore, "", "nothing is done or watched; what was applied stays")
}

// lacking waits for what the cluster lacks; it is told when something comes.
func (v *visit) lacking() error {
	facts, err := v.factsNow()
	if err != nil {
		return nil //nolint:nilerr // an unknown state changes nothing
	}
	missing := v.missing(facts)
	if missing == nil || v.changed() && !errors.As(missing, new(*profile.MissingError)) {
		return v.move(governance.EventDraft, "", "")
	}
	v.plan.Status.Message, v.reason = governance.Clip(missing.Error()), governance.ReasonMissingDependency
	return nil
}

// missing says what the plan lacks, from the facts alone.
func (v *visit) missing(facts profile.Facts) error {
	p, found := v.profileOf()
	if !found && v.own != nil {
		return &profile.MissingError{Message: v.own.problem}
	}
	if !found {
		return &profile.MissingError{Message: fmt.Sprintf("this version of Penstock has no profile %s", v.plan.Spec.Profile)}
	}
	if err := profile.Missing(p, facts); err != nil {
		return err
	}
	var lacks *profile.MissingError
	if _, err := p.Items(facts, v.plan.Spec.Options); errors.As(err, &lacks) {
		return lacks
	}
	return nil
}

func (v *visit) profileOf() (profile.Profile, bool) {
	if v.own != nil {
		definition := v.definition()
		return definition, definition != nil
	}
	for _, p := range v.Profiles {
		if p.Name() == v.plan.Spec.Profile {
			return p, true
		}
	}
	return nil, false
}

// stopped waits for a person, and for a profile that was locked.
func (v *visit) stopped(ctx context.Context) error {
	if v.plan.Status.Phase == v.stored.Phase {
		v.reason = v.reasonBefore()
	}
	if v.changed() {
		return v.move(governance.EventDraft, "", "")
	}
	if v.reason == governance.ReasonItemFailed {
		return v.content(ctx)
	}
	if v.reason != governance.ReasonProfileLocked {
		return nil
	}
	if holder, err := v.holder(ctx); err != nil || holder != "" {
		return err
	}
	return v.move(governance.EventDraft, "", "")
}

// changed tells whether spec was changed since the pass before.
func (v *visit) changed() bool { return v.observed != v.plan.Generation }

// reasonBefore is the reason that was told last.
func (v *visit) reasonBefore() string {
	if ready := meta.FindStatusCondition(v.stored.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// restart forgets what the engine knows of the plan's targets, unless it is about
// the same work.
func (v *visit) restart(work string) {
	if v.work == work && work != "" {
		return
	}
	if v.holds {
		v.Engine.Forget(string(v.plan.Spec.Profile))
	}
	v.work, v.pausedSince = work, time.Time{}
	v.inventory.Entries, v.inventory.Reached = nil, nil
}

// soon asks for another pass.
func (v *visit) soon(d time.Duration) {
	if d > 0 && (v.again == 0 || d < v.again) {
		v.again = d
	}
}

// save writes status when it says something else than what is stored.
func (v *visit) save(ctx context.Context) error {
	status := &v.plan.Status
	status.ObservedGeneration = v.speaks
	if !governance.Awaits(status.Phase) {
		status.Window = nil
	}
	if status.Phase == "" {
		status.Phase = v1alpha1.PhasePending
	}
	for _, condition := range governance.Conditions(governance.Situation{
		Phase: status.Phase, Reason: v.reason, Message: status.Message, Outdated: v.outdated, Restored: v.plan.Spec.RestoreRun != 0, Unhealthy: v.unhealthy,
	}) {
		condition.ObservedGeneration = v.speaks
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	if apiequality.Semantic.DeepEqual(*status, v.stored) {
		return nil
	}
	moved, before := status.Phase != v.stored.Phase, unhealthyBefore(v.stored)
	// A copy: what is decoded into it must not change what others point to.
	written := v.plan.DeepCopy()
	err := v.Client.Status().Update(ctx, written)
	if apierrors.IsConflict(err) {
		return &overtakenError{fmt.Errorf("writing status of plan %s: %w", v.plan.Name, err)}
	}
	if err != nil {
		return fmt.Errorf("writing status of plan %s: %w", v.plan.Name, err)
	}
	v.plan.ResourceVersion = written.ResourceVersion
	v.stored = *v.plan.Status.DeepCopy()
	v.healthEvent(before)
	if moved {
		stalled := meta.IsStatusConditionTrue(v.stored.Conditions, v1alpha1.ConditionStalled)
		v.event(v.plan, stalled, string(v.stored.Phase), cmp.Or(v.stored.Message, "the plan is "+string(v.stored.Phase)))
	}
	return nil
}

// now is the time in the resolution of the API.
func (r *reconciler) now() metav1.Time { return metav1.NewTime(r.Clock.Now().Truncate(time.Second)) }
