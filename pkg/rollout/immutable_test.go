package rollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

func invalid(words string) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "X"}, "x", field.ErrorList{field.Invalid(field.NewPath("spec"), "a", words)})
}

// TestRefusedUpdate: the text of a refusal does not matter. It matters whether the server would
// create a new object, and whether a default blocks the update.
func TestRefusedUpdate(t *testing.T) {
	resource := schema.GroupResource{Resource: "xs"}
	exists := apierrors.NewAlreadyExists(resource, "x")
	leftover := map[string]any{"spec": map[string]any{"strategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": int64(1)}}}}
	cases := map[string]struct {
		reason             string
		refusal, anew      error
		live               map[string]any
		again              error
		unchangeable, mend bool
	}{
		"in itself":     {"a new one would be refused too", invalid("must be short"), invalid("must be short"), nil, nil, false, false},
		"unchangeable":  {"a new one would be accepted", invalid("once is enough"), exists, map[string]any{}, nil, true, false},
		"leftover":      {"without a default it is accepted", invalid("may not be specified"), exists, leftover, nil, false, true},
		"also not then": {"there is a default, and it is not in the way", invalid("immutable"), exists, leftover, invalid("immutable"), true, false},
		"not asked":     {"whether a new one would be accepted is not known", invalid("x"), apierrors.NewForbidden(resource, "x", nil), leftover, nil, false, false},
		"another":       {"the object is not what is wrong", apierrors.NewForbidden(resource, "x", nil), exists, leftover, nil, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var patch string
			fields, got := Trial{
				Manager: "us",
				Anew:    func(context.Context, []byte) error { return tc.anew },
				Live: func(context.Context) (*unstructured.Unstructured, error) {
					live := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(tc.live)}
					live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "us", Operation: "Apply", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:strategy":{"f:type":{}}}}`)}})
					return live, nil
				},
				Merge: func(_ context.Context, sent []byte) error {
					patch = string(sent)
					return tc.again
				},
			}.Retry(t.Context(), manifest.Ref{}, []byte(`{"kind":"X","spec":{"strategy":{"type":"Recreate"}}}`), tc.refusal)
			if (got == nil) != tc.mend || isUnchangeable(got) != tc.unchangeable || got != nil && !errors.Is(got, tc.refusal) {
				t.Errorf("%s: got %v", tc.reason, got)
			}
			if !tc.mend {
				return
			}
			if patch != `{"kind":"X","spec":{"strategy":{"rollingUpdate":null,"type":"Recreate"}}}` {
				t.Errorf("the default is not removed: %s", patch)
			}
			if claimed := fields[0].FieldsV1.GetRawString(); claimed != `{"f:spec":{"f:strategy":{"f:rollingUpdate":{"f:maxSurge":{}},"f:type":{}}}}` {
				t.Errorf("the default is not claimed: %s", claimed)
			}
		})
	}
}

// TestTrialOfAdoption: an adoption removes the fields of the former manager, and its defaults if
// that makes the update valid.
func TestTrialOfAdoption(t *testing.T) {
	const replaced = `{"spec":{"env":[{"name":"A","valueFrom":"x"}],"old":null}}`
	theirs := `{"f:spec":{"f:old":{},"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}}}}`
	cases := map[string]struct {
		reason string
		fields string
		// answers of the server to consecutive merge patches.
		answers []error
		tried   bool
		patches []string
	}{
		"accepted":  {"one update", theirs, []error{nil}, true, []string{replaced}},
		"denied":    {"no other way would be taken", theirs, []error{apierrors.NewForbidden(schema.GroupResource{}, "x", nil)}, true, []string{replaced}},
		"leftover":  {"a default is in the way", theirs, []error{invalid("x"), nil}, true, []string{replaced, `{"spec":{"env":[{"name":"A","valueFrom":"x"}],"filled":{"default":null},"old":null}}`}},
		"refused":   {"the removal is what is refused", theirs, []error{invalid("x"), invalid("x")}, false, []string{replaced, `{"spec":{"env":[{"name":"A","valueFrom":"x"}],"filled":{"default":null},"old":null}}`}},
		"of nobody": {"there is nothing to take over", `{}`, nil, false, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"old": "x", "env": []any{map[string]any{"name": "A", "value": "x"}}, "filled": map[string]any{"b": int64(1), "default": map[string]any{"a": int64(1)}}}}}
			live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "them", Operation: "Apply", APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(tc.fields)}})
			wanted := map[string]any{"spec": map[string]any{"env": []any{map[string]any{"name": "A", "valueFrom": "x"}}, "filled": map[string]any{"b": int64(1)}}}
			var patches []string
			tried, err := Trial{Manager: "us", Merge: func(_ context.Context, patch []byte) error {
				patches = append(patches, string(patch))
				return tc.answers[len(patches)-1]
			}}.Adopt(t.Context(), stage.Step{Ref: manifest.Ref{Version: "v1"}}, wanted, live)
			if tried != tc.tried || len(tc.answers) > 0 && !errors.Is(err, tc.answers[len(patches)-1]) {
				t.Errorf("%s: tried %t, %v", tc.reason, tried, err)
			}
			if diff := cmp.Diff(tc.patches, patches); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRemedy: the command fits the kind, and the message names the objects that are deleted too.
func TestRemedy(t *testing.T) {
	cases := map[string]struct {
		kind manifest.ID
		want []string
	}{
		"Deployment": {manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "x"}, []string{"kubectl delete deployment.apps x -n a --cascade=orphan: its Pods keep running"}},
		"claims":     {manifest.ID{Group: "apps", Kind: "StatefulSet", Namespace: "a", Name: "x"}, []string{"--cascade=orphan", "claims stay"}},
		"Secret":     {manifest.ID{Kind: "Secret", Namespace: "a", Name: "x"}, []string{"(kubectl delete secret x -n a)"}},
		"class":      {manifest.ID{Group: "scheduling.k8s.io", Kind: "PriorityClass", Name: "x"}, []string{"(kubectl delete priorityclass.scheduling.k8s.io x)"}},
		"custom":     {manifest.ID{Group: "example.com", Kind: "Db", Namespace: "a", Name: "x"}, []string{"kubectl delete db.example.com x -n a --cascade=orphan"}},
		"claim":      {manifest.ID{Kind: "PersistentVolumeClaim", Namespace: "a", Name: "x"}, []string{"the data of its volume is deleted"}},
		"definition": {manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "x"}, []string{"all of its custom resources are deleted"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := remedy(manifest.Ref{ID: tc.kind})
			for _, want := range append(tc.want, "archive this revision") {
				if !strings.Contains(got, want) {
					t.Errorf("it does not say %q: %s", want, got)
				}
			}
		})
	}
}

// TestMakesRoom: after a refused update to the newest revision, a user deletes the object. Then the
// newest revision creates it, whichever process sees the deletion. Otherwise the newest layer that
// has reached the object's stage creates it.
func TestMakesRoom(t *testing.T) {
	const x, y = "ConfigMap a/x", "ConfigMap a/y"
	cases := map[string]struct {
		reason string
		// refused are the objects that cannot be updated. If invalid is set, the server would not
		// create them either.
		refused []string
		invalid bool
		// meanwhile is called between the refusal and the deletion of x.
		meanwhile func(s *saga, one, two *script)
		want      string
	}{
		"refused":   {"exactly this update", []string{x}, false, nil, "2"},
		"restarted": {"another process sees it go", []string{x}, false, func(s *saga, _, _ *script) { s.restart() }, "2"},
		"another":   {"the update of another object was refused", []string{y}, false, nil, "1"},
		"in itself": {"the manifest is refused for a new object too", []string{x}, true, nil, "1"},
		"archived":  {"the revision that it was refused to is gone", []string{x}, false, func(s *saga, one, _ *script) { s.become(one) }, "1"},
		"newer":     {"a newer revision without the object", []string{x}, false, func(s *saga, one, two *script) { s.become(s.revision(3).phase("p", y+"=1"), two, one) }, "1"},
		"paused":    {"a paused revision writes nothing", []string{x}, false, func(s *saga, one, two *script) { two.paused = true; s.become(two, one) }, "1"},
		"both":      {"it waits as long as another object is refused", []string{x, y}, false, nil, "absent"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			one, two := s.revision(1).phase("p", x+"=1", y+"=1"), s.revision(2).phase("p", x+"=2", y+"=2")
			s.roll(t, one)
			s.refuse = func(verb string, ref manifest.Ref) error {
				refused := slices.ContainsFunc(tc.refused, func(object string) bool { return refOf(object).ID == ref.ID })
				_, wanted := s.bodies[ref.Digest]
				isNew := wanted && strings.Contains(string(s.bodies[ref.Digest]), `"value":"2"`)
				switch {
				case !refused || !isNew:
				case verb == "anew" && tc.invalid, (verb == "try" || verb == "apply") && (tc.invalid || s.objects[ref.ID] != nil):
					return invalid("cannot be so")
				}
				return nil
			}
			// The engine retries a refused write forever.
			passes := func() {
				for range 5 {
					s.deliver(len(s.changes))
					if _, err := s.pass(); err != nil {
						t.Fatal(err)
					}
					s.clock.SetTime(s.clock.Now().Add(lastRetry))
				}
			}
			s.become(two, one)
			passes()
			if tc.meanwhile != nil {
				tc.meanwhile(s, one, two)
			}
			s.erase(refOf(x).ID)
			passes()
			if got := s.content(x); got != tc.want {
				t.Errorf("%s: it is that of %s, want %s: %v", tc.reason, got, tc.want, failures(s.last))
			}
		})
	}
}

// TestRefusedIsRecorded: the record of a refusal causes no saves while nothing changes.
func TestRefusedIsRecorded(t *testing.T) {
	const x = "ConfigMap a/x"
	s := newSaga()
	one, two := s.revision(1).phase("p", x+"=1"), s.revision(2).phase("p", x+"=2")
	s.roll(t, one)
	refusing := true
	s.refuse = func(verb string, ref manifest.Ref) error {
		if refusing && verb == "try" && strings.Contains(string(s.bodies[ref.Digest]), `"value":"2"`) {
			return invalid("cannot be so")
		}
		return nil
	}
	report := s.roll(t, two, one)
	if f := report.Layers[0].Phases[0].Failures; len(f) != 1 || !f[0].Immutable || f[0].Reason != ReasonRejected {
		t.Errorf("it is not reported: %+v", f)
	}
	if got := s.stored.Entries[refOf(x).ID].Refused; got != 2 {
		t.Errorf("revision %d is recorded", got)
	}
	// A user removes the cause of the refusal.
	refusing = false
	s.clock.SetTime(s.clock.Now().Add(lastRetry))
	s.settle(t)
	if got := s.content(x); got != "2" || s.stored.Entries[refOf(x).ID].Refused != 0 {
		t.Errorf("it is %s, and %d is still recorded", got, s.stored.Entries[refOf(x).ID].Refused)
	}
}
