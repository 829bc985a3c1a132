package observe

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// known is a view's answer about an object named x, and about an object that the view does not
// have.
type known struct {
	Object  string
	Healthy bool
	Trouble bool
}

// TestView tests the state machine with the events of a watch.
func TestView(t *testing.T) {
	down := errors.New("down")
	list := func(v *view) effect { return v.replace([]*Observation{{ID: id("x"), ResourceVersion: "5"}}, "7") }
	open := func(v *view) effect { return v.opened(false) }
	stream := func(v *view) effect { return v.opened(true) }
	shut := func(v *view) effect { v.closed(); return effect{} }
	lose := func(v *view) effect { return v.lost(down) }
	expire := func(v *view) effect { return v.lost(errNotResumed) }
	fail := func(v *view) effect { return v.failed(down) }
	refuse := func(v *view) effect {
		return v.failed(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil))
	}
	vanish := func(v *view) effect { return v.vanished(down) }

	type step struct {
		do   func(*view) effect
		news bool
		want known
	}
	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"ListThenWatch": {"a list alone says what is there, not what is absent now", []step{
			{list, false, known{Object: "5"}},
			{open, true, known{Object: "5", Healthy: true}},
		}},
		"StreamedList": {"nothing is believed before the list is complete", []step{
			{stream, false, known{}},
			{list, true, known{Object: "5", Healthy: true}},
		}},
		"Reopened": {"a stream that is opened again in time was never in trouble", []step{
			{list, false, known{Object: "5"}}, {open, true, known{Object: "5", Healthy: true}},
			{shut, false, known{Object: "5", Healthy: true}},
			{open, false, known{Object: "5", Healthy: true}},
			{lose, false, known{Object: "5", Healthy: true}},
		}},
		"WhyNotResumed": {"that a watch did not come back is told, and why, when that is found out, once", []step{
			{list, false, known{Object: "5"}}, {open, true, known{Object: "5", Healthy: true}}, {shut, false, known{Object: "5", Healthy: true}},
			{expire, true, known{Object: "5", Trouble: true}},
			{fail, true, known{Object: "5", Trouble: true}},
			{fail, false, known{Object: "5", Trouble: true}},
		}},
		"Lost": {"one that is not is", []step{
			{list, false, known{Object: "5"}}, {open, true, known{Object: "5", Healthy: true}},
			{shut, false, known{Object: "5", Healthy: true}},
			{lose, true, known{Object: "5", Trouble: true}},
			{open, true, known{Object: "5", Healthy: true}},
		}},
		"RelistedTooLate": {"open again, but the list does not come", []step{
			{list, false, known{Object: "5"}}, {open, true, known{Object: "5", Healthy: true}},
			{shut, false, known{Object: "5", Healthy: true}},
			{stream, false, known{Object: "5", Healthy: true}},
			{lose, true, known{Object: "5", Trouble: true}},
			{list, true, known{Object: "5", Healthy: true}},
		}},
		"FailedThenRelisted": {"after trouble an old list is not believed while a new one comes", []step{
			{list, false, known{Object: "5"}}, {open, true, known{Object: "5", Healthy: true}},
			{shut, false, known{Object: "5", Healthy: true}},
			{fail, true, known{Object: "5", Trouble: true}},
			{stream, false, known{Object: "5", Trouble: true}},
			{list, true, known{Object: "5", Healthy: true}},
		}},
		"FailedFirst": {"why nothing is known is news once", []step{
			{fail, true, known{Trouble: true}},
			{fail, false, known{Trouble: true}},
			{list, false, known{Object: "5", Trouble: true}},
			{open, true, known{Object: "5", Healthy: true}},
		}},
		"FailedOtherwise": {"another reason is news, once", []step{
			{fail, true, known{Trouble: true}},
			{refuse, true, known{Trouble: true}},
			{refuse, false, known{Trouble: true}},
			{fail, true, known{Trouble: true}},
		}},
		"Vanished": {"objects of a kind that is gone are not known, and the next stream starts afresh", []step{
			{list, false, known{Object: "5"}}, {open, true, known{Object: "5", Healthy: true}},
			{vanish, true, known{Trouble: true}},
			{open, false, known{Trouble: true}},
			{list, true, known{Object: "5", Healthy: true}},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := newView()
			for n, step := range tc.steps {
				if done := step.do(&v); done.state != step.news {
					t.Errorf("%s: step %d: want news %t", tc.reason, n, step.news)
				}
				a := v.see(types.NamespacedName{Namespace: "n", Name: "x"})
				got := known{Healthy: a.healthy, Trouble: a.trouble != nil}
				if a.object != nil {
					got.Object = a.object.ResourceVersion
				}
				if diff := cmp.Diff(step.want, got); diff != "" {
					t.Errorf("%s: step %d (-want +got):\n%s", tc.reason, n, diff)
				}
			}
		})
	}
}

// TestSourcesDisagree: several watches know, or knew, the same object.
func TestSourcesDisagree(t *testing.T) {
	v2 := want("x")
	v2.Version = "v2"
	label, named, other := targetOf(want("x")), targetOf(wantByName("x")), targetOf(v2)
	const nothing = ""
	type says struct {
		version string // of the object, or empty
		healthy bool
	}
	cases := map[string]struct {
		reason string
		says   map[target]says
		want   Presence
		which  string
	}{
		"BothPresent":         {"the newest state counts", map[target]says{label: {"9", true}, named: {"10", true}}, Present, "10"},
		"BothPresentReversed": {"whichever watch has it", map[target]says{label: {"10", true}, named: {"9", true}}, Present, "10"},
		"StaleLabel":          {"a healthy watch by name knows better than a failing one by label", map[target]says{label: {"9", false}, named: {nothing, true}}, Absent, ""},
		"StaleButNewer":       {"a healthy watch that sees it is believed", map[target]says{label: {"10", false}, named: {"9", true}}, Present, "9"},
		"StaleName":           {"a watch by label cannot say that it is gone", map[target]says{label: {nothing, true}, named: {"9", false}}, Present, "9"},
		"NameFails":           {"nor that it is absent", map[target]says{label: {nothing, true}, named: {nothing, false}}, Unknown, ""},
		"PresentWins":         {"one of them is late", map[target]says{label: {"9", true}, named: {nothing, true}}, Present, "9"},
		"OneVersionFails":     {"a version that is not served any more does not matter", map[target]says{label: {"9", false}, other: {nothing, true}}, Absent, ""},
		"AllFail":             {"the last that was seen", map[target]says{label: {"9", false}, other: {"10", false}}, Present, "10"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := newCache(Options{Mapping: newFakeServer().mapping, Names: names(), Notify: func(string) {}}, newFakeServer())
			if err != nil {
				t.Fatal(err)
			}
			interests := map[target]Interest{label: want("x"), named: wantByName("x"), other: v2}
			var wants []Interest
			for target := range tc.says {
				wants = append(wants, interests[target])
			}
			c.Want("a", wants...)
			for target, says := range tc.says {
				s := c.all[target].current
				var list []*Observation
				if says.version != nothing {
					list = append(list, &Observation{ID: id("x"), ResourceVersion: says.version})
				}
				s.replace(list, "11")
				if says.healthy {
					s.opened(false)
				}
			}
			seen, presence := c.Get(manifest.ID{Kind: "ConfigMap", Namespace: "n", Name: "x"})
			if presence != tc.want || presence == Present && seen.ResourceVersion != tc.which {
				t.Errorf("%s: want %s %s, got %s %s", tc.reason, tc.want, tc.which, presence, seen.ResourceVersion)
			}
		})
	}
}
