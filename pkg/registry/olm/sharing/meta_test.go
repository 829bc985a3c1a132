package sharing

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// Requesters that are equal in everything are one.
func TestShareRequester(t *testing.T) {
	anna := func(change func(*olm.Requester)) *olm.Requester {
		requester := &olm.Requester{
			Username: "anna", UID: "1", Groups: []string{"admins", "devs"},
			Extra: map[string]olm.ExtraValue{"scope": {"all", "more"}, "key": {"x"}},
		}
		change(requester)
		return requester
	}
	entries := NewEntries()
	first := entries.shareRequester(anna(func(*olm.Requester) {}))
	for name, tc := range map[string]struct {
		change func(*olm.Requester)
		same   bool
	}{
		"Equal":      {func(*olm.Requester) {}, true},
		"Name":       {func(r *olm.Requester) { r.Username = "ben" }, false},
		"UID":        {func(r *olm.Requester) { r.UID = "2" }, false},
		"Group":      {func(r *olm.Requester) { r.Groups[1] = "ops" }, false},
		"FewerGroup": {func(r *olm.Requester) { r.Groups = r.Groups[:1] }, false},
		"Extra":      {func(r *olm.Requester) { r.Extra["scope"] = olm.ExtraValue{"more", "all"} }, false},
		"MoreExtra":  {func(r *olm.Requester) { r.Extra["other"] = nil }, false},
		"NoExtra":    {func(r *olm.Requester) { r.Extra = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := anna(tc.change)
			got := entries.shareRequester(anna(tc.change))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the requester has changed (-want +got):\n%s", diff)
			}
			if (got == first) != tc.same {
				t.Errorf("the same memory: %t, want %t", got == first, tc.same)
			}
		})
	}
	if entries.shareRequester(nil) != nil {
		t.Error("nobody has become somebody")
	}
}

// Fields of managers that are equal are one piece of memory.
func TestShareFields(t *testing.T) {
	entries := NewEntries()
	fields := func(name string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: "nobody"}, {Manager: name, FieldsV1: metav1.NewFieldsV1(`{"f:` + name + `":{}}`)}}
	}
	one, two, other := fields("a"), fields("a"), fields("b")
	for name, managers := range map[string][]metav1.ManagedFieldsEntry{"a": one, "b": other} {
		entries.shareFields(managers)
		if diff := cmp.Diff(fields(name), managers); diff != "" {
			t.Errorf("managers have changed (-want +got):\n%s", diff)
		}
	}
	entries.shareFields(two)
	if one[1].FieldsV1 != two[1].FieldsV1 {
		t.Error("equal fields are there twice")
	}
	if one[1].FieldsV1 == other[1].FieldsV1 {
		t.Error("fields that differ are one")
	}
}
