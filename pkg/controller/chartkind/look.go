package chartkind

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/revision"
)

// expectation is the set of workloads that a revision expects. It never changes for a revision.
type expectation struct {
	revision  string
	workloads []report.Workload
}

// look updates the part of a custom resource's status that changes without a revision:
//
//  1. It reads the custom resource.
//  2. It reads the workloads that the newest revision expects.
//  3. It writes this part of the status if it changed.
func (s *served) look(ctx context.Context, key string) error {
	object, known := objectwatch.Find[*unstructured.Unstructured](s.resources, key)
	if !known || object == nil {
		return nil
	}
	if s.waitsForWorkloads(key) {
		return nil
	}
	workloads, err := s.workloadsOf(ctx, key, object)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		// The answer is unknown, and an old answer could be wrong.
		workloads = report.Workloads{Unknown: err.Error()}
	}
	if err == nil && s.waitsForSettling(key, object, workloads) {
		return nil
	}
	wanted := report.Volatile(object, workloads, metav1.NewTime(s.Clock.Now()))
	if !report.Same(report.StatusOf(object), wanted) && !s.isWritten(key, object, wanted) {
		stored, writeErr := s.applyStatus(ctx, object, StatusManager, map[string]any{"conditions": conditionFields(wanted)})
		switch {
		case writeErr == nil:
			s.recordWrite(key, stored, wanted)
		case !apierrors.IsNotFound(writeErr):
			return writeErr
		}
	}
	if err != nil {
		return maker.ErrAgain
	}
	return nil
}

// told is the last written status, with the resourceVersion of that write.
type told struct {
	resourceVersion string
	conditions      []metav1.Condition
}

// isWritten reports whether the same status was written, and the cache has not seen that write yet.
func (s *served) isWritten(key string, object *unstructured.Unstructured, wanted []metav1.Condition) bool {
	s.mu.Lock()
	last, has := s.told[key]
	s.mu.Unlock()
	if !has || !report.Same(report.Status{Conditions: last.conditions}, wanted) {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), last.resourceVersion)
	return err == nil && order < 0
}

func (s *served) recordWrite(key, resourceVersion string, conditions []metav1.Condition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[key] = told{resourceVersion, conditions}
}

// firstLook is the time at the beginning of a term before status reports unknown workloads.
const firstLook = 30 * time.Second

// waitsForWorkloads delays a look while the workloads are unknown. Otherwise every custom resource
// would report that, and correct it a moment later. When the workloads are known, all custom
// resources are examined.
func (s *served) waitsForWorkloads(key string) bool {
	if s.workloads.isKnown() {
		return false
	}
	left := firstLook - s.Clock.Since(s.begun)
	if left <= 0 {
		return false
	}
	s.looks.AddAfter(key, left)
	return true
}

// settle is how long status waits for a workload's controller to observe a change.
const settle = 2 * time.Second

// waitsForSettling delays a look at a ready custom resource whose workload's controller has not yet
// observed a change. Otherwise the custom resource would be unready for a moment.
func (s *served) waitsForSettling(key string, object *unstructured.Unstructured, workloads report.Workloads) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !workloads.IsSettling() || !report.StatusOf(object).Is(report.Ready, metav1.ConditionTrue) {
		delete(s.settling, key)
		return false
	}
	since, waits := s.settling[key]
	if !waits {
		s.settling[key] = s.Clock.Now()
		s.looks.AddAfter(key, settle)
		return true
	}
	return s.Clock.Since(since) < settle
}

func (s *served) workloadsOf(ctx context.Context, key string, object *unstructured.Unstructured) (report.Workloads, error) {
	chain, all, err := s.installedAs(ctx, object)
	if err != nil {
		return report.Workloads{}, err
	}
	of := s.chainOf()
	of.Revisions = all
	newest := of.Newest()
	if newest == nil || !s.isOf(all, object) {
		return report.Workloads{}, nil
	}
	s.mu.Lock()
	s.chains[chain] = key
	s.mu.Unlock()
	expected, err := s.expectedOf(ctx, key, newest)
	if err != nil {
		return report.Workloads{}, err
	}
	if !s.workloads.isKnown() {
		return report.Workloads{Unknown: "the workloads of the cluster are not known yet"}, nil
	}
	return report.Workloads{Installed: true, Expected: expected, Find: func(one report.Workload) *unstructured.Unstructured {
		return s.workloads.find(chain, one)
	}}, nil
}

// installedAs returns the extension of an installed custom resource, with its revisions. Its name
// can differ from the present name of a new installation.
func (s *served) installedAs(ctx context.Context, object *unstructured.Unstructured) (chain string, revisions []olmv1alpha1.ClusterExtensionRevision, err error) {
	chain, err = s.mapping.Extension(ctx, object)
	if err != nil {
		chain = "" // status reports that it is irreconcilable
	} else if chain, revisions, err = s.named(ctx, chain, object); err != nil {
		return "", nil, err
	}
	if s.isOf(revisions, object) || report.StatusOf(object).ReconciledVersion == "" {
		return chain, revisions, nil
	}
	others, err := s.elsewhere(ctx, object, chain)
	if err != nil || len(others) == 0 {
		return chain, revisions, err
	}
	revisions, err = maker.List(ctx, s.Reader, others[0])
	return others[0], revisions, err
}

// named returns the extension with a name and its revisions. If the custom resource was installed
// with the former form of names, it returns that extension.
func (s *served) named(ctx context.Context, name string, object *unstructured.Unstructured) (chain string, revisions []olmv1alpha1.ClusterExtensionRevision, err error) {
	if revisions, err = maker.List(ctx, s.Reader, name); err != nil {
		return "", nil, err
	}
	former := s.mapping.FormerExtension(object)
	if former == "" || s.isOf(revisions, object) {
		return name, revisions, nil
	}
	installed, err := maker.List(ctx, s.Reader, former)
	if err != nil {
		return "", nil, err
	}
	if s.isOf(installed, object) {
		return former, installed, nil
	}
	return name, revisions, nil
}

// expectedOf returns the workloads among the manifests of a revision.
func (s *served) expectedOf(ctx context.Context, key string, newest *olmv1alpha1.ClusterExtensionRevision) ([]report.Workload, error) {
	s.mu.Lock()
	known := s.expected[key]
	s.mu.Unlock()
	if known.revision == string(newest.UID) {
		return known.workloads, nil
	}
	objects, err := s.Packs.Objects(ctx, revision.PackRoot(newest))
	if err != nil {
		return nil, fmt.Errorf("reading which workloads %s expects: %w", newest.Name, err)
	}
	known = expectation{revision: string(newest.UID)}
	for _, object := range objects {
		if object.Group != workloadGroup || !isWorkload(object.Kind) {
			continue
		}
		var manifest struct {
			Spec struct {
				Replicas *int64 `json:"replicas"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(object.JSON, &manifest); err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", object.ID, newest.Name, err)
		}
		replicas := manifest.Spec.Replicas
		known.workloads = append(known.workloads, report.Workload{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name, None: replicas != nil && *replicas == 0})
	}
	s.mu.Lock()
	s.expected[key] = known
	s.mu.Unlock()
	return known.workloads, nil
}
