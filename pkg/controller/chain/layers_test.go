package chain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/store/pack"
)

func nameOf(number int64) string   { return fmt.Sprint("argocd-", number) }
func uidOf(number int64) types.UID { return types.UID(fmt.Sprint("uid-of-", number)) }

// listing gives a revision one phase of objects, by "apiVersion kind name digest".
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

func TestLayer(t *testing.T) {
	r := numbered(2, listing("apps/v1 Deployment server sha256:1", "v1 ConfigMap settings sha256:2"),
		state(olmv1alpha1.LifecycleStatePaused))
	got, err := layer(r, false)
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
			if got := isLayer(tc.revision); got != tc.want {
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
	got, err := layer(r, false)
	if err != nil || len(got.Stages[0].Gates) != 1 {
		t.Fatalf("the ConfigMap has a gate: %v, %v", got, err)
	}
	bad := good
	bad.Assertions = []olmv1alpha1.ProbeAssertion{{CEL: &olmv1alpha1.CELAssertion{Expression: "self.("}}}
	r.Spec.ProgressionProbes = []olmv1alpha1.ProgressionProbe{bad}
	if _, err := layer(r, false); err == nil || !strings.Contains(err.Error(), "argocd-1") {
		t.Errorf("an expression that does not parse is an error that names the revision: %v", err)
	}
}

// packs are packs by root; opened counts.
type packs struct {
	bodies map[string]map[manifest.Digest][]byte
	opened int
}

func (p *packs) Read(_ context.Context, root string) (map[manifest.Digest][]byte, error) {
	p.opened++
	bodies, ok := p.bodies[root]
	if !ok {
		return nil, errors.New("there is no such pack")
	}
	return bodies, nil
}

func TestShelf(t *testing.T) {
	one := numbered(1, listing("v1 ConfigMap a sha256:1", "v1 ConfigMap b sha256:2"))
	two := numbered(2, listing("v1 ConfigMap a sha256:3"))
	revisions := []olmv1alpha1.ClusterExtensionRevision{*two, *one}
	stored := &packs{bodies: map[string]map[manifest.Digest][]byte{
		pack.Root(refs(one)): {"sha256:1": []byte("one"), "sha256:2": []byte("two")},
		pack.Root(refs(two)): {},
	}}
	library := newLibrary(stored)
	known := (&recollections{}).open("argocd", revisions)
	s := newShelf(library, revisions, known)
	for range 2 {
		for digest, want := range map[manifest.Digest]string{"sha256:1": "one", "sha256:2": "two"} {
			if got, err := s.Body(t.Context(), manifest.Ref{Digest: digest}); err != nil || string(got) != want {
				t.Errorf("%s is %q, %v", digest, got, err)
			}
		}
	}
	if stored.opened != 1 {
		t.Errorf("one pack was opened %d times", stored.opened)
	}
	for name, digest := range map[string]manifest.Digest{"of no revision": "sha256:9", "not in its pack": "sha256:3"} {
		if got, err := s.Body(t.Context(), manifest.Ref{Digest: digest}); err == nil || !strings.Contains(err.Error(), string(digest)) {
			t.Errorf("a body %s: %q, %v", name, got, err)
		}
	}
	library.close(known)
	if library.open.Len() != 0 {
		t.Error("packs of a chain at rest stay in memory")
	}
}
