package configurationplan

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/status"
	shared "github.com/penstock-project/penstock/pkg/registry/strategy"
	"github.com/penstock-project/penstock/pkg/store/claim"
	"github.com/penstock-project/penstock/pkg/store/run"
)

const (
	resource         = "configurationplans"
	singularResource = "configurationplan"
)

// Packs reads desired states. *pack.Store implements it.
type Packs interface {
	// Objects returns the objects of a pack in their order.
	Objects(ctx context.Context, root string) ([]manifest.Object, error)
}

// Claims holds the holders of profiles. *claim.Claims implements it.
type Claims interface {
	Attempt(key string, dryRun bool, gone claim.Gone) *claim.Attempt
}

// Runs holds the records of plans. *run.Runs implements it.
type Runs interface {
	List(ctx context.Context, name string) ([]run.Row, error)
}

// Approvers checks the rights of approvers. *approver.Rights implements it.
type Approvers interface {
	// Lacks returns, as text, the rights that a plan needs and that the caller of a request does
	// not have.
	Lacks(ctx context.Context, plan *v1alpha1.ConfigurationPlan) ([]string, error)
}

// Deps are the dependencies of NewStorage.
type Deps struct {
	Scheme *runtime.Scheme
	// OptsGetter returns the storage options for etcd.
	OptsGetter generic.RESTOptionsGetter
	// Profiles are the allowed profiles of plans; empty allows the profiles of the API.
	Profiles []hco.ProfileName
	// Definitions returns the user-defined profile with a name, or nil.
	Definitions func(ctx context.Context, name string) (*cel.Profile, error)
	Packs       Packs
	Claims      Claims
	Runs        Runs
	// Differ computes current diffs.
	Differ Differ
	// Approvers checks the rights of an approver.
	Approvers Approvers
	// Clock sets the time of approvals and ages; nil means the system clock.
	Clock clock.PassiveClock
}

// Storage holds all endpoints of the resource.
type Storage struct {
	Plan      *REST
	Status    *StatusREST
	Approve   *ApproveREST
	Retry     *RetryREST
	Rollback  *RollbackREST
	Manifests *ManifestsREST
	Export    *ExportREST
	History   *HistoryREST
	Diff      *DiffREST
}

// NewStorage returns the endpoints over a generic store.
func NewStorage(deps Deps) (*Storage, error) {
	if deps.Clock == nil {
		deps.Clock = clock.RealClock{}
	}
	main := &strategy{Cluster: shared.Cluster{ObjectTyper: deps.Scheme, NameGenerator: names.SimpleNameGenerator}, clock: deps.Clock, profiles: deps.Profiles, definitions: deps.Definitions}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &hco.ConfigurationPlan{} },
		NewListFunc:               func() runtime.Object { return &hco.ConfigurationPlanList{} },
		DefaultQualifiedResource:  v1alpha1.Resource(resource),
		SingularQualifiedResource: v1alpha1.Resource(singularResource),
		PredicateFunc:             predicate,
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            table{clock: deps.Clock},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: deps.OptsGetter, AttrFunc: getAttrs}); err != nil {
		return nil, fmt.Errorf("completing the store of %s: %w", resource, err)
	}
	acts := *store
	acts.UpdateStrategy = actStrategy{main}
	storage := &Storage{
		Plan:      &REST{Store: store, claims: deps.Claims},
		Status:    &StatusREST{status.New(store, statusStrategy{main})},
		Approve:   &ApproveREST{store: &acts, clock: deps.Clock, approvers: deps.Approvers},
		Retry:     &RetryREST{store: &acts},
		Rollback:  &RollbackREST{store: &acts, runs: deps.Runs, clock: deps.Clock},
		Manifests: &ManifestsREST{store: store, packs: deps.Packs, differ: deps.Differ},
		History:   &HistoryREST{runs: deps.Runs},
		Diff:      &DiffREST{store: store, differ: deps.Differ},
	}
	storage.Export = &ExportREST{store: store, manifests: storage.Manifests}
	return storage, nil
}

// REST serves the resource configurationplans.
type REST struct {
	*genericregistry.Store
	claims Claims
}

var (
	_ rest.StandardStorage      = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// ShortNames returns the short names for kubectl.
func (*REST) ShortNames() []string { return []string{"configplan", "cfgplan"} }

// Create claims the plan's profile, and then stores the plan.
func (r *REST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	held := &claiming{plans: r, dryRun: dryrun.IsDryRun(options.DryRun)}
	out, err := r.Store.Create(ctx, obj, held.create(validate), options)
	if err = held.settle(ctx, err); err != nil {
		return nil, err
	}
	return out, nil
}

// Update changes a plan, or stores a new one for server-side apply.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	held := &claiming{plans: r, dryRun: dryrun.IsDryRun(options.DryRun)}
	out, created, err := r.Store.Update(ctx, name, info, held.create(create), held.update(update), forceAllowCreate, options)
	if err = held.settle(ctx, err); err != nil {
		return nil, false, err
	}
	return out, created, nil
}

// selectableFields returns the fields that field selectors can use.
func selectableFields(plan *hco.ConfigurationPlan) fields.Set {
	return generic.AddObjectMetaFieldsSet(fields.Set{
		v1alpha1.ProfileField: string(plan.Spec.Profile),
		v1alpha1.PhaseField:   string(plan.Status.Phase),
	}, &plan.ObjectMeta, false)
}

func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	plan, ok := obj.(*hco.ConfigurationPlan)
	if !ok {
		return nil, nil, fmt.Errorf("selecting plans: got a %T", obj)
	}
	return plan.Labels, selectableFields(plan), nil
}

func predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: getAttrs}
}
