package status

import (
	"fmt"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

// revision is a revision with helper methods.
type revision struct {
	*olmv1alpha1.ClusterExtensionRevision
}

func (r revision) version() string { return r.Annotations[olmv1alpha1.VersionAnnotation] }

// title returns the revision's name and version for messages: argocd-2 (1.4.2).
func (r revision) title() string {
	if version := r.version(); version != "" {
		return fmt.Sprintf("%s (%s)", r.Name, version)
	}
	return r.Name
}

func (r revision) condition(kind string) *metav1.Condition {
	return meta.FindStatusCondition(r.Status.Conditions, kind)
}

func (r revision) is(kind string) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, kind)
}

func (r revision) paused() bool { return r.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused }

// bundle returns the bundle for the status, in the form that the definition of ClusterExtensions
// accepts; nil if the revision has no such bundle.
func (r revision) bundle() *extension.InstallStatus {
	name, version := r.Annotations[olmv1alpha1.BundleAnnotation], r.version()
	if name == "" {
		return nil
	}
	if _, err := semver.Parse(version); err != nil {
		return nil
	}
	bundle := extension.Bundle{Name: name, Version: version}
	if release, ok := r.Annotations[extension.ReleaseAnnotation]; ok && release != "" {
		bundle.Release = &release
	}
	return &extension.InstallStatus{Bundle: bundle}
}

// view holds the revisions of an extension by state, as in OLM v1.
type view struct {
	// installed is the newest revision that has succeeded, and is not archived or being deleted.
	installed *revision
	// rolling are the revisions that have not succeeded, oldest first. It excludes proposals,
	// archived revisions and revisions that are being deleted.
	rolling []revision
	// proposal is the newest revision, if it is a proposal that waits for approval.
	proposal *revision
	// newest is the revision with the highest number, archived or not.
	newest *revision
	// leaving is the number of revisions that are being deleted.
	leaving int
}

func look(revisions []*olmv1alpha1.ClusterExtensionRevision) view {
	var v view
	for i, one := range revisions {
		r := revision{one}
		if i == 0 {
			v.newest = &r
		}
		switch {
		case one.DeletionTimestamp != nil:
			v.leaving++
		case one.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived:
		case proposed(r):
			// An older, unapproved proposal is outdated by the newer revision.
			if i == 0 {
				v.proposal = &r
			}
		case !r.is(olmv1alpha1.ConditionSucceeded):
			v.rolling = append([]revision{r}, v.rolling...)
		case v.installed == nil:
			v.installed = &r
		}
	}
	return v
}

func proposed(r revision) bool {
	return r.paused() && r.Annotations[extension.ProposedAnnotation] == "true" && !r.is(olmv1alpha1.ConditionSucceeded)
}

// latest returns the newest revision that is being rolled out; nil for none.
func (v view) latest() *revision {
	if len(v.rolling) == 0 {
		return nil
	}
	return &v.rolling[len(v.rolling)-1]
}
