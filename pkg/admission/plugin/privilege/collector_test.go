package privilege

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// TestCollector: garbage collection may delete a revision with objects in another cluster when its
// owner does not exist. The user who added the owner needs the right to use that cluster.
func TestCollector(t *testing.T) {
	const account = "system:serviceaccount:kube-system:generic-garbage-collector"
	owned := func() *revision {
		r := rev(1, deployment(t, "web"))
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "olm.operatorframework.io/v1", Kind: "ClusterExtension", Name: "x", UID: "1"}}
		return r
	}
	cases := map[string]struct {
		reason    string
		who       string
		operation admission.Operation
		revision  func() *revision
		change    func(*revision)
		code      int32
	}{
		"Account":   {reason: "it deletes in its own name", who: account, operation: admission.Delete},
		"Manager":   {reason: "or in that of the controller manager", who: "system:kube-controller-manager", operation: admission.Delete},
		"Somebody":  {reason: "others need the right to use the cluster", who: "system:serviceaccount:default:generic-garbage-collector", operation: admission.Delete, code: forbidden},
		"Ownerless": {reason: "what has no owner is not for it", who: account, operation: admission.Delete, revision: func() *revision { return rev(1, deployment(t, "web")) }, code: forbidden},
		"Archive":   {reason: "it changes nothing else", who: account, operation: admission.Update, change: func(r *revision) { r.Spec.LifecycleState = olm.LifecycleStateArchived }, code: forbidden},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newSituation(t)
			w.target = "there"
			if tc.revision == nil {
				tc.revision = owned
			}
			old, updated := tc.revision(), (*revision)(nil)
			w.holds(old)
			if tc.operation == admission.Update {
				updated = tc.revision()
				tc.change(updated)
			}
			asked := attributes(tc.operation, updated, old, "")
			of := admission.NewAttributesRecord(asked.GetObject(), asked.GetOldObject(), asked.GetKind(), "", asked.GetName(), asked.GetResource(), "", tc.operation, nil, false, &user.DefaultInfo{Name: tc.who})
			want(t, tc.reason, w.plugin().Validate(t.Context(), of, nil), tc.code)
		})
	}
}
