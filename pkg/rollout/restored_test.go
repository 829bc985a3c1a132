package rollout

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// TestFieldRestored: the engine recognises objects of two extensions that Velero restored, in the
// same and in another cluster. The key of the Secret's digest is lost with its store.
func TestFieldRestored(t *testing.T) {
	const cases = "../../../shared/data/field-cases/plans"
	names := observe.Names{ChainLabel: "penstock.dev/chain", AppliedAnnotation: "penstock.dev/applied", ManagerPrefix: "penstock/"}
	for chain, files := range map[string][2]string{"shop": {"16-velero/restored.json", "09-revision-backup/v1/all.yaml"}, "dr": {"16-velero/dr-restored.json", "16-velero/dr/all.yaml"}} {
		raw, err := os.ReadFile(filepath.Join(cases, files[0]))
		if err != nil {
			t.Skipf("the cases of the field are kept beside the repository: %v", err)
		}
		var list struct{ Items []map[string]any }
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		wanted := map[manifest.ID]manifest.Ref{}
		text, err := os.ReadFile(filepath.Join(cases, files[1]))
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(text), "\n---") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			made, err := manifest.Digester{SecretKey: []byte("0123456789abcdef0123456789abcdef")}.New(object)
			if err != nil {
				t.Fatal(err)
			}
			wanted[made.ID] = made.Ref
		}
		who := Identity{Chain: chain, Manager: "penstock/" + chain}
		for _, item := range list.Items {
			live := &unstructured.Unstructured{Object: item}
			live.SetUID("restored")
			live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "velero-server", Operation: metav1.ManagedFieldsOperationUpdate}}) // as the server records a create
			seen := Seen{Presence: observe.Present, Observation: names.Observe(live)}
			step := stage.Step{Ref: wanted[seen.ID], Policy: stage.Policy{Adopt: stage.AdoptNever}}
			if step.Digest == "" {
				t.Fatalf("%s is in no manifest of %s", seen.ID, chain)
			}
			for name, memo := range map[string]*Entry{"with the record": {UID: "before", Digest: step.Digest, ResourceVersion: "1"}, "without it": nil} {
				if got := Decide(who, step, seen, memo); got.Action != Adopt {
					t.Errorf("%s %s, %s: %s %s", chain, seen.ID, name, got.Action, got.Message)
				}
			}
		}
	}
}

// TestNobodyIsAdvisedToDeleteData: the message of a collision never advises the deletion of an
// object that contains data, even of a create-only object.
func TestNobodyIsAdvisedToDeleteData(t *testing.T) {
	who := Identity{Chain: "shop", Manager: "penstock/shop"}
	foreign := observe.Observation{UID: "theirs"}
	memo := &Entry{UID: "ours", ResourceVersion: "1"}
	for kind, advises := range map[string]bool{"Secret": false, "PersistentVolumeClaim": false, "Namespace": false, "ConfigMap": true} {
		step := stage.Step{Ref: manifest.Ref{ID: manifest.ID{Kind: kind, Name: "x"}}}
		got := Decide(who, step, Seen{Presence: observe.Present, Observation: foreign}, memo)
		if got.Action != Collision || strings.Contains(got.Message, "when it is deleted") != advises {
			t.Errorf("%s: %s %s", kind, got.Action, got.Message)
		}
	}
	created := observe.Observation{UID: "once", Entries: []observe.Entry{{Manager: who.Manager}}}
	if got := Decide(who, stage.Step{}, Seen{Presence: observe.Present, Observation: created}, nil); got.Action != Collision || !strings.Contains(got.Message, "was created by this extension") {
		t.Errorf("an object that was create-only: %s %s", got.Action, got.Message)
	}
}
