package validation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

var (
	plainDigest = "sha256:" + strings.Repeat("a", 64)
	keyedDigest = "hmac-sha256:" + strings.Repeat("b", 64)
)

// change is the change that a case makes to a valid revision.
type change func(*olm.ClusterExtensionRevision)

// revision returns a valid argocd-3 after changes: a ConfigMap and a Secret in
// phase config, a Deployment in phase deploy, and one probe.
func revision(changes ...change) *olm.ClusterExtensionRevision {
	r := &olm.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: "argocd-3", UID: "u", ResourceVersion: "1", Generation: 2,
			Labels: map[string]string{v1alpha1.ChainLabel: "argocd"},
		},
		Spec: olm.ClusterExtensionRevisionSpec{
			Revision:              3,
			LifecycleState:        olm.LifecycleStateActive,
			CollisionProtection:   olm.CollisionProtectionPrevent,
			OnFailure:             olm.OnFailureNone,
			TeardownPolicy:        olm.TeardownPolicyDelete,
			AdoptedTeardownPolicy: olm.TeardownPolicyOrphan,
			Previous:              []olm.PreviousRevision{{Name: "argocd-2"}, {Name: "argocd-1"}},
			Phases: []olm.RevisionPhase{
				{Name: "config", Objects: []olm.RevisionObject{object("v1", "ConfigMap", "cm"), object("v1", "Secret", "s")}},
				{Name: "deploy", Objects: []olm.RevisionObject{object("apps/v1", "Deployment", "server")}},
			},
			ProgressionProbes: []olm.ProgressionProbe{{
				Selector:   olm.ProbeSelector{GroupKind: &metav1.GroupKind{Group: "apps", Kind: "Deployment"}},
				Assertions: []olm.ProbeAssertion{{ConditionEqual: &olm.ConditionEqual{Type: "Available", Status: metav1.ConditionTrue}}},
			}},
		},
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

func object(apiVersion, kind, name string) olm.RevisionObject {
	o := olm.RevisionObject{APIVersion: apiVersion, Kind: kind, Namespace: "argocd", Name: name, Digest: plainDigest, Size: 100}
	if kind == "Secret" {
		o.Digest, o.Size = keyedDigest, 0
	}
	return o
}

// named changes chain and number of the revision consistently.
func named(chain string, number int64) change {
	return func(r *olm.ClusterExtensionRevision) {
		r.Name = olm.RevisionName(chain, number)
		r.Spec.Revision = number
		r.Labels[v1alpha1.ChainLabel] = chain
		r.Spec.Previous = nil
	}
}

func withSpec(change func(*olm.ClusterExtensionRevisionSpec)) change {
	return func(r *olm.ClusterExtensionRevision) { change(&r.Spec) }
}

// withObject changes the first object of the first phase, ConfigMap argocd/cm.
func withObject(change func(*olm.RevisionObject)) change {
	return func(r *olm.ClusterExtensionRevision) { change(&r.Spec.Phases[0].Objects[0]) }
}

func withProbe(change func(*olm.ProgressionProbe)) change {
	return func(r *olm.ClusterExtensionRevision) { change(&r.Spec.ProgressionProbes[0]) }
}

func withAssertion(assertion olm.ProbeAssertion) change {
	return withProbe(func(p *olm.ProgressionProbe) { p.Assertions[0] = assertion })
}

func withStatus(change func(*olm.ClusterExtensionRevisionStatus)) change {
	return func(r *olm.ClusterExtensionRevision) { change(&r.Status) }
}

// numbered returns phases with the given number of objects each.
func numbered(phases, objects int) []olm.RevisionPhase {
	out := make([]olm.RevisionPhase, phases)
	for i := range out {
		out[i].Name = fmt.Sprintf("p%d", i)
		for j := range objects {
			out[i].Objects = append(out[i].Objects, object("v1", "ConfigMap", fmt.Sprintf("cm-%d-%d", i, j)))
		}
	}
	return out
}

// checkErrors compares errors by "<type> <field>", and checks that the first error contains a text.
func checkErrors(t *testing.T, reason string, got field.ErrorList, want []string, mentions string) {
	t.Helper()
	var found []string
	for _, err := range got {
		found = append(found, string(err.Type)+" "+err.Field)
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("%s (-want +got):\n%s\n%v", reason, diff, got)
		return
	}
	if mentions != "" && (len(got) == 0 || !strings.Contains(got[0].Error(), mentions)) {
		t.Errorf("%s: the message does not mention %q:\n%v", reason, mentions, got)
	}
}

const (
	invalid      = string(field.ErrorTypeInvalid) + " "
	missing      = string(field.ErrorTypeRequired) + " "
	duplicate    = string(field.ErrorTypeDuplicate) + " "
	notSupported = string(field.ErrorTypeNotSupported) + " "
	many         = string(field.ErrorTypeTooMany) + " "
	long         = string(field.ErrorTypeTooLong) + " "
)
