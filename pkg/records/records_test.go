package records

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/run"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

func TestDecoders(t *testing.T) {
	keys := store.NewKeys("/p")
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
	revision := `{"metadata":{"name":"argocd-2"},"spec":{"phases":[{"objects":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","digest":"` + digest + `"}]}]}}`
	memory := storetest.NewMemory()
	body, err := json.Marshal(map[string]string{"manifests": "m", "captured": "c"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.New(memory, "/p").Put(t.Context(), "plan", run.Row{Plan: "uid", Number: 1, Body: body}); err != nil {
		t.Fatal(err)
	}
	runs, err := store.Get(t.Context(), memory, keys.Runs("plan"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(resource, name string) string { return keys.All() + "g.io/" + resource + "/" + name }
	for name, tc := range map[string]struct {
		reason, key, record string
		want                []string
		damaged             bool
	}{
		"revision":     {reason: "what it lists has a root", key: at("clusterextensionrevisions", "argocd-2"), record: revision, want: []string{pack.Root([]manifest.Ref{{Digest: digest}})}},
		"another's":    {reason: "a record at the key of another object is damage", key: at("clusterextensionrevisions", "argocd-3"), record: revision, damaged: true},
		"no JSON":      {reason: "what it refers to is not known", key: at("clusterextensionrevisions", "argocd-2"), record: `{"spec":1}`, damaged: true},
		"no record":    {reason: "what it refers to is not known", key: at("clusterextensionrevisions", "argocd-2"), record: "?", damaged: true},
		"plan":         {reason: "what it applies, and what was there", key: at("configurationplans", "p"), record: `{"metadata":{"name":"p"},"status":{"manifests":"m","captured":"c"}}`, want: []string{"m", "c"}},
		"another plan": {reason: "a record at the key of another object is damage", key: at("configurationplans", "p"), record: `{"metadata":{"name":"q"}}`, damaged: true},
		"young plan":   {reason: "nothing yet; empty roots are none", key: at("configurationplans", "p"), record: `{"metadata":{"name":"p"}}`, want: []string{"", ""}},
		"runs":         {reason: "they outlive their plan", key: keys.Runs("plan"), record: string(runs.Bytes), want: []string{"m", "c"}},
		"head":         {reason: "rows of history keep nothing", key: keys.Head("argocd"), record: "?"},
		"other":        {reason: "of other resources nothing is known to refer to packs", key: at("others", "x"), record: "?"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decoders().Of(keys, tc.key, []byte(tc.record))
			if errors.As(err, new(*store.DamagedError)) != tc.damaged || err != nil && !tc.damaged {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
