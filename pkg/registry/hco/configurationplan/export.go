package configurationplan

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
)

// ExportREST serves the subresource export: the approved manifests, for a repository of another
// deployment tool.
type ExportREST struct {
	store     *genericregistry.Store
	manifests *ManifestsREST
}

var _ rest.Getter = &ExportREST{}

// New returns an empty list.
func (*ExportREST) New() runtime.Object { return &hco.PlanManifestList{} }

// Destroy does nothing: the main resource owns the store.
func (*ExportREST) Destroy() {}

// Get returns the manifests of the approved plan. Each names the plan and its hash, and lacks the
// marks of governed targets. A user who cannot read all targets gets an error: a partial export
// would not be the approved plan.
func (r *ExportREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	found, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	plan := found.(*hco.ConfigurationPlan)
	if err := approved(plan); err != nil {
		return nil, conflict(name, "%w", err)
	}
	objects, err := r.manifests.packs.Objects(ctx, plan.Status.Manifests)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("reading the manifests of %s: %w", name, err))
	}
	goes := going(plan)
	list := &hco.PlanManifestList{Items: []runtime.RawExtension{}}
	var lacking, gone []string
	for i := range objects {
		if goes[objects[i].ID] {
			gone = append(gone, objects[i].ID.String())
			continue
		}
		lacks, err := r.manifests.differ.Lacks(ctx, objects[i].Ref)
		if err != nil {
			return nil, err
		}
		if lacks != "" {
			lacking = append(lacking, lacks)
			continue
		}
		exported, err := governance.Exported(&objects[i], name, plan.Status.PlanHash)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		list.Items = append(list.Items, runtime.RawExtension{Raw: exported.JSON})
	}
	if len(lacking) > 0 {
		return nil, apierrors.NewForbidden(v1alpha1.Resource(resource), name, fmt.Errorf("a plan is exported only as a whole: you cannot %s", strings.Join(lacking, ", ")))
	}
	if len(gone) > 0 {
		warning.AddWarning(ctx, "", "the plan deletes objects, which no manifest can express: "+strings.Join(gone, ", "))
	}
	return list, nil
}

// approved returns an error if the current plan is not approved.
func approved(plan *hco.ConfigurationPlan) error {
	approval := external(plan.Status.Approval)
	switch {
	case plan.Status.PlanHash == "" || plan.Status.Manifests == "":
		return errNoPlan
	case plan.Status.InputsHash != inputs(plan):
		return errors.New("spec has changed since the plan was computed: a new plan is being computed")
	case approval == nil || approval.PlanHash != plan.Status.PlanHash:
		return fmt.Errorf("plan %s is not approved: only an approved plan is exported; the subresource manifests shows the plan that waits", plan.Status.PlanHash)
	case len(governance.Approvers(approval)) < needed(plan):
		return fmt.Errorf("plan %s has %d of %d approvals", plan.Status.PlanHash, len(governance.Approvers(approval)), needed(plan))
	}
	return nil
}

// going returns the targets that a plan deletes.
func going(plan *hco.ConfigurationPlan) map[manifest.ID]bool {
	goes := map[manifest.ID]bool{}
	external, err := versioned(plan)
	if err != nil {
		return goes // the conversion cannot fail
	}
	for _, item := range external.Status.Items {
		if planwork.Goes(item) {
			goes[planwork.Ref(item.TargetRef, item.Digest).ID] = true
		}
	}
	return goes
}
