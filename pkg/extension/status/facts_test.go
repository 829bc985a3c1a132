package status

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

var start = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

type change func(*Facts)

// facts returns the facts of a settled extension argocd of generation 1.
func facts(changes ...change) Facts {
	f := Facts{
		Extension: &extension.Extension{ObjectMeta: metav1.ObjectMeta{Name: "argocd", Generation: 1}, Spec: extension.Spec{
			Namespace: "argocd", Source: extension.Source{SourceType: extension.SourceCatalog, Catalog: &extension.Catalog{PackageName: "argocd"}},
		}},
		Outcome: Outcome{Result: Settled}, Deprecations: &Deprecations{}, Upgrades: &Upgrades{Newest: "1.0.0"}, Now: start,
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

// with adds revisions, given oldest first.
func with(revisions ...*olmv1alpha1.ClusterExtensionRevision) change {
	return func(f *Facts) {
		for _, one := range revisions {
			f.Revisions = append([]*olmv1alpha1.ClusterExtensionRevision{one}, f.Revisions...)
		}
	}
}

func generation(n int64) change { return func(f *Facts) { f.Extension.Generation = n } }

func outcome(result Result, message, why string) change {
	return func(f *Facts) {
		f.Outcome = Outcome{Result: result, Message: message, Why: why, Bundle: &Bundle{Name: "argocd.v1.1.0", Version: "1.1.0"}}
	}
}

func upgrades(found *Upgrades) change { return func(f *Facts) { f.Upgrades = found } }

type edit func(*olmv1alpha1.ClusterExtensionRevision)

// rev returns a revision argocd-n of version 1.n-1.0, with conditions written as
// "Type=Status/Reason: message".
func rev(n int64, edits ...any) *olmv1alpha1.ClusterExtensionRevision {
	version := fmt.Sprintf("1.%d.0", n-1)
	r := &olmv1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("argocd-%d", n), Annotations: map[string]string{
		olmv1alpha1.VersionAnnotation: version, olmv1alpha1.BundleAnnotation: "argocd.v" + version,
		olmv1alpha1.ReferenceAnnotation: "quay.io/argocd@sha256:" + fmt.Sprint(n), extension.GenerationAnnotation: "1", extension.ChannelAnnotation: "stable",
	}}}
	r.Spec.Revision, r.Spec.LifecycleState = n, olmv1alpha1.LifecycleStateActive
	for _, one := range edits {
		switch one := one.(type) {
		case string:
			kind, rest, _ := strings.Cut(one, "=")
			status, rest, _ := strings.Cut(rest, "/")
			reason, message, _ := strings.Cut(rest, ": ")
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message})
		case []string:
			for _, each := range one {
				r.Status.Conditions = append(r.Status.Conditions, rev(1, each).Status.Conditions...)
			}
		case edit:
			one(r)
		}
	}
	return r
}

var (
	well    = []string{"Available=True/RolledOut: all", "Progressing=False/RolledOut: done", "Succeeded=True/RolledOut: once", "Failing=False/NoFailure: nothing fails", "Stalled=False/NotStalled: nothing", "Ready=True/RolledOut: 3 objects"}
	rolling = []string{"Available=False/RollingOut: phase deploy", "Progressing=True/RollingOut: phase deploy (2 of 2): Deployment argocd/server: 0 of 1", "Succeeded=False/NotYet: not yet", "Failing=False/NoFailure: nothing fails", "Stalled=False/NotStalled: nothing", "Ready=False/NotYet: not yet"}
)

func failing(reason, cause string) edit {
	return func(r *olmv1alpha1.ClusterExtensionRevision) {
		failure := olmv1alpha1.ObjectFailure{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "argocd", Name: "server", Reason: reason, Message: "0 of 1 replicas available"}
		if cause != "" {
			failure.Cause = &olmv1alpha1.FailureCause{Reason: cause}
		}
		r.Status.Phases = []olmv1alpha1.PhaseStatus{
			{Name: "crds", State: olmv1alpha1.PhaseStateAvailable, Objects: 2, Applied: 2, Available: 2},
			{Name: "deploy", State: olmv1alpha1.PhaseStateProgressing, Objects: 3, Applied: 3, Available: 1, Failing: []olmv1alpha1.ObjectFailure{failure}, FailingOmitted: 1},
		}
	}
}

func annotated(key, value string) edit {
	return func(r *olmv1alpha1.ClusterExtensionRevision) { r.Annotations[key] = value }
}

func lifecycle(state olmv1alpha1.LifecycleState) edit {
	return func(r *olmv1alpha1.ClusterExtensionRevision) { r.Spec.LifecycleState = state }
}

func proposedFor(generation string) edit {
	return func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Spec.LifecycleState = olmv1alpha1.LifecycleStatePaused
		r.Annotations[extension.ProposedAnnotation], r.Annotations[extension.GenerationAnnotation] = "true", generation
	}
}

// line formats a condition as status/reason: message.
func line(conditions []metav1.Condition, kind string) string {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
}
