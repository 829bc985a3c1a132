package olm_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/store/chain"
)

// TestDeleteDryRun: a dry-run of a deletion lists the objects that would be deleted, up to a limit,
// and changes nothing. Users who may get the revision see names. Other users see only numbers.
func TestDeleteDryRun(t *testing.T) {
	s := newServer(t, settings{})
	s.rules.deny("blind", "get clusterextensionrevisions e-1")
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	inventory := chain.Inventory{}
	has := func(group, kind, namespace, name string, adopted bool) {
		inventory.Entries = append(inventory.Entries, chain.Entry{Group: group, Version: "v1", Kind: kind, Namespace: namespace, Name: name, UID: types.UID(name), Revision: 1, Adopted: adopted})
	}
	for i := range 30 {
		has("", "ConfigMap", "default", fmt.Sprintf("m%02d-%s", i, strings.Repeat("x", 200)), false)
	}
	has("", "Namespace", "", "mine", true)
	has("", "Namespace", "", "operator", false)
	has("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com", false)
	if _, err := chain.NewInventories(s.etcd, prefix).Save(t.Context(), "e", inventory, 0); err != nil {
		t.Fatal(err)
	}
	tries := func(user, query string) []string {
		t.Helper()
		var warnings []string
		s.unchanged(func() {
			warnings = s.do(call{method: http.MethodDelete, path: revisions + "/e-1?dryRun=All" + query, user: user}).want(t, http.StatusOK).warnings
		})
		return warnings
	}
	got := tries("alice", "")
	all := strings.Join(got, "\n")
	for i, want := range []string{
		"would delete 32 objects: 30 ConfigMap, 1 CustomResourceDefinition.apiextensions.k8s.io, 1 Namespace",
		"would leave 1 object, which existed before the extension: Namespace mine",
		"would delete CustomResourceDefinition.apiextensions.k8s.io widgets.example.com, with all of its instances", "would delete Namespace operator, with all that is in it", "would delete ConfigMap default/m00-"} {
		if i >= len(got) || !strings.Contains(got[i], want) {
			t.Errorf("%d. is not %q:\n%s", i+1, want, all)
		}
	}
	if len(got) != 23 || !strings.Contains(got[len(got)-1], "would delete 12 more") {
		t.Errorf("%d warnings of %d bytes:\n%s", len(got), len(all), all)
	}
	if got := strings.Join(tries("alice", "&propagationPolicy=Orphan"), "\n"); !strings.Contains(got, "would leave 33 objects, as the policy Orphan says") || !strings.Contains(got, "would delete no object") {
		t.Errorf("orphaned: %s", got)
	}
	if got := strings.Join(tries("blind", ""), "\n"); !strings.Contains(got, "would delete 32 objects: 30 ConfigMap, 1 CustomResourceDefinition.apiextensions.k8s.io, 1 Namespace") || strings.Contains(got, "operator") || strings.Contains(got, "mine") {
		t.Errorf("who cannot get the revision is told: %s", got)
	}
	if got := s.delete("e-1", nil).want(t, http.StatusOK).warnings; len(got) > 0 {
		t.Errorf("a real deletion warns of %q", got)
	}
}

// TestDeletedBy: a revision that is being deleted records the user who deleted it. No client can
// set this record.
func TestDeletedBy(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", nil)).want(t, http.StatusCreated)
	const key = "penstock.dev/deleted-by"
	by := func() any { return at(s.get("e-1"), "metadata", "annotations", key) }
	s.patch("e-1", mergePatch, object{"metadata": object{"annotations": object{key: "mallory"}}}).want(t, http.StatusOK)
	if got := by(); got != nil {
		t.Errorf("a client says %v", got)
	}
	for _, user := range []string{"alice", "bob"} {
		s.do(call{method: http.MethodDelete, path: revisions + "/e-1", user: user}).want(t, http.StatusOK)
		if got := by(); got != "alice" {
			t.Errorf("it says %v", got)
		}
	}
}
