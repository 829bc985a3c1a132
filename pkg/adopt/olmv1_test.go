package adopt

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// TestAtRest: only a finished rollout of operator-controller is adopted.
func TestAtRest(t *testing.T) {
	one := func(number int64, state string, succeeded bool) set {
		out := set{}
		out.Kind, out.Name = "ClusterObjectSet", "x-"+string(rune('0'+number))
		out.Spec.Revision, out.Spec.LifecycleState = number, state
		if succeeded {
			out.Status.Conditions = []metav1.Condition{{Type: "Succeeded", Status: metav1.ConditionTrue}}
		}
		return out
	}
	now := metav1.Now()
	going := one(1, "Archived", true)
	going.DeletionTimestamp = &now
	for name, tc := range map[string]struct {
		sets []set
		says string
	}{
		"one":            {sets: []set{one(1, "Active", true)}},
		"upgraded":       {sets: []set{one(3, "Active", true), one(2, "Archived", false), one(1, "Archived", true)}},
		"in a rollout":   {sets: []set{one(2, "Active", false), one(1, "Active", true)}, says: "ClusterObjectSet/x-2 has not succeeded"},
		"two are active": {sets: []set{one(2, "Active", true), one(1, "Active", true)}, says: "x-2 and ClusterObjectSet/x-1 are both active"},
		"archived":       {sets: []set{one(1, "Archived", true)}, says: "is archived"},
		"going":          {sets: []set{one(2, "Active", true), going}, says: "x-1 is being deleted"},
		"of two kinds":   {sets: []set{one(1, "Active", true), one(1, "Archived", true)}, says: "the same number"},
	} {
		t.Run(name, func(t *testing.T) {
			err := atRest(tc.sets)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

// TestWithoutOwners: only the owners are removed, in lines of JSON and in YAML.
func TestWithoutOwners(t *testing.T) {
	for name, tc := range map[string]struct {
		manifests, want string
		owned           bool
	}{
		"lines": {
			manifests: `{"kind":"A","metadata":{"name":"a","ownerReferences":[{"uid":"u"}]},"spec":{"n":9007199254740993}}` + "\n" + `{"kind":"B"}` + "\n",
			want:      "---\n" + `{"kind":"A","metadata":{"name":"a"},"spec":{"n":9007199254740993}}` + "\n---\n" + `{"kind":"B"}` + "\n", owned: true,
		},
		"documents": {manifests: "---\nkind: A\n---\n\n---\nkind: B\n", want: "---\n" + `{"kind":"A"}` + "\n---\n" + `{"kind":"B"}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, owned, err := withoutOwners(tc.manifests)
			if err != nil || owned != tc.owned || got != tc.want {
				t.Errorf("got %q, %t, %v", got, owned, err)
			}
		})
	}
}

// TestJoined: the new owner has one entry, with the fields that it inherits and the fields that it
// wrote itself.
func TestJoined(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, version, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: version, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	o := &origin{newOwner: targetclient.NewOwner{Manager: "olm", Operation: metav1.ManagedFieldsOperationApply}}
	got := o.joined([]metav1.ManagedFieldsEntry{
		entry("other", metav1.ManagedFieldsOperationUpdate, "v1", `{"f:x":{}}`),
		entry("olm", metav1.ManagedFieldsOperationUpdate, "v1", `{"f:b":{}}`),
		entry("olm", metav1.ManagedFieldsOperationApply, "v1", `{"f:a":{}}`),
		entry("olm", metav1.ManagedFieldsOperationUpdate, "v2", `{"f:c":{}}`),
	})
	var named []string
	for _, one := range got {
		raw, err := one.FieldsV1.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		named = append(named, one.Manager+" "+string(one.Operation)+" "+one.APIVersion+" "+string(raw))
	}
	want := []string{`other Update v1 {"f:x":{}}`, `olm Apply v1 {"f:a":{},"f:b":{}}`, `olm Update v2 {"f:c":{}}`}
	if diff := cmp.Diff(want, named); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOLMv1Obstacles: a difference prevents the adoption, unless Overwrite is set.
func TestOLMv1Obstacles(t *testing.T) {
	for state, says := range map[State]string{
		Same: "", Ours: "", Others: "ConfigMap a/x: why", Unknown: "ConfigMap a/x: why",
		Differs: "differs from ClusterObjectSet/x-1 in why", Gone: "is missing",
	} {
		plan := &OLMv1Plan{From: "ClusterObjectSet/x-1", Taken: Taken{Objects: []Object{{ID: manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: "x"}, State: state, Detail: "why"}}}}
		if got := strings.Join(plan.Obstacles(), ";"); (got == "") != (says == "") || !strings.Contains(got, says) {
			t.Errorf("%s: got %q", state, got)
		}
		plan.overwrite = true
		if got := plan.Obstacles(); (len(got) == 0) != (says == "" || state == Differs || state == Gone) {
			t.Errorf("%s, overwritten: got %q", state, got)
		}
	}
}
