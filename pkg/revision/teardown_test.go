package revision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
)

func TestTeardownOf(t *testing.T) {
	id := func(name string) manifest.ID { return manifest.ID{Kind: "ConfigMap", Namespace: "n", Name: name} }
	revision := func(number int64, state olmv1alpha1.LifecycleState, change func(*olmv1alpha1.ClusterExtensionRevision), names ...string) olmv1alpha1.ClusterExtensionRevision {
		r := olmv1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "e-" + string(rune('0'+number))}}
		r.Spec.Revision, r.Spec.LifecycleState = number, state
		phase := olmv1alpha1.RevisionPhase{Name: "all"}
		for _, name := range names {
			phase.Objects = append(phase.Objects, olmv1alpha1.RevisionObject{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: name})
		}
		r.Spec.Phases = []olmv1alpha1.RevisionPhase{phase}
		if change != nil {
			change(&r)
		}
		return r
	}
	deleting := func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	orphan := func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Spec.TeardownPolicy = olmv1alpha1.TeardownPolicyOrphan
	}
	adopted := func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Spec.AdoptedTeardownPolicy = olmv1alpha1.TeardownPolicyDelete
	}
	const active, paused, archived = olmv1alpha1.LifecycleStateActive, olmv1alpha1.LifecycleStatePaused, olmv1alpha1.LifecycleStateArchived
	type revisions = []olmv1alpha1.ClusterExtensionRevision
	entry := func(number int64) rollout.Entry { return rollout.Entry{UID: "u", Revision: number} }
	kept := func(number int64) rollout.Entry {
		return rollout.Entry{UID: "u", Revision: number, Adopted: true}
	}
	type entries = map[string]rollout.Entry
	for name, tc := range map[string]struct {
		reason string
		// all are the revisions; the test deletes the first.
		all     revisions
		orphans bool
		has     entries
		want    Teardown
	}{
		"Only":          {"all goes", revisions{revision(1, active, nil, "a", "b")}, false, entries{"a": entry(1), "b": entry(1)}, Teardown{Deleted: []manifest.ID{id("a"), id("b")}}},
		"NotReached":    {"what was never made does not go", revisions{revision(1, active, nil, "a", "b")}, false, entries{"a": entry(1), "b": {Revision: 1}}, Teardown{Deleted: []manifest.ID{id("a")}}},
		"FallsBack":     {"an older one that is active lists it", revisions{revision(2, active, nil, "a", "b"), revision(1, active, nil, "a")}, false, entries{"a": entry(2), "b": entry(2)}, Teardown{Deleted: []manifest.ID{id("b")}, Listed: []manifest.ID{id("a")}, By: "e-1"}},
		"Archived":      {"an archived one lists nothing", revisions{revision(2, active, nil, "a"), revision(1, archived, nil, "a")}, false, entries{"a": entry(2)}, Teardown{Deleted: []manifest.ID{id("a")}}},
		"BeingDeleted":  {"nor does one that is going", revisions{revision(2, active, nil, "a"), revision(1, active, deleting, "a")}, false, entries{"a": entry(2)}, Teardown{Deleted: []manifest.ID{id("a")}}},
		"NewestLists":   {"of several the newest is named", revisions{revision(1, active, nil, "a"), revision(3, active, nil, "a"), revision(2, active, nil, "a")}, false, entries{"a": entry(3)}, Teardown{Listed: []manifest.ID{id("a")}, By: "e-3"}},
		"OldOne":        {"an archived one has nothing any more", revisions{revision(1, archived, nil, "a"), revision(2, active, nil, "a")}, false, entries{"a": entry(2)}, Teardown{}},
		"Asked":         {"an archived one whose objects are asked about takes them along", revisions{revision(1, archived, nil, "a", "b"), revision(2, active, nil, "a")}, false, entries{"a": entry(2), "b": entry(1)}, Teardown{Deleted: []manifest.ID{id("b")}}},
		"OldContent":    {"it lists what has the content of one before it", revisions{revision(2, active, nil, "a"), revision(1, archived, nil, "a")}, false, entries{"a": entry(1)}, Teardown{Deleted: []manifest.ID{id("a")}}},
		"Orphan":        {"its policy leaves all", revisions{revision(1, active, orphan, "a")}, false, entries{"a": entry(1)}, Teardown{Orphaned: []manifest.ID{id("a")}}},
		"AsksForOrphan": {"the request leaves all", revisions{revision(1, active, nil, "a")}, true, entries{"a": entry(1)}, Teardown{Orphaned: []manifest.ID{id("a")}}},
		"Adopted":       {"what existed before stays", revisions{revision(1, active, nil, "a", "b")}, false, entries{"a": kept(1), "b": entry(1)}, Teardown{Deleted: []manifest.ID{id("b")}, Adopted: []manifest.ID{id("a")}}},
		"AdoptedGoes":   {"unless the policy says otherwise", revisions{revision(1, active, adopted, "a")}, false, entries{"a": kept(1)}, Teardown{Deleted: []manifest.ID{id("a")}}},
		"Paused":        {"nothing goes meanwhile", revisions{revision(1, active, nil, "a"), revision(2, paused, nil, "b")}, false, entries{"a": entry(1)}, Teardown{Deleted: []manifest.ID{id("a")}, Paused: "e-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			inventory := rollout.Inventory{Entries: map[manifest.ID]rollout.Entry{}}
			for name, entry := range tc.has {
				inventory.Entries[id(name)] = entry
			}
			if diff := cmp.Diff(tc.want, TeardownOf(&tc.all[0], tc.orphans, tc.all, inventory)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	t.Run("Order", func(t *testing.T) {
		ids := []manifest.ID{id("a"), {Kind: "PersistentVolumeClaim", Namespace: "n", Name: "a"}, {Kind: "Namespace", Name: "n"}, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "c"}}
		for i := range ids[1:] {
			if heaviestFirst(ids[i+1], ids[i]) >= 0 {
				t.Errorf("%s is not before %s", ids[i+1], ids[i])
			}
		}
	})
}
