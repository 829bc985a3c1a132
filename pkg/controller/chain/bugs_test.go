package chain

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// TestB8OptionsDoNotReplaceEachOther: of what a revision, a phase and an object say
// the nearest counts, for that one thing; everything else stays as it was said. (The
// number is that of docs/reference/engine-conformance.md.)
func TestB8OptionsDoNotReplaceEachOther(t *testing.T) {
	r := numbered(1, listing("v1 ConfigMap a sha256:1", "v1 ConfigMap b sha256:2"))
	r.Spec.CollisionProtection = olmv1alpha1.CollisionProtectionNone
	r.Spec.Phases[0].CollisionProtection = olmv1alpha1.CollisionProtectionIfNoController
	r.Spec.Phases[0].Objects[0].CollisionProtection = olmv1alpha1.CollisionProtectionPrevent
	r.Spec.Yield = []olmv1alpha1.YieldRule{{Selector: olmv1alpha1.YieldSelector{GroupKind: metav1.GroupKind{Kind: "ConfigMap"}}, Fields: []string{"data.a"}}}
	steps := phases(r)[0].Steps
	for i, want := range []stage.Adoption{stage.AdoptNever, stage.AdoptUncontrolled} {
		if got := steps[i].Policy; got.Adopt != want || len(got.Yield) != 1 {
			t.Errorf("%s: adopts %v and yields %v, want %v and one", steps[i].Name, got.Adopt, got.Yield, want)
		}
	}
}
