package chain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/manifest/release"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// packed is a fake of packs, all with the same bodies.
type packed struct {
	bodies map[manifest.Digest][]byte
	broken error
	reads  int
}

func (p *packed) Read(context.Context, string) (map[manifest.Digest][]byte, error) {
	p.reads++
	return p.bodies, p.broken
}

// marked returns a phase of ConfigMaps with annotations in JSON, by name, and their manifests. The
// revision has the same marks, unless the name ends in "-unsaid".
func marked(annotations map[string]string) (func(*olmv1alpha1.ClusterExtensionRevision), map[manifest.Digest][]byte) {
	bodies := map[manifest.Digest][]byte{}
	phase := olmv1alpha1.RevisionPhase{Name: "all"}
	for _, name := range []string{"a", "b", "c", "c-unsaid"} {
		given, ok := annotations[name]
		if !ok {
			continue
		}
		entry := olmv1alpha1.RevisionObject{APIVersion: "v1", Kind: "ConfigMap", Namespace: "argocd", Name: name, Digest: "sha256:" + name}
		object := manifest.Object{Ref: references.To(entry), JSON: fmt.Appendf(nil, `{"metadata":{"annotations":%s}}`, given)}
		mark, _ := release.MarkOf(object)
		if !strings.HasSuffix(name, "-unsaid") {
			entry.CreateOnly, entry.InstallLevel = mark.CreateOnly, int32(mark.Level)
		}
		phase.Objects = append(phase.Objects, entry)
		bodies[object.Digest] = object.JSON
	}
	return func(r *olmv1alpha1.ClusterExtensionRevision) { r.Spec.Phases = []olmv1alpha1.RevisionPhase{phase} }, bodies
}

func level(value string) string {
	return fmt.Sprintf(`{"release.openshift.io/create-only":"true","release.openshift.io/install-level":%s}`, value)
}

// vetting prepares a pass over a chain with one revision and its manifests.
func vetting(t *testing.T, annotations map[string]string) (*setting, *packed) {
	t.Helper()
	change, bodies := marked(annotations)
	s := set(t, numbered(1, change))
	packs := &packed{bodies: bodies}
	s.library, s.compiled = newLibrary(packs), lru.New(10)
	s.scope.manifests = newManifestCache(s.library, s.revisions, s.known)
	return s, packs
}

func TestVet(t *testing.T) {
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		reached     int
		want        []string
	}{
		"Fine": {reason: "levels that exist", annotations: map[string]string{"a": level(`"0"`), "b": level(`"1"`), "c": `{}`}},
		"All": {
			reason: "all offenders, sorted", annotations: map[string]string{"b": level(`"2"`), "a": level(`1`), "c": level(`"1"`)},
			want: []string{
				"nothing was applied: 2 annotations cannot be rolled out as written",
				`ConfigMap argocd/a: annotation release.openshift.io/install-level is 1, want "0" or "1"`,
				`ConfigMap argocd/b: annotation release.openshift.io/install-level is "2", want "0" or "1"`,
			},
		},
		"Unsaid": {
			reason: "stored by a release that did not read them", annotations: map[string]string{"c-unsaid": `{"release.openshift.io/create-only":"true"}`},
			want: []string{"ConfigMap argocd/c-unsaid", "an earlier Penstock stored it"},
		},
		"Begun": {reason: "what was begun goes on as it began", reached: 1, annotations: map[string]string{"c-unsaid": level(`"1"`)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, packs := vetting(t, tc.annotations)
			s.ledger.inventory.Reached[string(s.revisions[0].UID)] = tc.reached
			err := s.vet(t.Context(), &s.revisions[0])
			var manifests *manifestsError
			if (len(tc.want) > 0) != errors.As(err, &manifests) {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			at := 0
			for _, part := range tc.want {
				found := strings.Index(err.Error()[at:], part)
				if found < 0 {
					t.Fatalf("%s: %q is missing or out of order in %v", tc.reason, part, err)
				}
				at += found
			}
			if again := s.vet(t.Context(), &s.revisions[0]); fmt.Sprint(again) != fmt.Sprint(err) {
				t.Errorf("the next pass says something else: %v", again)
			}
			if most := map[bool]int{true: 0, false: 1}[tc.reached > 0]; packs.reads > most {
				t.Errorf("the pack was read %d times, want %d", packs.reads, most)
			}
		})
	}
}

// TestUnvettedManifestsAreNotRead: if a revision cannot be vetted, a later successful read in the
// same pass does not let it through.
func TestUnvettedManifestsAreNotRead(t *testing.T) {
	s, packs := vetting(t, map[string]string{"a": level(`"2"`)})
	packs.broken = errors.New("etcd is away")
	if err := s.vet(t.Context(), &s.revisions[0]); err != nil {
		t.Fatalf("the engine is to report it, as of any manifest: %v", err)
	}
	packs.broken = nil
	if _, err := s.scope.manifests.Body(t.Context(), references.Of(&s.revisions[0])[0]); err == nil {
		t.Error("the manifest was read in the same pass")
	}
	if err := s.vet(t.Context(), &s.revisions[0]); err == nil {
		t.Error("the next pass does not look again")
	}
}

func TestInvalidManifestsInStatus(t *testing.T) {
	err := &manifestsError{}
	for i := range 200 {
		err.offences = append(err.offences, release.Offence{
			ID: manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: fmt.Sprint("c-", i)}, Annotation: release.InstallLevelAnnotation, Value: `"2"`, Allowed: `want "0" or "1"`,
		})
	}
	got := status(revision(), finding{invalid: err}, noon)
	c := meta.FindStatusCondition(got.Conditions, olmv1alpha1.ConditionFailing)
	if c.Status != metav1.ConditionTrue || c.Reason != "InvalidManifests" || !strings.Contains(c.Message, "ConfigMap a/c-0: ") {
		t.Errorf("got %+v", c)
	}
	if len(c.Message) > maxOffencesLength || !strings.Contains(c.Message, " more") {
		t.Errorf("the message has %d bytes and ends in %q", len(c.Message), c.Message[len(c.Message)-40:])
	}
}

// TestModeIsDecidedOnce: the stored state decides whether this is an installation, not the next
// state. (An earlier version read the wrong state.)
func TestModeIsDecidedOnce(t *testing.T) {
	cases := map[string]struct {
		reason    string
		succeeded bool
		reached   int
		recorded  bool
		level     string
		want      bool
	}{
		"Install":        {reason: "nothing succeeded yet", level: `"1"`, want: true},
		"Update":         {reason: "something did once", level: `"1"`, succeeded: true},
		"NoLevels":       {reason: "there is nothing to order", level: `"0"`},
		"StaysInstall":   {reason: "that it succeeded meanwhile changes no order that was begun", level: `"1"`, succeeded: true, reached: 2, recorded: true, want: true},
		"StaysUpdate":    {reason: "nor does a head that was lost", level: `"1"`, reached: 2},
		"NotYetRecorded": {reason: "what was recorded before anything was reached counts for nothing", level: `"1"`, succeeded: true, recorded: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, _ := vetting(t, map[string]string{"a": level(tc.level)})
			key := string(s.revisions[0].UID)
			s.heads.head.Succeeded = tc.succeeded
			s.ledger.inventory.Reached[key] = tc.reached
			if tc.recorded {
				s.ledger.inventory.Levels = map[string]bool{key: true}
			}
			got, err := s.byLevels(t.Context(), &s.revisions[0])
			if err != nil || got != tc.want {
				t.Errorf("%s: got %v, %v", tc.reason, got, err)
			}
			compiled, err := s.scope.layer(t.Context(), &s.revisions[0], got)
			if err != nil {
				t.Fatal(err)
			}
			if levels := ordered(s.ledger.inventory.Levels, compiled); levels[key] != tc.want {
				t.Errorf("%s: recorded %v", tc.reason, levels)
			}
		})
	}
}

func TestModeUnknown(t *testing.T) {
	s, _ := vetting(t, map[string]string{"a": level(`"1"`)})
	s.heads.broken = errors.New("etcd is away")
	if _, err := s.byLevels(t.Context(), &s.revisions[0]); err == nil {
		t.Error("a missing answer was taken for one")
	}
}

func TestLevelsOfTheInventoryAreKept(t *testing.T) {
	in := rollout.Inventory{Entries: map[manifest.ID]rollout.Entry{}, Reached: map[string]int{"uid-of-1": 2, "gone": 1}, Levels: map[string]bool{"uid-of-1": true, "gone": true}}
	if diff := cmp.Diff(in, rev.Inventory(rev.StoredInventory(in))); diff != "" {
		t.Errorf("through the store (-want +got):\n%s", diff)
	}
	l := &ledger{inventory: in}
	kept, _ := l.forget([]olmv1alpha1.ClusterExtensionRevision{*numbered(1)})
	if diff := cmp.Diff(map[string]bool{"uid-of-1": true}, kept.Levels); diff != "" {
		t.Errorf("of revisions that are there (-want +got):\n%s", diff)
	}
}

func TestWaitingForLevel(t *testing.T) {
	blocked := failure(rollout.ReasonProbe, false)
	other := blocked
	other.Name = "other"
	needs := manifest.ID{Kind: "ConfigMap", Namespace: "argocd", Name: "defaults"}
	level := &rollout.LevelReport{Number: 0, Objects: 5, Waiting: 2, Failures: []rollout.Failure{blocked, other}}
	layer := report(rollout.PhaseReport{Name: "deploy", Reached: true, Objects: 1, Applied: 1, Failures: []rollout.Failure{blocked}}, false)
	layer.Level = level
	found := finding{layer: layer, newest: true, inverted: []release.Inversion{
		{Object: blocked.ID, Needs: needs}, {Object: manifest.ID{Kind: "Pod", Name: "ready"}, Needs: needs},
	}}
	got := status(revision(), found, noon)
	c := meta.FindStatusCondition(got.Conditions, olmv1alpha1.ConditionProgressing)
	want := "install level 0: 2 of 5 objects not ready (Deployment.apps argocd/server: 0 of 1 replicas available; and 1 more); 2 objects of later levels wait; " +
		"Deployment.apps argocd/server, of install level 0, needs ConfigMap argocd/defaults, which is of install level 1"
	if c.Status != metav1.ConditionTrue || c.Reason != "WaitingForLevel" || c.Message != want {
		t.Errorf("got %s %s: %s", c.Status, c.Reason, c.Message)
	}
	level.Waiting = 0
	got = status(revision(), found, noon)
	if c := meta.FindStatusCondition(got.Conditions, olmv1alpha1.ConditionProgressing); c.Reason != reasonRollingOut {
		t.Errorf("at the last level nothing waits for a level: %s", c.Reason)
	}
}

// TestStatusConflictIsNotSuccess: a status that could not be written causes another pass. (An
// earlier version returned a conflict as success.)
func TestStatusConflictIsNotSuccess(t *testing.T) {
	s := set(t, numbered(1))
	s.meanwhile(t, 1)
	next := s.revisions[0].Status.DeepCopy()
	next.ObservedGeneration = 7
	if err := s.update(t.Context(), &s.revisions[0], *next); err != nil {
		t.Fatal(err)
	}
	if !s.stale || s.next() == 0 {
		t.Error("nobody will try again")
	}
}
