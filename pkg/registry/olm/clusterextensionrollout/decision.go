package clusterextensionrollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/extensionrollout"
	"github.com/penstock-project/penstock/pkg/fleet"
)

const maxComment = 1024

// A rollout keeps the last decisions, each with a limited number of clusters.
const (
	keptDecisions = 20
	keptClusters  = 10
)

type decision struct {
	who       user.Info
	asked     *olm.RolloutRequest
	plan      *fleet.Plan
	rollout   *v1alpha1.ClusterExtensionRollout
	progress  fleet.Progress
	situation fleet.Situation
	// wave is the approved wave; empty means the rollout.
	wave string
}

// decisions returns the decisions by their verb, which is also the name of the subresource.
func decisions() map[string]func(*decision) (fleet.Progress, error) {
	return map[string]func(*decision) (fleet.Progress, error){
		"approve": func(d *decision) (fleet.Progress, error) {
			if d.progress.Approved == d.plan.Digest() {
				if d.wave == "" {
					return d.progress, errors.New("it is approved already, and no wave waits for an approval")
				}
				return d.plan.ApproveWave(d.progress, d.wave, d.asked.Spec.Digest)
			}
			return d.plan.Approve(d.progress, d.asked.Spec.Digest)
		},
		"halt": func(d *decision) (fleet.Progress, error) { return d.plan.Halt(d.progress) },
		"resume": func(d *decision) (fleet.Progress, error) {
			return d.plan.Resume(d.progress, d.situation, d.asked.Spec.Digest)
		},
		"retry": func(d *decision) (fleet.Progress, error) {
			return d.plan.Retry(d.progress, d.situation, d.asked.Spec.Digest, d.asked.Spec.Clusters)
		},
		"skip": func(d *decision) (fleet.Progress, error) {
			return d.plan.Skip(d.progress, d.situation, d.asked.Spec.Digest, d.asked.Spec.Clusters)
		},
	}
}

// DecisionREST serves a subresource for users' decisions about a rollout that they have read.
type DecisionREST struct {
	store      *genericregistry.Store
	clock      clock.PassiveClock
	authorizer authorizer.UnconditionalAuthorizer
	verb       string
	decide     func(*decision) (fleet.Progress, error)
}

var _ rest.NamedCreater = &DecisionREST{}

// New returns an empty request.
func (*DecisionREST) New() runtime.Object { return &olm.RolloutRequest{} }

// Destroy does nothing: the main resource owns the store.
func (*DecisionREST) Destroy() {}

// Create decides, in one write that is repeated if the rollout changed meanwhile:
//
//  1. The caller has the verb on the rollout, and for an approval the right to use each cluster.
//  2. The user who requested the change can neither approve it nor skip a cluster: both remove a
//     protection.
//  3. The digest matches the current rollout.
func (r *DecisionREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	asked := obj.(*olm.RolloutRequest)
	asked.Name = name
	if len(asked.Spec.Comment) > maxComment {
		return nil, apierrors.NewInvalid(olm.Kind("RolloutRequest"), name, field.ErrorList{field.TooLong(field.NewPath("spec", "comment"), "", maxComment)})
	}
	if validate != nil {
		if err := validate(ctx, asked.DeepCopy()); err != nil {
			return nil, err
		}
	}
	who, found := genericrequest.UserFrom(ctx)
	if !found {
		return nil, apierrors.NewInternalError(fmt.Errorf("deciding about rollout %s: the request has no user", name))
	}
	if err := r.need(ctx, who, name, authz.On(v1alpha1.SchemeGroupVersion.WithResource(resource), r.verb, "", name)); err != nil {
		return nil, err
	}
	info := rest.DefaultUpdatedObjectInfo(nil, func(ctx context.Context, _, old runtime.Object) (runtime.Object, error) {
		rollout := old.DeepCopyObject().(*olm.ClusterExtensionRollout)
		return rollout, r.change(ctx, who, asked, rollout)
	})
	store := *r.store
	store.UpdateStrategy = decided{r.store.UpdateStrategy}
	if _, _, err := store.Update(ctx, name, info, nil, nil, false, &metav1.UpdateOptions{DryRun: options.DryRun}); err != nil {
		return nil, err
	}
	return asked, nil
}

// decided is the strategy of a write that changes only status.
type decided struct{ rest.RESTUpdateStrategy }

// PrepareForUpdate keeps the decided status.
func (decided) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

func (r *DecisionREST) need(ctx context.Context, who user.Info, name string, right authz.Right) error {
	has, err := right.Has(ctx, r.authorizer, who)
	switch {
	case err != nil:
		return authz.Unknown(err)
	case !has:
		return apierrors.NewForbidden(v1alpha1.Resource(resource), name, fmt.Errorf("to %s this rollout, you need the right to %s", r.verb, right))
	}
	return nil
}

// change writes the decision into the rollout.
func (r *DecisionREST) change(ctx context.Context, who user.Info, asked *olm.RolloutRequest, rollout *olm.ClusterExtensionRollout) error {
	external, err := versioned(rollout)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	d := &decision{who: who, asked: asked, rollout: external, plan: extensionrollout.Plan(&external.Spec), progress: extensionrollout.Progress(&external.Status), wave: external.Status.Wave}
	d.situation = extensionrollout.Situation(&external.Spec, &external.Status, r.clock.Now())
	if acts := map[string]string{"approve": "approve its change", "skip": "skip clusters"}[r.verb]; acts != "" {
		if err := r.requireOtherUser(ctx, d, acts); err != nil {
			return err
		}
	}
	if r.verb == "approve" {
		if err := r.mayUse(ctx, d); err != nil {
			return err
		}
	}
	next, err := r.decide(d)
	if err != nil {
		return apierrors.NewConflict(v1alpha1.Resource(resource), rollout.Name, err)
	}
	status, now := &external.Status, metav1.NewTime(r.clock.Now())
	if r.verb != "approve" {
		clusters := asked.Spec.Clusters
		status.Decisions = append(status.Decisions, v1alpha1.RolloutDecision{
			Verb: r.verb, User: who.GetName(), Time: now, Clusters: clusters[:min(len(clusters), keptClusters)], Count: int32(len(clusters)), Comment: asked.Spec.Comment,
		})
		status.Decisions = status.Decisions[max(0, len(status.Decisions)-keptDecisions):]
	}
	switch r.verb {
	case "approve":
		approval := v1alpha1.RolloutApproval{Wave: d.wave, Digest: asked.Spec.Digest, User: who.GetName(), Time: now, Comment: asked.Spec.Comment}
		status.Approvals = append(slices.DeleteFunc(status.Approvals, func(one v1alpha1.RolloutApproval) bool { return one.Wave == d.wave }), approval)
		status.Message = "approved by " + who.GetName()
	case "halt":
		status.HaltedBy = who.GetName()
	case "resume":
		status.HaltedBy = ""
	}
	extensionrollout.Record(status, next, who.GetName())
	internal := &olm.ClusterExtensionRollout{}
	if err := v1alpha1.Convert_v1alpha1_ClusterExtensionRollout_To_olm_ClusterExtensionRollout(external, internal, nil); err != nil {
		return apierrors.NewInternalError(err)
	}
	rollout.Status = internal.Status
	return nil
}

// requested reports whether the user requested the change. It also covers rollouts of the set with
// the same content that another user requested again, for example by pausing the set.
func (r *DecisionREST) requested(ctx context.Context, d *decision) (bool, error) {
	if d.who.GetName() == d.rollout.Spec.RequestedBy {
		return true, nil
	}
	all, err := r.store.List(ctx, &metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.SetLabel: d.rollout.Spec.Set.Name})})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(all.(*olm.ClusterExtensionRolloutList).Items, func(one olm.ClusterExtensionRollout) bool {
		return one.Spec.Set.UID == d.rollout.Spec.Set.UID && one.Spec.Set.Digest == d.rollout.Spec.Set.Digest && one.Spec.RequestedBy == d.who.GetName()
	}), nil
}

// requireOtherUser refuses an action that the user who requested the change must not take.
func (r *DecisionREST) requireOtherUser(ctx context.Context, d *decision, acts string) error {
	asked, err := r.requested(ctx, d)
	if err == nil && asked {
		err = apierrors.NewForbidden(v1alpha1.Resource(resource), d.rollout.Name, fmt.Errorf("%s wrote the ClusterExtensionSet: another user must %s", d.who.GetName(), acts))
	}
	return err
}

// mayUse refuses an approval by a user without the right to use each changed cluster. The error
// names only clusters of the rollout.
func (r *DecisionREST) mayUse(ctx context.Context, d *decision) error {
	name := d.rollout.Name
	if all, err := authz.Use("").Has(ctx, r.authorizer, d.who); err != nil || all {
		if err != nil {
			return authz.Unknown(err)
		}
		return nil
	}
	var lacks []string
	for _, cluster := range d.rollout.Spec.Clusters {
		if cluster.Present || d.progress.Approved == d.plan.Digest() && cluster.Wave != d.wave {
			continue
		}
		has, err := authz.Use(cluster.Name).Has(ctx, r.authorizer, d.who)
		if err != nil {
			return authz.Unknown(err)
		}
		if !has {
			lacks = append(lacks, cluster.Name)
		}
	}
	if len(lacks) > 0 {
		return apierrors.NewForbidden(v1alpha1.Resource(resource), name,
			fmt.Errorf("to approve a rollout, you need the right to use targets.policy.penstock.dev of each of its clusters: you lack %s", strings.Join(lacks, ", ")))
	}
	return nil
}
