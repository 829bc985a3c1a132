package clusterextensionrevision

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/requestbody"
)

func TestWithoutObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, recorded, want string
	}{
		"Manifests": {
			reason:   "lists of objects are emptied, everything else is kept",
			recorded: `{"metadata":{"labels":{"a":"b"}},"spec":{"phases":[{"name":"p","collisionProtection":"None","objects":[{"object":{}}]},{"name":"q"}],"revision":12345678901}}`,
			want:     `{"metadata":{"labels":{"a":"b"}},"spec":{"phases":[{"collisionProtection":"None","name":"p","objects":[]},{"name":"q"}],"revision":12345678901}}`,
		},
		"Again":    {reason: "once is enough", recorded: "{\"spec\":{\"phases\":[{\"objects\":[]}]}}\n", want: "{\"spec\":{\"phases\":[{\"objects\":[]}]}}\n"},
		"None":     {reason: "nothing to do"},
		"NotJSON":  {reason: "not ours to judge", recorded: "{", want: "{"},
		"NotAFile": {reason: "not ours to judge", recorded: `{"spec":{"phases":"x"}}`, want: `{"spec":{"phases":"x"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := withoutObjects(tc.recorded)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if changed != (tc.want != tc.recorded) {
				t.Errorf("%s: changed is %v", tc.reason, changed)
			}
		})
	}
}

// TestInvalidManifestsAreBounded: the same mistake 4,000 times gives one bounded answer.
func TestInvalidManifestsAreBounded(t *testing.T) {
	revision := &olm.ClusterExtensionRevision{Spec: olm.ClusterExtensionRevisionSpec{Phases: []olm.RevisionPhase{{}}}}
	for range 4000 {
		revision.Spec.Phases[0].Objects = append(revision.Spec.Phases[0].Objects, olm.RevisionObject{Object: &olm.Manifest{Raw: []byte(`{"kind":"Secret","data":{"k":"hunter2"}}`)}})
	}
	errs := inliner{digester: testDigester()}.invalidManifests(revision, newStaged())
	if len(errs) < maxManifestErrors || len(errs) > 2*maxManifestErrors {
		t.Errorf("%d errors, want about %d", len(errs), maxManifestErrors)
	}
	if strings.Contains(errs.ToAggregate().Error(), "hunter2") {
		t.Error("the errors show the content of a Secret")
	}
}

// unstored returns no facts, as without a stored revision.
func unstored() map[entryKey]facts { return nil }

// TestRewriteStatus: a manifest that is applied again has the digest of its revision, even if an
// older Penstock stored it without status.
func TestRewriteStatus(t *testing.T) {
	lamp := func() map[string]any {
		return map[string]any{"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": map[string]any{"name": "l"}, "status": map[string]any{"on": true}}
	}
	now, err := testDigester().New(lamp())
	if err != nil {
		t.Fatal(err)
	}
	before, _, err := testDigester().WithoutStatus(now)
	if err != nil {
		t.Fatal(err)
	}
	other := before
	other.Name = "other"
	for name, tc := range map[string]struct {
		stored []manifest.Object
		want   manifest.Object
	}{
		"created":       {nil, now},
		"applied again": {[]manifest.Object{now}, now},
		"from before":   {[]manifest.Object{before}, before},
		"another":       {[]manifest.Object{other}, now},
	} {
		t.Run(name, func(t *testing.T) {
			tree := map[string]any{"spec": map[string]any{"phases": []any{map[string]any{"objects": []any{map[string]any{"object": lamp()}}}}}}
			held := newStaged()
			inliner{digester: testDigester()}.rewriteTree(tree, func() map[entryKey]facts {
				known := map[entryKey]facts{}
				for _, object := range tc.stored {
					known[keyOfManifest(object)] = factsOf(object)
				}
				return known
			}, held)
			eachEntry(tree, func(entry map[string]any) {
				if keyOfTree(entry) != keyOfManifest(tc.want) {
					t.Errorf("want %v, got %v", keyOfManifest(tc.want), keyOfTree(entry))
				}
			})
			if _, ok := held.find(keyOfManifest(tc.want)); !ok {
				t.Error("the manifest was lost")
			}
		})
	}
}

// FuzzRewrite: both ways to replace the manifests of a body agree. A second rewrite changes
// nothing.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte(`{"spec":{"phases":[{"name":"p","objects":[{"object":` + configMapBody + `}]}]}}`))
	f.Add([]byte(`{"spec":{"phases":[{"objects":[{"object":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}},"digest":"x"}]}]}}`))
	f.Add([]byte("spec:\n  phases:\n  - objects:\n    - object: {apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {n: 1.0}}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		tree, err := requestbody.FormOf("application/yaml", "POST").Decode(body, &requestbody.Share{})
		if tree == nil || err != nil {
			return
		}
		var fallback olm.ClusterExtensionRevision
		encoded, err := json.Marshal(tree)
		if err != nil {
			t.Fatalf("a body that was read cannot be written: %v", err)
		}
		entries := entriesOf(encoded)
		fallback.Spec.Phases = []olm.RevisionPhase{{Objects: entries}}

		filter, strategy := newStaged(), newStaged()
		i := inliner{digester: testDigester()}
		i.rewriteTree(tree, unstored, filter)
		if i.rewriteTree(tree, unstored, newStaged()) {
			t.Error("a second time changed something")
		}
		i.rewriteRevision(&fallback, strategy)
		if entries != nil {
			if diff := cmp.Diff(digests(filter), digests(strategy)); diff != "" {
				t.Errorf("manifests found by the filter and by the strategy (-filter +strategy):\n%s", diff)
			}
		}
	})
}

// entriesOf decodes the entries of all phases as the endpoint does. It returns nil for a malformed
// body.
func entriesOf(body []byte) []olm.RevisionObject {
	type entry struct {
		Object     *json.RawMessage `json:"object"`
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Namespace  string           `json:"namespace"`
		Name       string           `json:"name"`
		Digest     string           `json:"digest"`
	}
	type phase struct {
		Objects []entry `json:"objects"`
	}
	var decoded struct {
		Spec struct {
			Phases []phase `json:"phases"`
		} `json:"spec"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(body, &decoded) != nil {
		return nil
	}
	var entries []olm.RevisionObject
	for _, phase := range decoded.Spec.Phases {
		for _, entry := range phase.Objects {
			made := olm.RevisionObject{APIVersion: entry.APIVersion, Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name, Digest: entry.Digest}
			if entry.Object != nil {
				made.Object = &olm.Manifest{Raw: *entry.Object}
			}
			entries = append(entries, made)
		}
	}
	return entries
}

func digests(held *staged) map[string]string {
	found := map[string]string{}
	for digest, object := range held.objects {
		found[string(digest)] = string(object.JSON)
	}
	return found
}
