package revision

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

type change = func(*olmv1alpha1.ClusterExtensionRevision)

// numbered returns an active revision of argocd.
func numbered(number int64, changes ...change) *olmv1alpha1.ClusterExtensionRevision {
	r := &olmv1alpha1.ClusterExtensionRevision{}
	r.Name, r.UID, r.CreationTimestamp = fmt.Sprint("argocd-", number), types.UID(fmt.Sprint("uid-of-", number)), metav1.NewTime(noon)
	r.Spec.Revision, r.Spec.LifecycleState = number, olmv1alpha1.LifecycleStateActive
	for _, change := range changes {
		change(r)
	}
	return r
}

func is(condition string) change {
	return func(r *olmv1alpha1.ClusterExtensionRevision) {
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.NewTime(noon)})
	}
}

func annotated(key, value string) change {
	return func(r *olmv1alpha1.ClusterExtensionRevision) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, value) }
}

func state(s olmv1alpha1.LifecycleState) change {
	return func(r *olmv1alpha1.ClusterExtensionRevision) { r.Spec.LifecycleState = s }
}

func deleted(r *olmv1alpha1.ClusterExtensionRevision) {
	r.DeletionTimestamp = &metav1.Time{Time: noon}
}

// listing gives a revision one phase with objects, each written "apiVersion kind name digest".
func listing(objects ...string) func(*olmv1alpha1.ClusterExtensionRevision) {
	return func(r *olmv1alpha1.ClusterExtensionRevision) {
		phase := olmv1alpha1.RevisionPhase{Name: "all"}
		for _, object := range objects {
			f := strings.Fields(object)
			phase.Objects = append(phase.Objects, olmv1alpha1.RevisionObject{
				APIVersion: f[0], Kind: f[1], Namespace: "argocd", Name: f[2], Digest: f[3],
			})
		}
		r.Spec.Phases = []olmv1alpha1.RevisionPhase{phase}
	}
}
