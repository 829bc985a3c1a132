package configurationplan

import (
	"context"
	"encoding/json"
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
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/run"
)

// ManifestsREST serves the subresource manifests: the complete targets after the plan. A manifest
// may contain values of the target, also from before a run. So it is only for users who may read
// the target.
type ManifestsREST struct {
	store  *genericregistry.Store
	packs  Packs
	differ Differ
}

var _ rest.Getter = &ManifestsREST{}

// New returns an empty list.
func (*ManifestsREST) New() runtime.Object { return &hco.PlanManifestList{} }

// Destroy does nothing: the main resource owns the store.
func (*ManifestsREST) Destroy() {}

// Get returns the manifests of the last computed plan. It leaves out targets that the caller cannot
// read, and adds a warning.
func (r *ManifestsREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	found, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	plan, list := found.(*hco.ConfigurationPlan), &hco.PlanManifestList{Items: []runtime.RawExtension{}}
	if plan.Status.Manifests == "" {
		return list, nil
	}
	objects, err := r.packs.Objects(ctx, plan.Status.Manifests)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("reading the manifests of %s: %w", name, err))
	}
	var hidden []string
	for _, object := range objects {
		if lacks, err := r.differ.Lacks(ctx, object.Ref); err != nil {
			return nil, err
		} else if lacks != "" {
			hidden = append(hidden, lacks)
			continue
		}
		list.Items = append(list.Items, runtime.RawExtension{Raw: object.JSON})
	}
	if len(hidden) > 0 {
		warning.AddWarning(ctx, "", fmt.Sprintf("%d of %d manifests are left out: you cannot %s", len(hidden), len(objects), strings.Join(hidden, ", ")))
	}
	return list, nil
}

// HistoryREST serves the subresource history: the runs of all plans with the name, even if no such
// plan exists now.
type HistoryREST struct {
	runs Runs
	historyTable
}

var _ rest.Getter = &HistoryREST{}

// New returns an empty history.
func (*HistoryREST) New() runtime.Object { return &v1alpha1.PlanHistory{} }

// Destroy does nothing.
func (*HistoryREST) Destroy() {}

// Get returns the runs, newest first. Without runs, the list is empty.
func (r *HistoryREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	rows, err := r.runs.List(ctx, name)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	history := &v1alpha1.PlanHistory{ObjectMeta: metav1.ObjectMeta{Name: name}, Runs: []v1alpha1.PlanRun{}}
	for _, row := range rows {
		var one v1alpha1.PlanRun
		if err := json.Unmarshal(row.Body, &one); err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("reading run %d of %s: %w", row.Number, name, err))
		}
		history.Runs = append(history.Runs, one)
	}
	if n := dropped(rows); n > 0 {
		warning.AddWarning(ctx, "", fmt.Sprintf("at least %d earlier runs are no longer kept: for each name of a plan, the newest %d runs are kept, up to 1 MiB", n, run.MaxRows))
	}
	return history, nil
}

// dropped returns the number of runs before the first row of a history. Runs of an earlier plan of
// the same name are unknown.
func dropped(rows []run.Row) int64 {
	if len(rows) == 0 {
		return 0
	}
	return rows[len(rows)-1].Number - 1
}

// Differ computes the current effect of a plan, for targets that the caller may read and change.
type Differ interface {
	Diff(ctx context.Context, plan *hco.ConfigurationPlan) ([]v1alpha1.PlanDiffItem, error)
	// Lacks returns, as text, the right to read a target that the caller of a request does not
	// have, or "".
	Lacks(ctx context.Context, target manifest.Ref) (string, error)
}

// DiffREST serves the subresource diff. The diff is computed for each request and not stored.
type DiffREST struct {
	store  *genericregistry.Store
	differ Differ
	diffTable
}

var _ rest.Getter = &DiffREST{}

// New returns an empty diff.
func (*DiffREST) New() runtime.Object { return &v1alpha1.PlanDiff{} }

// Destroy does nothing: the main resource owns the store.
func (*DiffREST) Destroy() {}

// Get compares the current targets with the plan.
func (r *DiffREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	found, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	plan := found.(*hco.ConfigurationPlan)
	if plan.Status.Manifests == "" {
		return nil, conflict(name, "it is %s: %w", plan.Status.Phase, errNoPlan)
	}
	items, err := r.differ.Diff(ctx, plan)
	if err != nil {
		return nil, err
	}
	return &v1alpha1.PlanDiff{ObjectMeta: metav1.ObjectMeta{Name: name}, PlanHash: plan.Status.PlanHash, Items: items}, nil
}
