package rollout

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
)

func paths(t *testing.T, texts ...string) []manifest.FieldPath {
	t.Helper()
	var out []manifest.FieldPath
	for _, text := range texts {
		path, err := manifest.ParseFieldPath(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, path)
	}
	return out
}

func TestYielding(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	wanted := object(t, `{"metadata":{"labels":{"app":"x"}},"spec":{"replicas":2,"template":{"spec":{"containers":[
		{"name":"main","image":"x:1","resources":{"requests":{"cpu":"1"}}},{"name":"side","image":"y:1"}]}}}}`)
	image := `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:image":{}}}}}}}`
	cpu := `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:resources":{"f:requests":{"f:cpu":{}}}}}}}}}`
	replicas := `{"f:spec":{"f:replicas":{}}}`
	cases := map[string]struct {
		reason string
		policy []string
		taken  []string
		live   []metav1.ManagedFieldsEntry
		want   yields
	}{
		"scale": {
			reason: "an autoscaler needs no permission", live: []metav1.ManagedFieldsEntry{through("scale", managed("hpa", update, replicas))},
			want: yields{"spec.replicas": "hpa"},
		},
		"not through scale": {reason: "an edit is an edit", live: []metav1.ManagedFieldsEntry{managed("kubectl-edit", update, replicas)}},
		"listed": {
			reason: "what the policy lists is left to anyone", policy: []string{"spec.replicas"},
			live: []metav1.ManagedFieldsEntry{managed("kubectl-edit", update, replicas)}, want: yields{"spec.replicas": "kubectl-edit"},
		},
		"below": {
			reason: "and what is below it, to the very field", policy: []string{"spec.template.spec.containers[*].resources"},
			live: []metav1.ManagedFieldsEntry{managed("vpa", update, cpu), managed("editor", update, image)},
			want: yields{"spec.template.spec.containers[name=main].resources.requests.cpu": "vpa"},
		},
		"one item": {
			reason: "items are told apart by their keys", policy: []string{"spec.template.spec.containers[name=side].image"},
			live: []metav1.ManagedFieldsEntry{managed("editor", update, image)},
		},
		"ours too": {
			reason: "who agrees with us took nothing",
			live:   []metav1.ManagedFieldsEntry{through("scale", managed("hpa", update, replicas)), managed(manager, apply, replicas)},
		},
		"not in the manifest": {
			reason: "what we do not set cannot be yielded", policy: []string{"spec.paused"},
			live: []metav1.ManagedFieldsEntry{managed("editor", update, `{"f:spec":{"f:paused":{}}}`)},
		},
		"taken": {
			reason: "whose fields were just taken over has none", policy: []string{"spec.replicas"}, taken: []string{"helm"},
			live: []metav1.ManagedFieldsEntry{managed("helm", update, replicas)},
		},
		"wiped": {
			reason: "nobody is behind fields from before the first apply", policy: []string{"spec.replicas"},
			live: []metav1.ManagedFieldsEntry{managed(firstApply, update, replicas)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := yielding(wanted, tc.live, manager, paths(t, tc.policy...), tc.taken)
			if !maps.Equal(got, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestCut(t *testing.T) {
	manifest := object(t, `{"spec":{"replicas":2,"ports":[{"port":80,"protocol":"TCP","nodePort":1},{"port":80,"protocol":"UDP","nodePort":2}]}}`)
	cut(manifest, []string{"spec.replicas", "spec.ports[port=80,protocol=UDP].nodePort", "spec.absent", "spec.ports[port=81].nodePort"})
	want := object(t, `{"spec":{"ports":[{"port":80,"protocol":"TCP","nodePort":1},{"port":80,"protocol":"UDP"}]}}`)
	if diff := cmp.Diff(want, manifest); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestYields: what an autoscaler took stays its own, through repairs, upgrades, restarts
// and adoption, until it gives the field up or the object is made anew.
func TestYields(t *testing.T) {
	s := newSaga()
	x := refOf("Deployment.apps a/x").ID
	s.roll(t, s.revision(1).phase("deploy", "Deployment.apps a/x=1,more"))
	scale := func(to string) { s.alter(x, func(o *thing) { o.set("data:value", to, "autoscaler@scale") }) }
	is := func(when, value string, writes ...string) {
		t.Helper()
		if got := s.content("Deployment.apps a/x"); got != value {
			t.Errorf("%s: the value is %q, want %q", when, got, value)
		}
		got, _ := s.spent()
		got = slices.DeleteFunc(got, func(w string) bool { return w == "save  " })
		if diff := cmp.Diff(writes, got); writes != nil && diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", when, diff)
		}
	}
	// settle empties what was spent: count by hand.
	pass := func() Report {
		t.Helper()
		report, err := s.pass()
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	s.spent()
	scale("5")
	report := pass()
	is("scaled", "5", []string{}...)
	if len(report.Events) != 1 || report.Events[0].Reason != "Yielded" || report.Events[0].Message != "left fields of Deployment.apps a/x: .data.value to autoscaler" {
		t.Errorf("events: %v", report.Events)
	}
	if got := s.stored.Entries[x].Yielded; !slices.Equal(got, []string{"data.value"}) {
		t.Errorf("remembered: %v", got)
	}
	s.settle(t)
	scale("6")
	s.settle(t)
	is("scaled again", "6")

	s.restart()
	s.roll(t, s.revision(2).phase("deploy", "Deployment.apps a/x=2,most"))
	is("upgraded", "6")
	if o := s.objects[x]; o.fields["data:most"].value != "set" || o.fields["data:more"].value != "" {
		t.Errorf("the other fields are not those of the new manifest: %+v", o)
	}
	// It scales while nobody looks, and the next revision comes first.
	s.lagging = true
	scale("7")
	s.roll(t, s.revision(3).phase("deploy", "Deployment.apps a/x=3"))
	s.lagging = false
	s.settle(t)
	is("scaled unseen", "7")

	s.alter(x, func(o *thing) { delete(o.fields, "data:value") })
	s.settle(t)
	is("let go", "3")
	scale("8")
	s.settle(t)
	s.erase(x)
	s.settle(t)
	is("made anew", "3")
	if got := s.stored.Entries[x].Yielded; len(got) > 0 {
		t.Errorf("a new object has nothing yielded: %v", got)
	}
}

// TestInventoryEqual: whatever differs is stored.
func TestInventoryEqual(t *testing.T) {
	full := Entry{Version: "v1", UID: "u", Revision: 1, Digest: "d", ManagedEntry: "m", Generation: 1, ResourceVersion: "1", Rank: 1, Yielded: []string{"a"}}
	if !full.equal(full) {
		t.Error("it does not equal itself")
	}
	for name, change := range map[string]func(*Entry){
		"version":  func(e *Entry) { e.Version = "v2" },
		"uid":      func(e *Entry) { e.UID = "" },
		"revision": func(e *Entry) { e.Revision++ },
		"digest":   func(e *Entry) { e.Digest = "" },
		"entry":    func(e *Entry) { e.ManagedEntry = "" },
		"gen":      func(e *Entry) { e.Generation++ },
		"rv":       func(e *Entry) { e.ResourceVersion = "" },
		"rank":     func(e *Entry) { e.Rank++ },
		"yielded":  func(e *Entry) { e.Yielded = nil },
	} {
		other := full
		if change(&other); full.equal(other) {
			t.Errorf("%s: a difference is not seen", name)
		}
	}
}
