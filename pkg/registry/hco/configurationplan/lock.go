package configurationplan

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/store/claim"
)

// claiming wraps the validation of a create: the last step before the record is
// written. Of two creates at the same time one gets the profile. What a crash in
// between leaves is a claim of a plan that does not exist, which the next one takes
// over.
func (r *REST) claiming(validate rest.ValidateObjectFunc, dryRun bool) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, obj.DeepCopyObject()); err != nil {
				return err
			}
		}
		plan := obj.(*hco.ConfigurationPlan)
		if plan.Spec.Action == hco.ActionIgnore {
			return nil
		}
		return r.claim(ctx, plan, dryRun)
	}
}

// claimingUpdate claims when a plan is not ignored any more.
func (r *REST) claimingUpdate(validate rest.ValidateObjectUpdateFunc, dryRun bool) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, obj.DeepCopyObject(), old); err != nil {
				return err
			}
		}
		plan, stored := obj.(*hco.ConfigurationPlan), old.(*hco.ConfigurationPlan)
		override := plan.Annotations[v1alpha1.OverrideAnnotation]
		if plan.Spec.Action == hco.ActionIgnore || plan.DeletionTimestamp != nil ||
			stored.Spec.Action != hco.ActionIgnore && override == stored.Annotations[v1alpha1.OverrideAnnotation] {
			return nil
		}
		return r.claim(ctx, plan, dryRun)
	}
}

// claim makes a plan the holder of its profile, in place of one that is gone, that
// is not active, or that the requester overrides; admission has seen to it that he
// may.
func (r *REST) claim(ctx context.Context, plan *hco.ConfigurationPlan, dryRun bool) error {
	key, me := governance.ClaimKey(string(plan.Spec.Profile)), governance.Holder(plan.Name, string(plan.UID))
	holder, err := r.claims.Holder(ctx, key)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if holder == me {
		return nil
	}
	if holder != "" {
		name, uid := governance.ParseHolder(holder)
		free, err := r.free(ctx, name, uid)
		if err != nil {
			return err
		}
		if !free && plan.Annotations[v1alpha1.OverrideAnnotation] != name {
			return apierrors.NewConflict(v1alpha1.Resource(resource), plan.Name, fmt.Errorf(
				"plan %q holds profile %s: delete it or set its action to Ignore; with the verb override, annotation %s: %s takes over",
				name, plan.Spec.Profile, v1alpha1.OverrideAnnotation, name))
		}
	}
	if dryRun {
		return nil
	}
	if holder == "" {
		err = r.claims.Acquire(ctx, key, me)
	} else {
		err = r.claims.TakeOver(ctx, key, holder, me)
	}
	var held *claim.HeldError
	if errors.As(err, &held) {
		name, _ := governance.ParseHolder(held.Holder)
		return apierrors.NewConflict(v1alpha1.Resource(resource), plan.Name, fmt.Errorf("plan %q was faster: it holds profile %s", name, plan.Spec.Profile))
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

// free tells whether a holder is gone or not active. One that nobody has looked at
// yet is about to be.
func (r *REST) free(ctx context.Context, name, uid string) (bool, error) {
	found, err := r.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	plan := found.(*hco.ConfigurationPlan)
	if string(plan.UID) != uid || plan.Spec.Action == hco.ActionIgnore {
		return true, nil
	}
	pending := plan.Status.Phase == "" || plan.Status.Phase == hco.PhasePending
	return !pending && !governance.Active(v1alpha1.Phase(plan.Status.Phase)), nil
}
