// Package livediff computes the current effect of a plan on the cluster, for the calling user.
package livediff

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/diff"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

// Differ computes the current effect of a plan for the caller of a request. It shows only targets
// that the caller may read and change. It caches nothing.
type Differ struct {
	Authorizer authorizer.UnconditionalAuthorizer
	Previewer  *preview.Previewer
	// Target returns the resources of kinds and reads objects. *targetclient.Client implements it.
	Target interface {
		Served(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error)
		Read(ctx context.Context, ref manifest.Ref) (*unstructured.Unstructured, error)
	}
	Packs interface {
		Objects(ctx context.Context, root string) ([]manifest.Object, error)
	}
	Schema   diffschema.Schema
	Redactor *redact.Redactor
}

// Diff compares the current targets with the plan. For a target that the run has written, it
// returns the changes of the run.
func (d *Differ) Diff(ctx context.Context, plan *hco.ConfigurationPlan) ([]v1alpha1.PlanDiffItem, error) {
	kept, err := d.kept(ctx, plan)
	if err != nil {
		return nil, err
	}
	var items []v1alpha1.PlanDiffItem
	for _, item := range plan.Status.Items {
		out, err := d.item(ctx, plan, item, kept)
		if err != nil {
			return nil, err
		}
		items = append(items, out)
	}
	return items, nil
}

// kept is the stored part of a plan.
type kept struct {
	// manifests are the planned targets.
	manifests planwork.Bodies
	// captured are the targets as found when the plan was computed. It is empty before the run has
	// written a target.
	captured map[manifest.ID]*manifest.Object
}

func (d *Differ) kept(ctx context.Context, plan *hco.ConfigurationPlan) (kept, error) {
	found := kept{manifests: planwork.Bodies{}, captured: map[manifest.ID]*manifest.Object{}}
	objects, err := d.Packs.Objects(ctx, plan.Status.Manifests)
	if err != nil {
		return found, apierrors.NewInternalError(fmt.Errorf("reading the manifests of plan %s: %w", plan.Name, err))
	}
	for _, object := range objects {
		found.manifests[object.Digest] = object.JSON
	}
	written := slices.ContainsFunc(plan.Status.Items, func(item hco.PlanItem) bool { return item.Applied })
	if !written || plan.Status.Captured == "" {
		return found, nil
	}
	if objects, err = d.Packs.Objects(ctx, plan.Status.Captured); err != nil {
		return found, apierrors.NewInternalError(fmt.Errorf("reading the targets of plan %s as they were: %w", plan.Name, err))
	}
	for i := range objects {
		found.captured[objects[i].ID] = &objects[i]
	}
	return found, nil
}

func (d *Differ) item(ctx context.Context, plan *hco.ConfigurationPlan, item hco.PlanItem, kept kept) (v1alpha1.PlanDiffItem, error) {
	out := v1alpha1.PlanDiffItem{Name: item.Name, TargetRef: v1alpha1.TargetRef(item.TargetRef)}
	ref := planwork.Ref(out.TargetRef, item.Digest)
	lacks, err := d.lacks(ctx, ref, "get", "patch")
	if meta.IsNoMatchError(err) {
		out.Message = "its kind is not served"
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if lacks != "" {
		out.Message = "you cannot " + lacks
		if unread, err := d.lacks(ctx, ref, "get"); err != nil || unread != "" || !item.Applied {
			return out, err
		}
		return out, d.showChanged(ctx, &out, plan, item, kept)
	}
	work := planwork.PreviewWork(v1alpha1.ProfileName(plan.Spec.Profile), "diff", item.Name, ref, item.Action == hco.ItemDelete, kept.manifests)
	found, err := d.Previewer.Preview(ctx, work, nil)
	if err != nil {
		return out, apierrors.NewServiceUnavailable(fmt.Sprintf("the cluster does not answer: %s", err))
	}
	for _, seen := range found.Items {
		if err := d.show(ctx, &out, item, seen); err != nil {
			return out, apierrors.NewInternalError(err)
		}
		if !item.Applied || out.Message != asItShouldBe {
			continue
		}
		if err := d.showChanged(ctx, &out, plan, item, kept); err != nil {
			return out, err
		}
	}
	return out, nil
}

// asItShouldBe is the message for a target that needs no change.
const asItShouldBe = "it is as it should be"

// showChanged fills in the changes of a target by the run. They are limited to fields of the
// intent, so that later changes of other writers are not shown. Without an intent, all changes are
// shown.
func (d *Differ) showChanged(ctx context.Context, out *v1alpha1.PlanDiffItem, plan *hco.ConfigurationPlan, item hco.PlanItem, kept kept) error {
	ref := planwork.Ref(v1alpha1.TargetRef(item.TargetRef), item.Digest)
	var raw, intent []byte
	if plan.Spec.RestoreRun == 0 && item.Action != hco.ItemDelete {
		intent = kept.manifests[ref.Digest]
	}
	live, err := d.Target.Read(ctx, ref)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("the cluster does not answer: %s", err))
	default:
		if raw, err = live.MarshalJSON(); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	is, err := governance.Live(raw)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	was, is, err := governance.Intended(governance.Unmarked(kept.captured[ref.ID]), governance.Unmarked(is), intent)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if was == nil && is == nil {
		return nil
	}
	change := diff.Compare(ctx, was, is, diff.Options{Schema: d.Schema, Redactor: d.Redactor})
	if out.Diff = change.Unified; out.Diff != "" {
		out.Message += "; the diff shows what the run changed"
	}
	return nil
}

// show fills in the cluster's answer.
func (d *Differ) show(ctx context.Context, out *v1alpha1.PlanDiffItem, item hco.PlanItem, seen preview.Item) error {
	out.Stale = seen.Fingerprint != item.Fingerprint
	if seen.Failure != nil {
		out.Message = governance.Clip(seen.Failure.Message)
		return nil
	}
	before, err := governance.Live(seen.Before)
	if err != nil {
		return err
	}
	after, err := governance.Live(seen.After)
	if err != nil {
		return err
	}
	before, after = governance.Unmarked(before), governance.Unmarked(after)
	if before == nil && after == nil || before != nil && after != nil && before.Digest == after.Digest {
		out.Message = asItShouldBe
		return nil
	}
	change := diff.Compare(ctx, before, after, diff.Options{Schema: d.Schema, Redactor: d.Redactor})
	out.Diff, out.Message = change.Unified, change.NotCompared
	return nil
}

// Lacks returns the right to read a target if the caller does not have it. The right to a kind that
// is not served counts as missing, because it cannot be checked.
func (d *Differ) Lacks(ctx context.Context, target manifest.Ref) (string, error) {
	lacks, err := d.lacks(ctx, target, "get")
	if meta.IsNoMatchError(err) {
		return fmt.Sprintf("get %s, whose kind is not served", target.ID), nil
	}
	return lacks, err
}

// lacks returns the first of the rights on a target that the caller does not have.
func (d *Differ) lacks(ctx context.Context, target manifest.Ref, verbs ...string) (string, error) {
	mapping, err := d.Target.Served(ctx, target.GroupVersionKind())
	if meta.IsNoMatchError(err) {
		return "", err
	}
	if err != nil {
		return "", apierrors.NewServiceUnavailable(fmt.Sprintf("the cluster does not answer: %s", err))
	}
	for _, verb := range verbs {
		asked := authz.On(mapping.Resource, verb, target.Namespace, target.Name)
		allowed, err := d.may(ctx, asked)
		if err != nil {
			return "", apierrors.NewInternalError(fmt.Errorf("asking whether you may %s: %w", asked, err))
		}
		if !allowed {
			return asked.String(), nil
		}
	}
	return "", nil
}

func (d *Differ) may(ctx context.Context, asked authz.Right) (bool, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return false, fmt.Errorf("the request has no user")
	}
	return asked.Has(ctx, d.Authorizer, caller)
}
