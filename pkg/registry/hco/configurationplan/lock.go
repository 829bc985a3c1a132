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

// claiming is one request that may make a plan the holder of its profile. Of two simultaneous
// requests, only one succeeds. Package claim describes the state after a crash.
type claiming struct {
	plans   *REST
	dryRun  bool
	attempt *claim.Attempt
}

// create wraps the validation of a create. The plan claims its profile last, directly before the
// record is written.
func (c *claiming) create(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
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
		return c.claim(ctx, plan, plan.Annotations[v1alpha1.OverrideAnnotation])
	}
}

// update makes a plan claim its profile if the update ends Ignore or overrides another plan.
func (c *claiming) update(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, obj.DeepCopyObject(), old); err != nil {
				return err
			}
		}
		plan, stored := obj.(*hco.ConfigurationPlan), old.(*hco.ConfigurationPlan)
		if err := unreviewed(ctx, plan, stored); err != nil {
			return err
		}
		// The annotation stays, but overrides only once: the author of a later write need not have
		// the verb.
		override := plan.Annotations[v1alpha1.OverrideAnnotation]
		if override == stored.Annotations[v1alpha1.OverrideAnnotation] {
			override = ""
		}
		if plan.Spec.Action == hco.ActionIgnore || plan.DeletionTimestamp != nil ||
			stored.Spec.Action != hco.ActionIgnore && override == "" {
			return nil
		}
		return c.claim(ctx, plan, override)
	}
}

// claim makes a plan the holder of its profile. The previous holder must be deleted or inactive, or
// override must name it. Admission has checked the right to override.
func (c *claiming) claim(ctx context.Context, plan *hco.ConfigurationPlan, override string) error {
	if c.attempt == nil {
		c.attempt = c.plans.claims.Attempt(governance.ClaimKey(string(plan.Spec.Profile)), c.dryRun, func(ctx context.Context, holder string) (bool, error) {
			name, uid := governance.ParseHolder(holder)
			if name == override && uid != string(plan.UID) {
				return true, nil
			}
			return c.plans.inactive(ctx, name, uid)
		})
	}
	err := c.attempt.Acquire(ctx, governance.Holder(plan.Name, string(plan.UID)))
	var held *claim.HeldError
	if errors.As(err, &held) {
		name, _ := governance.ParseHolder(held.Holder)
		return conflict(plan.Name, "plan %q holds profile %s: delete that plan or set its action to Ignore; or, with the verb override, take over with annotation %s: %s",
			name, plan.Spec.Profile, v1alpha1.OverrideAnnotation, name)
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

// settle ends the claim according to the result of the write. Losing the claim meanwhile is no
// error of the write: the controller checks the claim before it acts.
func (c *claiming) settle(ctx context.Context, failed error) error {
	if c.attempt == nil {
		return failed
	}
	err := c.attempt.Settle(ctx, failed)
	if failed != nil {
		return failed
	}
	var held *claim.HeldError
	if err != nil && !errors.As(err, &held) {
		return apierrors.NewInternalError(fmt.Errorf("the plan is stored, but it is not known whether it holds its profile: %w", err))
	}
	return nil
}

// inactive reports whether a holder is deleted or does not need its profile. It reads from etcd,
// not from a cache.
func (r *REST) inactive(ctx context.Context, name, uid string) (bool, error) {
	found, err := r.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	plan := found.(*hco.ConfigurationPlan)
	return string(plan.UID) != uid || !governance.Needs(v1alpha1.Action(plan.Spec.Action), v1alpha1.Phase(plan.Status.Phase)), nil
}
