package revision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

func TestInventorySurvivesItsStore(t *testing.T) {
	want := rollout.Inventory{
		Entries: map[manifest.ID]rollout.Entry{
			objectID("server"): {
				Version: "v1", UID: "uid-1", Revision: 3, Digest: "sha256:1", ManagedEntry: "entry",
				Generation: 7, ResourceVersion: "42", Rank: 5, Yielded: []string{"spec.replicas"},
			},
			objectID("intent"):                      {Version: "v1", Revision: 4, Rank: 1},
			{Kind: "Namespace", Name: "argocd"}:     {Version: "v1", UID: "uid-2"},
			{Group: "b", Kind: "A", Name: "twin"}:   {Version: "v1", UID: "uid-3"},
			{Group: "b", Kind: "A", Namespace: "a"}: {Version: "v1", UID: "uid-4"},
		},
		Reached: map[string]int{"uid-of-3": 4, "uid-of-4": 0},
		Repairs: []rollout.RepairRecord{{ID: objectID("server"), Revision: 3, Manager: "mallory", Lost: "lost", Count: 2, First: time.Unix(1, 0), Last: time.Unix(2, 0)}},
	}
	if diff := cmp.Diff(want, Inventory(StoredInventory(want))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(rollout.Inventory{}, Inventory(store.Inventory{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("a chain without inventory (-want +got):\n%s", diff)
	}
}

func objectID(name string) manifest.ID {
	return manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "argocd", Name: name}
}
