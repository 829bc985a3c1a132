package revision

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

func TestLayer(t *testing.T) {
	r := numbered(2, listing("apps/v1 Deployment server sha256:1", "v1 ConfigMap settings sha256:2"),
		state(olmv1alpha1.LifecycleStatePaused))
	got, err := Layer(r, false)
	if err != nil {
		t.Fatal(err)
	}
	if got.Key != "uid-of-2" || got.Revision != 2 || !got.Paused {
		t.Errorf("the layer is %s, %d, paused %t", got.Key, got.Revision, got.Paused)
	}
	var refs []string
	for _, stg := range got.Stages {
		for _, step := range stg.Steps {
			refs = append(refs, fmt.Sprintf("%s %s %s gates=%d", step.APIVersion(), step.ID, step.Digest, len(stg.Gates)))
		}
	}
	want := []string{"v1 ConfigMap argocd/settings sha256:2 gates=0", "apps/v1 Deployment.apps argocd/server sha256:1 gates=1"}
	if diff := cmp.Diff(want, refs); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

func TestCollisionProtectionCascades(t *testing.T) {
	prevent, none, ifNone := olmv1alpha1.CollisionProtectionPrevent, olmv1alpha1.CollisionProtectionNone, olmv1alpha1.CollisionProtectionIfNoController
	cases := map[string]struct {
		reason                  string
		revision, phase, object olmv1alpha1.CollisionProtection
		want                    stage.Adoption
	}{
		"none said":       {"what is not said is Prevent", "", "", "", stage.AdoptNever},
		"revision":        {"it holds for everything in it", none, "", "", stage.AdoptAlways},
		"phase":           {"the phase knows better", none, ifNone, "", stage.AdoptUncontrolled},
		"object":          {"the object knows best", none, ifNone, prevent, stage.AdoptNever},
		"object, looser":  {"also when it allows more", prevent, prevent, none, stage.AdoptAlways},
		"unknown, strict": {"what is not known allows nothing", "Whatever", "", "", stage.AdoptNever},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := numbered(1, listing("v1 ConfigMap settings sha256:1"))
			r.Spec.CollisionProtection = tc.revision
			r.Spec.Phases[0].CollisionProtection = tc.phase
			r.Spec.Phases[0].Objects[0].CollisionProtection = tc.object
			if got := phases(r)[0].Steps[0].Policy.Adopt; got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestIsLayer(t *testing.T) {
	cases := map[string]struct {
		revision *olmv1alpha1.ClusterExtensionRevision
		want     bool
	}{
		"active":           {numbered(1), true},
		"paused":           {numbered(1, state(olmv1alpha1.LifecycleStatePaused)), true},
		"archived":         {numbered(1, state(olmv1alpha1.LifecycleStateArchived)), false},
		"deleted":          {numbered(1, deleted), false},
		"paused, deleted":  {numbered(1, state(olmv1alpha1.LifecycleStatePaused), deleted), false},
		"no defaults yet?": {numbered(1, state("")), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsLayer(tc.revision); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestProbesOfARevision(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	good := olmv1alpha1.ProgressionProbe{
		Selector:   olmv1alpha1.ProbeSelector{GroupKind: &metav1.GroupKind{Kind: "ConfigMap"}, LabelSelector: selector},
		Assertions: []olmv1alpha1.ProbeAssertion{{FieldValue: &olmv1alpha1.FieldValue{FieldPath: "data.ready", Value: "yes"}}},
	}
	r := numbered(1, listing("v1 ConfigMap settings sha256:1"))
	r.Spec.ProgressionProbes = []olmv1alpha1.ProgressionProbe{good}
	got, err := Layer(r, false)
	if err != nil || len(got.Stages[0].Gates) != 1 {
		t.Fatalf("the ConfigMap has a gate: %v, %v", got, err)
	}
	bad := good
	bad.Assertions = []olmv1alpha1.ProbeAssertion{{CEL: &olmv1alpha1.CELAssertion{Expression: "self.("}}}
	r.Spec.ProgressionProbes = []olmv1alpha1.ProgressionProbe{bad}
	if _, err := Layer(r, false); err == nil || !strings.Contains(err.Error(), "argocd-1") {
		t.Errorf("an expression that does not parse is an error that names the revision: %v", err)
	}
}

// TestB8OptionsDoNotReplaceEachOther: an option of an object overrides the same option of its phase
// and revision. Other options stay unchanged. The number is from docs/reference/conformance.md.
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

func TestYieldRules(t *testing.T) {
	deployments := metav1.GroupKind{Group: "apps", Kind: "Deployment"}
	rules := []olmv1alpha1.YieldRule{
		{Selector: olmv1alpha1.YieldSelector{GroupKind: deployments}, Fields: []string{"spec.replicas"}},
		{Selector: olmv1alpha1.YieldSelector{GroupKind: deployments, Namespace: "a"}, Fields: []string{"spec.paused"}},
		{Selector: olmv1alpha1.YieldSelector{GroupKind: deployments, Name: "x"}, Fields: []string{"spec.minReadySeconds"}},
	}
	cases := map[string]struct {
		reason, apiVersion, namespace, name string
		want                                []string
	}{
		"all":     {"every rule selects it", "apps/v1", "a", "x", []string{"spec.replicas", "spec.paused", "spec.minReadySeconds"}},
		"kind":    {"a kind of any name", "apps/v1", "b", "y", []string{"spec.replicas"}},
		"name":    {"a name in any namespace", "apps/v1", "b", "x", []string{"spec.replicas", "spec.minReadySeconds"}},
		"version": {"whatever its version", "apps/v1beta1", "b", "y", []string{"spec.replicas"}},
		"group":   {"another group is another kind", "example.com/v1", "a", "x", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, path := range yield(rules, olmv1alpha1.RevisionObject{APIVersion: tc.apiVersion, Kind: "Deployment", Namespace: tc.namespace, Name: tc.name}) {
				got = append(got, path.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
