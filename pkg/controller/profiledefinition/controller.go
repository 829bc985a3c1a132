// Package profiledefinition is the loop that grants the ServiceAccount of each profile definition
// its declared rights, and revokes them when the definition is deleted.
package profiledefinition

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
)

// Identities manages the identities of profiles.
type Identities interface {
	// Grant gives the identity of a profile exactly these rights.
	Grant(ctx context.Context, name string, rules []rbacv1.PolicyRule) error
	// Withdraw deletes the identity of a profile. Granted lists the existing identities.
	Withdraw(ctx context.Context, name string) error
	Granted(ctx context.Context) ([]string, error)
	// Account returns the ServiceAccount of a profile, as namespace/name.
	Account(name string) string
}

// Options of the controller. All are required.
type Options struct {
	// Client accesses Penstock's own API, and reads from a cache.
	Client     client.Client
	Identities Identities
	// Gone is called with the name of a profile whose definition was deleted.
	Gone func(name string)
}

// Reasons of the condition AccessGranted.
const (
	reasonGranted    = "Granted"
	reasonNotGranted = "NotGranted"
)

// sweepRetry is the first delay after the identities could not be listed, and sweepRetryMost the
// longest. If the default target is another cluster, the host possibly lacks the engine's identity,
// which the request uses.
const (
	sweepRetry     = 10 * time.Second
	sweepRetryMost = time.Hour
)

// Add registers the controller with a manager.
func Add(mgr manager.Manager, options Options) error {
	r := &reconciler{Options: options}
	err := builder.ControllerManagedBy(mgr).
		Named("profiledefinition").
		For(&v1alpha1.ConfigurationProfileDefinition{}).
		Watches(&v1alpha1.ConfigurationPlan{}, handler.EnqueueRequestsFromMapFunc(definitionOf)).
		WatchesRawSource(source.Func(r.sweep)).
		WithOptions(controller.Options{SkipNameValidation: ptr.To(true)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of profile definitions: %w", err)
	}
	return nil
}

type reconciler struct{ Options }

// definitionOf returns the definition of a plan: the identity keeps the rights that an active plan
// declares.
func definitionOf(_ context.Context, object client.Object) []reconcile.Request {
	plan, isPlan := object.(*v1alpha1.ConfigurationPlan)
	if !isPlan || !v1alpha1.IsOwn(plan.Spec.Profile) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: string(plan.Spec.Profile)}}}
}

// Reconcile grants a definition its rights:
//
//  1. It grants the rights that the definition declares, and the rights that active plans from
//     earlier versions declare. An edit does not change such plans.
//  2. It writes the result to status.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	definition := &v1alpha1.ConfigurationProfileDefinition{}
	err := r.Client.Get(ctx, request.NamespacedName, definition)
	if apierrors.IsNotFound(err) {
		r.Gone(request.Name)
		return ctrl.Result{}, r.Identities.Withdraw(ctx, request.Name)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading ConfigurationProfileDefinition %s: %w", request.Name, err)
	}
	if objectmeta.IsUnreadable(definition) || definition.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	declared, err := r.declared(ctx, definition)
	if err != nil {
		return ctrl.Result{}, err
	}
	condition := metav1.Condition{Type: v1alpha1.ConditionAccessGranted, Status: metav1.ConditionTrue, Reason: reasonGranted,
		Message: "the ServiceAccount has the rights that the definition declares", ObservedGeneration: definition.Generation}
	granting := r.Identities.Grant(ctx, definition.Name, cel.Rules(declared))
	if granting != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reasonNotGranted, governance.Clip(granting.Error())
	}
	if err := r.report(ctx, definition, condition); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, granting
}

// declared returns the access that the definition and its active plans declare.
func (r *reconciler) declared(ctx context.Context, definition *v1alpha1.ConfigurationProfileDefinition) ([]v1alpha1.DeclaredAccess, error) {
	declared := cel.Declared(&definition.Spec)
	var plans v1alpha1.ConfigurationPlanList
	if err := r.Client.List(ctx, &plans); err != nil {
		return nil, fmt.Errorf("listing plans: %w", err)
	}
	for _, plan := range plans.Items {
		if string(plan.Spec.Profile) == definition.Name && plan.Status.Definition != nil && governance.Active(plan.Status.Phase) {
			declared = append(declared, plan.Status.Definition.Requirements...)
		}
	}
	return declared, nil
}

func (r *reconciler) report(ctx context.Context, definition *v1alpha1.ConfigurationProfileDefinition, condition metav1.Condition) error {
	updated := definition.DeepCopy()
	updated.Status.ObservedGeneration, updated.Status.Digest = definition.Generation, cel.Digest(&definition.Spec)
	updated.Status.ServiceAccount = r.Identities.Account(definition.Name)
	meta.SetStatusCondition(&updated.Status.Conditions, condition)
	if apiequality.Semantic.DeepEqual(updated.Status, definition.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, updated); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing status of ConfigurationProfileDefinition %s: %w", definition.Name, err)
	}
	return nil
}

// sweep enqueues every definition with an identity, at the start of a term. A definition that was
// deleted while no replica led causes no event.
func (r *reconciler) sweep(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		delay := wait.Backoff{Duration: sweepRetry, Factor: 2, Cap: sweepRetryMost, Steps: math.MaxInt32}.DelayFunc()
		// The only error is the end of ctx: the term has ended.
		_ = delay.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
			names, err := r.Identities.Granted(ctx)
			if err != nil {
				log.FromContext(ctx).Error(err, "Looking for identities of definitions that were deleted while no replica led")
				return false, nil
			}
			for _, name := range slices.Compact(names) {
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
			}
			return true, nil
		})
	}()
	return nil
}
