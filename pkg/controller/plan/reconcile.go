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

// maxSteps bounds the phases of a plan in one pass.
const maxSteps = 10

type scope struct {
	*reconciler
	*memory
	// Engine is the engine of the plan's profile.
	Engine *rollout.Engine
	// own is the definition of the plan, for a profile that users define.
	own    *own
	plan   *v1alpha1.ConfigurationPlan
	stored v1alpha1.ConfigurationPlanStatus
	// observed is the observed generation when the pass began; speaks is the generation that the
	// new status observes.
	observed, speaks int64
	// reason is the reason of the phase, if not the default, and message the required action.
	reason   string
	outdated bool
	// unhealthy holds the problems that operators report about targets of a plan in effect.
	unhealthy string
	facts     profile.Facts
	again     time.Duration
	// moves holds the transitions of this pass, for the log.
	moves []string
}

// Reconcile does one pass over a plan:
//
//  1. It reads the plan.
//  2. It steps from phase to phase as far as possible now.
//  3. It writes the status.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	plan := &v1alpha1.ConfigurationPlan{} // a private copy: Get copies the cached object
	err := r.Client.Get(ctx, request.NamespacedName, plan)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.forget(ctx, request.Name)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading plan %s: %w", request.Name, err)
	}
	if objectmeta.IsUnreadable(plan) {
		// The plan keeps its profile, but is not processed. A change of its record causes the next
		// pass.
		return ctrl.Result{}, nil
	}
	v := &scope{
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
		// Another writer changed the plan, and that write causes another pass.
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, errors.Join(err, v.complain(ctx, err))
	}
	return ctrl.Result{RequeueAfter: v.again}, nil
}

// overtakenError reports that the plan was written after it was read. A watch event then causes
// another pass, which no other conflict does.
type overtakenError struct{ err error }

func (e *overtakenError) Error() string { return e.err.Error() }
func (e *overtakenError) Unwrap() error { return e.err }

// quiet is how long a plan that fails repeatedly keeps showing the same error. Each write causes
// another pass at once. An error whose text always differs, such as one with a port, would
// otherwise cause passes without a pause.
const quiet = time.Minute

// complain shows an error in the status of the plan. It keeps the observed generation, because a
// change of spec has not been handled yet.
func (s *scope) complain(ctx context.Context, why error) error {
	if s.complaint != "" && s.stored.Message == s.complaint && s.Clock.Since(s.complained) < quiet {
		return nil
	}
	s.speaks = s.stored.ObservedGeneration
	s.plan.Status = *s.stored.DeepCopy()
	s.plan.Status.Message, s.reason = governance.Clip(why.Error()), s.reasonBefore()
	err := s.save(ctx)
	if errors.As(err, new(*overtakenError)) {
		return nil
	}
	if err == nil {
		s.complaint, s.complained = s.stored.Message, s.Clock.Now()
	}
	return err
}

func (s *scope) pass(ctx context.Context) error {
	for range maxSteps {
		before := s.plan.Status.Phase
		if err := s.step(ctx); err != nil {
			return err
		}
		if s.plan.Status.Phase == before {
			break
		}
	}
	if !governance.Active(s.plan.Status.Phase) {
		if err := s.release(ctx); err != nil {
			return err
		}
	}
	return s.save(ctx)
}

func (s *scope) step(ctx context.Context) error {
	status := &s.plan.Status
	if s.plan.Spec.Action == v1alpha1.ActionIgnore || s.plan.DeletionTimestamp != nil {
		return s.ignore(ctx)
	}
	if governance.Active(status.Phase) {
		if locked, err := s.lock(ctx); err != nil || locked {
			return err
		}
	}
	switch status.Phase {
	case "", v1alpha1.PhasePending, v1alpha1.PhaseIgnored:
		return s.move(governance.EventDraft, "", "")
	case v1alpha1.PhaseDrafting:
		return s.draft(ctx)
	case v1alpha1.PhaseReviewRequired, v1alpha1.PhaseScheduled:
		return s.review(ctx)
	case v1alpha1.PhaseInProgress:
		return s.execute(ctx)
	case v1alpha1.PhaseCompleted, v1alpha1.PhaseCompletedWithErrors, v1alpha1.PhaseDrifted:
		return s.watch(ctx)
	case v1alpha1.PhasePrerequisiteFailed:
		return s.lacking()
	default: // Failed, Expired
		return s.stopped(ctx)
	}
}

// move moves the plan into the phase after an event, and records an event for users.
func (s *scope) move(event governance.Event, reason, message string) error {
	status := &s.plan.Status
	next, err := governance.Next(status.Phase, event)
	if err != nil {
		return err
	}
	if next == v1alpha1.PhaseDrafting {
		s.restart("")
	}
	// This decision is about the present spec: if the pass that finds the approval fails, the plan
	// stays failed.
	s.observed, s.speaks = s.plan.Generation, s.plan.Generation
	s.moves = append(s.moves, fmt.Sprintf("%s %s %s", cmp.Or(string(status.Phase), string(v1alpha1.PhasePending)), event, next))
	status.Phase, s.reason, s.unhealthy = next, reason, ""
	status.Message = governance.Clip(message)
	return nil
}

func (s *scope) ignore(ctx context.Context) error {
	status := &s.plan.Status
	if status.Phase == v1alpha1.PhaseIgnored {
		return nil
	}
	if status.Phase == v1alpha1.PhaseInProgress {
		if err := s.endRun(ctx, v1alpha1.PhaseIgnored); err != nil {
			return err
		}
	}
	s.restart("")
	status.Approval = nil
	return s.move(governance.EventIgnore, "", "nothing is done or watched; what was applied stays")
}

// lacking waits for missing requirements. The watch of facts reports their arrival.
func (s *scope) lacking() error {
	facts, err := s.factsNow()
	if err != nil {
		return nil //nolint:nilerr // an unknown state changes nothing
	}
	missing := s.missing(facts)
	if missing == nil || s.changed() && !errors.As(missing, new(*profile.MissingError)) {
		return s.move(governance.EventDraft, "", "")
	}
	s.plan.Status.Message, s.reason = governance.Clip(missing.Error()), governance.ReasonMissingDependency
	return nil
}

// missing returns the unmet requirements of the plan, from the facts alone.
func (s *scope) missing(facts profile.Facts) error {
	p, found := s.profileOf()
	if !found && s.own != nil {
		return &profile.MissingError{Message: s.own.problem}
	}
	if !found {
		return &profile.MissingError{Message: fmt.Sprintf("this version of Penstock has no profile %s", s.plan.Spec.Profile)}
	}
	if err := profile.Missing(p, facts); err != nil {
		return err
	}
	var lacks *profile.MissingError
	if _, err := p.Items(facts, s.plan.Spec.Options); errors.As(err, &lacks) {
		return lacks
	}
	return nil
}

func (s *scope) profileOf() (profile.Profile, bool) {
	if s.own != nil {
		definition := s.definition()
		return definition, definition != nil
	}
	for _, p := range s.Profiles {
		if p.Name() == s.plan.Spec.Profile {
			return p, true
		}
	}
	return nil, false
}

// stopped waits for a user, or for the release of the profile.
func (s *scope) stopped(ctx context.Context) error {
	if s.plan.Status.Phase == s.stored.Phase {
		s.reason = s.reasonBefore()
	}
	if s.changed() {
		return s.move(governance.EventDraft, "", "")
	}
	if s.reason == governance.ReasonItemFailed {
		return s.content(ctx)
	}
	if s.reason != governance.ReasonProfileLocked {
		return nil
	}
	if holder, err := s.holder(ctx); err != nil || holder != "" {
		return err
	}
	return s.move(governance.EventDraft, "", "")
}

func (s *scope) changed() bool { return s.observed != s.plan.Generation }

func (s *scope) reasonBefore() string {
	if ready := meta.FindStatusCondition(s.stored.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// restart drops the engine's state about the plan's targets, unless it belongs to the same work.
func (s *scope) restart(work string) {
	if s.work == work && work != "" {
		return
	}
	if s.holds {
		s.Engine.Forget(string(s.plan.Spec.Profile))
	}
	s.work, s.pausedSince = work, time.Time{}
	s.inventory.Entries, s.inventory.Reached = nil, nil
}

func (s *scope) soon(d time.Duration) {
	if d > 0 && (s.again == 0 || d < s.again) {
		s.again = d
	}
}

func (s *scope) save(ctx context.Context) error {
	status := &s.plan.Status
	status.ObservedGeneration = s.speaks
	if !governance.Awaits(status.Phase) {
		status.Window = nil
	}
	if status.Phase == "" {
		status.Phase = v1alpha1.PhasePending
	}
	for _, condition := range governance.Conditions(governance.Situation{
		Phase: status.Phase, Reason: s.reason, Message: status.Message, Outdated: s.outdated, Restored: s.plan.Spec.RestoreRun != 0, Unhealthy: s.unhealthy,
	}) {
		condition.ObservedGeneration = s.speaks
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	if apiequality.Semantic.DeepEqual(*status, s.stored) {
		return nil
	}
	moved, before := status.Phase != s.stored.Phase, unhealthyBefore(s.stored)
	// A copy, because decoding must not change values that other objects share.
	written := s.plan.DeepCopy()
	err := s.Client.Status().Update(ctx, written)
	if apierrors.IsConflict(err) {
		return &overtakenError{fmt.Errorf("writing status of plan %s: %w", s.plan.Name, err)}
	}
	if err != nil {
		return fmt.Errorf("writing status of plan %s: %w", s.plan.Name, err)
	}
	s.plan.ResourceVersion = written.ResourceVersion
	s.stored = *s.plan.Status.DeepCopy()
	s.healthEvent(before)
	if moved {
		stalled := meta.IsStatusConditionTrue(s.stored.Conditions, v1alpha1.ConditionStalled)
		s.event(s.plan, stalled, string(s.stored.Phase), cmp.Or(s.stored.Message, "the plan is "+string(s.stored.Phase)))
	}
	return nil
}

// now returns the time in the resolution of the API.
func (r *reconciler) now() metav1.Time { return metav1.NewTime(r.Clock.Now().Truncate(time.Second)) }
