package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

func object(text string) manifest.Ref {
	what, digest, _ := strings.Cut(text, "@")
	kind, name, _ := strings.Cut(what, "/")
	return manifest.Ref{ID: manifest.ID{Kind: kind, Name: name}, Version: "v1", Digest: manifest.Digest(digest)}
}

func objects(texts ...string) []manifest.Ref {
	out := make([]manifest.Ref, len(texts))
	for i, text := range texts {
		out[i] = object(text)
	}
	return out
}

func TestCompareRevisions(t *testing.T) {
	cases := map[string]struct {
		reason        string
		before, after []manifest.Ref
		want          map[string]string
	}{
		"everything at once": {
			"identity decides what is the same object, and the digest whether it changed",
			objects("A/same@1", "A/changed@1", "A/gone@1", "B/gone@1"),
			objects("B/same@1", "A/changed@2", "A/same@1"),
			map[string]string{"changed": "A changed", "added": "B same", "pruned": "A gone, B gone", "same": "A same"},
		},
		"first": {
			"everything is new", nil, objects("A/a@1"),
			map[string]string{"added": "A a"},
		},
		"nothing": {"", nil, nil, map[string]string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			change := compareRevisions(tc.before, tc.after)
			got := map[string]string{}
			for what, ids := range map[string][]manifest.ID{
				"changed": change.Changed, "added": change.Added, "pruned": change.Pruned, "same": change.Same,
			} {
				if len(ids) > 0 {
					got[what] = strings.Join(shorts(ids), ", ")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMiddle(t *testing.T) {
	cases := map[string]struct {
		reason string
		writes []manifest.Ref
		want   string
	}{
		"half way":         {"of what comes before the first Deployment", objects("A/1", "A/2", "A/3", "A/4", "Deployment/5", "B/6"), "A 3"},
		"Deployments only": {"there is nothing else", objects("Deployment/1", "Deployment/2"), "Deployment 1"},
		"no Deployment":    {"half way of all", objects("A/1", "A/2"), "A 2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := short(middle(tc.writes).ID); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestMistyped(t *testing.T) {
	cases := map[string]struct{ reason, image, want string }{
		"tag":         {"only this name, not one that begins so", "quay.io/jetstack/webhook:v1", `s#image: quay.io/jetstack/\(webhook:\)#image: registry.invalid/\1#`},
		"digest":      {"the digest may stay", "quay.io/webhook@sha256:0", `s#image: quay.io/\(webhook@\)#image: registry.invalid/\1#`},
		"neither":     {"to the end of the line", "quay.io/webhook", `s#image: quay.io/\(webhook$\)#image: registry.invalid/\1#`},
		"no registry": {"the default one", "nginx:1", `s#image: \(nginx:\)#image: registry.invalid/\1#`},
		"port":        {"a colon of the registry is not that of the tag", "localhost:5000/a:1", `s#image: localhost:5000/\(a:\)#image: registry.invalid/\1#`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := mistyped(tc.image); got != tc.want {
				t.Errorf("%s:\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

// revision returns a revision with the phases "crds" (two objects), "roles" (one) and "deploy"
// (two), in the given states.
func revision(states ...olmv1alpha1.PhaseState) *olmv1alpha1.ClusterExtensionRevision {
	r := &olmv1alpha1.ClusterExtensionRevision{}
	r.Generation, r.Status.ObservedGeneration = 2, 2
	add := func(phase string, names ...string) {
		p := olmv1alpha1.RevisionPhase{Name: phase}
		for _, name := range names {
			ref := object(name)
			p.Objects = append(p.Objects, olmv1alpha1.RevisionObject{APIVersion: "v1", Kind: ref.Kind, Name: ref.Name})
		}
		r.Spec.Phases = append(r.Spec.Phases, p)
	}
	add("crds", "CRD/a", "CRD/b")
	add("roles", "Role/a")
	add("deploy", "Deployment/a", "Service/b")
	for i, state := range states {
		r.Status.Phases = append(r.Status.Phases, olmv1alpha1.PhaseStatus{Name: r.Spec.Phases[i].Name, State: state})
	}
	return r
}

const (
	available   = olmv1alpha1.PhaseStateAvailable
	progressing = olmv1alpha1.PhaseStateProgressing
	pending     = olmv1alpha1.PhaseStatePending
)

func TestProgress(t *testing.T) {
	began := time.Now()
	written := map[manifest.ID]bool{object("CRD/a").ID: true, object("CRD/b").ID: true, object("Deployment/a").ID: true}
	p := newProgress(began, written)
	steps := []struct {
		reason  string
		state   *olmv1alpha1.ClusterExtensionRevision
		want    []string
		waiting string
	}{
		{"nothing is known yet", revision(), nil, ""},
		{"the first phase is not done", revision(progressing, pending, pending), nil, "crds: Progressing"},
		{"the first is done, the second has nothing to do", revision(available, available, progressing), []string{"crds     1.50 s  2 CRD"}, "deploy: Progressing"},
		{"what was told is not told again", revision(available, available, progressing), nil, "deploy: Progressing"},
		{"one object of the last phase is written", revision(available, available, available), []string{"deploy   1.50 s  1 Deployment"}, ""},
	}
	for _, step := range steps {
		lines, waiting := p.news(step.state, began.Add(1500*time.Millisecond))
		if diff := cmp.Diff(step.want, lines); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", step.reason, diff)
		}
		if waiting != step.waiting {
			t.Errorf("%s: it waits for %q, want %q", step.reason, waiting, step.waiting)
		}
	}
	if n := p.asBefore(revision()); n != 1 {
		t.Errorf("%d phases are as before, want 1", n)
	}
	old := revision(available, available, available)
	old.Generation++
	if lines, _ := newProgress(began, written).news(old, began); lines != nil {
		t.Errorf("the status of an earlier generation is news: %v", lines)
	}
}

func TestRolledOut(t *testing.T) {
	good := func(change func(*olmv1alpha1.ClusterExtensionRevision)) *olmv1alpha1.ClusterExtensionRevision {
		r := revision(available, available, available)
		r.Status.Conditions = []metav1.Condition{
			{Type: olmv1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue},
			{Type: olmv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue},
			{Type: olmv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse},
		}
		change(r)
		return r
	}
	cases := map[string]struct {
		reason   string
		revision *olmv1alpha1.ClusterExtensionRevision
		want     bool
	}{
		"all": {"everything is there", good(func(*olmv1alpha1.ClusterExtensionRevision) {}), true},
		"stale": {
			"the status is of an earlier generation",
			good(func(r *olmv1alpha1.ClusterExtensionRevision) { r.Generation++ }), false,
		},
		"superseded": {
			"a newer revision has some of the objects: right after it is archived this is still so",
			good(func(r *olmv1alpha1.ClusterExtensionRevision) { r.Status.Phases[0].Superseded = 1 }), false,
		},
		"progressing": {
			"there is something left to do",
			good(func(r *olmv1alpha1.ClusterExtensionRevision) { r.Status.Conditions[2].Status = metav1.ConditionTrue }), false,
		},
		"without status": {"nothing is known", revision(), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rolledOut(tc.revision); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

func TestOnlyCulprit(t *testing.T) {
	failing := func(kinds ...string) *olmv1alpha1.ClusterExtensionRevision {
		r := revision(available, available, progressing)
		for _, kind := range kinds {
			r.Status.Phases[2].Failing = append(r.Status.Phases[2].Failing, olmv1alpha1.ObjectFailure{Kind: kind, Namespace: "n", Name: "a", Message: "waits"})
		}
		return r
	}
	cases := map[string]struct {
		reason   string
		revision *olmv1alpha1.ClusterExtensionRevision
		want     string
	}{
		"one":        {"phase, object, message", failing("Deployment"), "deploy Deployment.apps n/a waits"},
		"two":        {"not yet only one", failing("Deployment", "Deployment"), ""},
		"other kind": {"an image cannot be the reason", failing("CRD"), ""},
		"none":       {"nothing fails", failing(), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := onlyCulprit(tc.revision)
			got := ""
			if found.phase != "" {
				got = found.phase + " " + found.id.String() + " " + found.message
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestStrangersAndRewritten(t *testing.T) {
	wanted := objects("A/good@1", "A/other@1", "A/foreign@1", "A/absent@1")
	found := map[manifest.ID]*live{
		wanted[0].ID: {UID: "g", Generation: 3, Applied: "1", Chain: "x"},
		wanted[1].ID: {UID: "o", Generation: 1, Applied: "2", Chain: "x"},
		wanted[2].ID: {UID: "f", Generation: 1, Applied: "1", Chain: "y"},
	}
	want := []string{"A other has the content 2, not 1", `A foreign belongs to extension "y"`, "A absent does not exist"}
	if diff := cmp.Diff(want, strangers("x", wanted, found)); diff != "" {
		t.Errorf("strangers: (-want +got)\n%s", diff)
	}

	then := map[manifest.ID]*live{
		wanted[0].ID: {UID: "g", Generation: 2},
		wanted[1].ID: {UID: "before", Generation: 1},
		wanted[2].ID: {UID: "f", Generation: 1},
	}
	ids := []manifest.ID{wanted[0].ID, wanted[1].ID, wanted[2].ID, wanted[3].ID}
	want = []string{"A other is another object: uid o was before", "A absent was or is not there"}
	if diff := cmp.Diff(want, rewritten(ids, 1, then, found)); diff != "" {
		t.Errorf("one write each: (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"A good has generation 3, was 2"}, rewritten(ids[:1], 0, then, found)); diff != "" {
		t.Errorf("no write: (-want +got)\n%s", diff)
	}
}
