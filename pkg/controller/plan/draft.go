package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

type wanted struct {
	profile.Item
	object manifest.Object
	delete bool
}

// draft computes the plan:
//
//  1. It reads the facts, and checks the requirements.
//  2. It computes the desired state of every target.
//  3. It asks the cluster for the result by dry-run. The answer decides; Penstock does not
//     compare objects itself.
//  4. It stores the plan for review, unless it changes nothing.
func (s *scope) draft(ctx context.Context) error {
	facts, err := s.factsNow()
	if err != nil {
		s.plan.Status.Message = governance.Clip("waiting for the facts of the cluster: " + err.Error())
		return nil
	}
	if missing := s.missing(facts); missing != nil {
		return s.move(governance.EventMissing, governance.ReasonMissingDependency, missing.Error())
	}
	targets, err := s.wanted(ctx, facts)
	var lacks *profile.MissingError
	switch {
	case errors.As(err, &lacks):
		return s.move(governance.EventMissing, governance.ReasonMissingDependency, lacks.Message)
	case err != nil:
		return s.move(governance.EventRefused, governance.ReasonPlanRefused, "the plan cannot be computed: "+err.Error())
	}
	if _, err := s.worked(targets); err != nil {
		return s.move(governance.EventRefused, governance.ReasonPlanRefused, "the plan cannot be computed: "+err.Error())
	}
	s.facts = facts
	refs := make([]manifest.Ref, len(targets))
	for i, target := range targets {
		refs[i] = target.object.Ref
	}
	if !s.follow(refs) {
		s.plan.Status.Message = "waiting to see the targets"
		return nil
	}
	found, err := s.preview(ctx, targets)
	if err != nil {
		return fmt.Errorf("asking the cluster what the plan would do: %w", err)
	}
	return s.conclude(ctx, targets, found)
}

// wanted returns the desired state of every target, as manifests.
func (s *scope) wanted(ctx context.Context, facts profile.Facts) ([]wanted, error) {
	if s.plan.Spec.RestoreRun != 0 {
		return s.restored(ctx)
	}
	p, _ := s.profileOf()
	items, err := p.Items(facts, s.plan.Spec.Options)
	if err != nil {
		return nil, err
	}
	targets := make([]wanted, 0, len(items))
	for _, item := range items {
		if err := s.expressions.Check(item.Waits); err != nil {
			return nil, fmt.Errorf("item %s: %w", item.Name, err)
		}
		one, err := s.sealed(item)
		if err != nil {
			return nil, err
		}
		targets = append(targets, one)
	}
	return targets, nil
}

// sealed makes a manifest of an item, with an annotation that names the governing plan.
func (s *scope) sealed(item profile.Item) (wanted, error) {
	made, err := governance.Marked(item, s.plan.Name)
	return wanted{Item: item, object: made}, err
}

// worked returns the engine's work for some targets, with one stage for each.
func (s *scope) worked(targets []wanted) (rollout.Work, error) {
	manifests := planwork.Bodies{}
	var phases []stage.Phase
	for _, target := range targets {
		manifests[target.object.Digest] = target.object.JSON
		step := stage.Step{Ref: target.object.Ref, Policy: stage.Policy{Own: stage.Shared, Delete: target.delete}}
		phases = append(phases, stage.Phase{Name: target.Name, Steps: []stage.Step{step}})
	}
	stages, err := stage.Compile(phases, stage.Options{Probes: probe.Builtin()})
	if err != nil {
		return rollout.Work{}, err
	}
	return rollout.Work{
		Owner: string(s.plan.Spec.Profile), Bodies: manifests,
		Layers: []rollout.Layer{{Key: "draft", Revision: 1, Stages: stages}},
	}, nil
}

func (s *scope) conclude(ctx context.Context, targets []wanted, found map[manifest.ID]preview.Item) error {
	status := &s.plan.Status
	var items []v1alpha1.PlanItem
	var refused []string
	var before, after []manifest.Object
	for _, target := range targets {
		seen := found[target.object.ID]
		if seen.Failure != nil && seen.Failure.Reason == rollout.ReasonNotServed {
			return fmt.Errorf("item %s: %s", target.Name, seen.Failure.Message)
		}
		item, live, err := s.item(ctx, target, seen)
		if err != nil {
			return err
		}
		if item.Message != "" {
			refused = append(refused, fmt.Sprintf("item %s: %s", item.Name, item.Message))
		}
		if err := s.markReclaimed(ctx, &item, live); err != nil {
			return err
		}
		if live != nil {
			before = append(before, *live)
		}
		after = append(after, target.object)
		items = append(items, item)
	}
	if err := s.keep(ctx, before, after); err != nil {
		return err
	}
	if err := s.pin(ctx); err != nil {
		return err
	}
	s.describe(items)
	switch changes := slices.ContainsFunc(items, func(i v1alpha1.PlanItem) bool { return i.Action != v1alpha1.ItemNone }); {
	case len(refused) > 0:
		return s.move(governance.EventRefused, governance.ReasonPlanRefused, "the cluster refuses the plan: "+strings.Join(refused, "; "))
	case !changes:
		for i := range status.Items {
			s.settle(&status.Items[i], v1alpha1.ItemSkipped, "it is as it should be already")
		}
		if approval := status.Approval; approval != nil && approval.PlanHash == "" {
			approval.PlanHash = status.PlanHash // the first plan changes nothing and needs no run
		}
		message := "everything is already as the plan says"
		if run := s.plan.Spec.RestoreRun; run != 0 {
			message = governance.Restored(run) + " already; computing the plan again restores the values of its profile"
		}
		if stopped, err := s.stoppedBefore(ctx); err != nil {
			return err
		} else if stopped != "" {
			message += "; " + stopped
		}
		return s.move(governance.EventNothing, "", message)
	default:
		return s.move(governance.EventDrafted, "", "")
	}
}

// stoppedBefore names items of the last run, if it was stopped before they were healthy. Their
// targets are as planned, but may be unhealthy.
func (s *scope) stoppedBefore(ctx context.Context) (string, error) {
	last, err := s.runOf(ctx, s.plan.Status.Run)
	if err != nil || last == nil || last.Outcome != v1alpha1.PhaseDrafting {
		return "", err
	}
	var items []string
	for _, item := range last.Items {
		if item.State == v1alpha1.ItemFailed && ptr.Deref(item.Applied, false) {
			items = append(items, item.Name)
		}
	}
	if len(items) == 0 {
		return "", nil
	}
	return fmt.Sprintf("run %d was stopped, and Penstock no longer waits until %s is healthy", last.Run, strings.Join(items, ", ")), nil
}

// keep stores the planned manifests for reviewers, and the objects as they were before.
func (s *scope) keep(ctx context.Context, before, after []manifest.Object) error {
	status := &s.plan.Status
	var err error
	if status.Manifests, err = s.Packs.Put(ctx, after); err != nil {
		return fmt.Errorf("storing the manifests of plan %s: %w", s.plan.Name, err)
	}
	status.Captured = ""
	if len(before) == 0 {
		return nil
	}
	if status.Captured, err = s.Packs.Put(ctx, before); err != nil {
		return fmt.Errorf("storing the targets of plan %s as they are: %w", s.plan.Name, err)
	}
	return nil
}

func (s *scope) describe(items []v1alpha1.PlanItem) {
	status := &s.plan.Status
	status.ImpactSeverity = v1alpha1.ImpactNone
	var diffs []string
	for _, item := range items {
		status.ImpactSeverity = governance.Worse(status.ImpactSeverity, item.ImpactSeverity)
		if item.Diff != "" {
			diffs = append(diffs, fmt.Sprintf("# %s: %s %s\n%s", item.Name, item.TargetRef.Kind, item.TargetRef.Name, item.Diff))
		}
	}
	status.Items = items
	status.Diff = bounded(strings.Join(diffs, "\n"), v1alpha1.MaxDiffBytes)
	status.PlanHash, status.SourceSnapshotHash = governance.PlanHash(s.plan.Spec, items, s.pinnedDigest()), governance.SnapshotHash(items)
	status.InputsHash = governance.InputsHash(s.plan.Spec)
	status.OperatorVersion, s.outdated = s.Version, false
	now := s.now()
	status.DraftedAt = &now
}

// bounded cuts a text at the end of a line.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const more = "\n... cut: read the subresource diff\n"
	kept := text[:most-len(more)]
	if end := strings.LastIndexByte(kept, '\n'); end > 0 {
		kept = kept[:end]
	}
	return strings.ToValidUTF8(kept, "") + more
}
