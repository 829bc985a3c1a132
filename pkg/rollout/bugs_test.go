package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// Test numbers are those of docs/reference/conformance.md, which lists bugs of other engines.

// writesOf returns the writes of n passes, without saves of the inventory.
func (s *saga) writesOf(t *testing.T, passes int) []string {
	t.Helper()
	s.spent()
	for range passes {
		s.mustPass(t)
	}
	writes, _ := s.spent()
	return slices.DeleteFunc(writes, func(line string) bool { return strings.HasPrefix(line, "save") })
}

// TestB4OtherSpellings: a manifest with a value that the server spells differently is applied once.
func TestB4OtherSpellings(t *testing.T) {
	s := newSaga()
	s.webhook = func(o *thing) {
		if o.fields["data:value"].value == "0.5" {
			o.fields["data:value"] = owned{"500m", o.fields["data:value"].by}
		}
	}
	s.roll(t, s.revision(1).phase("base", "Deployment.apps a/x=0.5", "ConfigMap a/x=0.5"))
	if writes := s.writesOf(t, 10); len(writes) > 0 || s.content("ConfigMap a/x") != "500m" {
		t.Errorf("it was written again: %v", writes)
	}
	s.restart()
	if writes := s.writesOf(t, 10); len(writes) > 0 {
		t.Errorf("after a restart it was written again: %v", writes)
	}
}

// TestB5OrphansAreFree: a released object has no mark of the chain, and can be adopted again.
func TestB5OrphansAreFree(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1"))
	s.orphan[1] = true
	s.roll(t)
	left := s.objects[refOf("ConfigMap a/x").ID]
	if left == nil {
		t.Fatal("it was deleted")
	}
	for path, field := range left.fields {
		if strings.Contains(path, "penstock.dev") || slices.ContainsFunc(field.by, func(by string) bool { return strings.HasPrefix(by, "penstock/") }) {
			t.Errorf("%s is still there: %+v", path, field)
		}
	}
	delete(s.orphan, 1)
	s.roll(t, s.revision(2).adopting(stage.AdoptUncontrolled).phase("base", "ConfigMap a/x=2"))
	if got := s.content("ConfigMap a/x"); got != "2" {
		t.Errorf("it is %s", got)
	}
}

// TestB6TwoActiveRevisionsDoNotFight: objects of reached stages belong to the newer revision, in
// any order of passes.
func TestB6TwoActiveRevisionsDoNotFight(t *testing.T) {
	s := newSaga()
	one := s.revision(1).phase("base", "ConfigMap a/x=1", "ConfigMap a/y=1")
	s.roll(t, one)
	s.roll(t, s.revision(2).phase("base", "ConfigMap a/x=2"), one)
	if writes := s.writesOf(t, 10); len(writes) > 0 || s.content("ConfigMap a/x") != "2" || s.content("ConfigMap a/y") != "1" {
		t.Errorf("x is %s, y is %s, and there were %v", s.content("ConfigMap a/x"), s.content("ConfigMap a/y"), writes)
	}
}

// TestB10StatusIsAFieldLikeOthers: the engine ignores a status only if it was written through the
// kind's status subresource.
func TestB10StatusIsAFieldLikeOthers(t *testing.T) {
	wanted := objectNamed(t, `{"spec":{"a":"1"},"status":{"mode":"on"}}`)
	for name, tc := range map[string]struct {
		subresource string
		want        int
	}{"no subresource": {"", 1}, "subresource": {`,"subresource":"status"`, 0}} {
		live := &unstructured.Unstructured{Object: objectNamed(t, `{"metadata":{"managedFields":[
			{"manager":"penstock/a","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:a":{}}}},
			{"manager":"somebody","operation":"Update"`+tc.subresource+`,"fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:mode":{}}}}]},
			"spec":{"a":"1"},"status":{"mode":"off"}}`)}
		if got := managedfields.FindDrift(wanted, live, "penstock/a"); len(got) != tc.want {
			t.Errorf("%s: lost are %v, want %d", name, got, tc.want)
		}
	}
}

// TestB12StaleDeletesAreJudgedAgain: a delete with an outdated resourceVersion is no error.
func TestB12StaleDeletesAreJudgedAgain(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1"))
	s.lagging = true
	s.alter(refOf("ConfigMap a/x").ID, func(o *thing) { o.set("annotations:note", "hello", "somebody") })
	s.become()
	s.mustPass(t)
	if s.left() > 0 {
		t.Error("it is still there")
	}
}

// TestB13ReportsDoNotFlap: the order of many failures in a report is stable.
func TestB13ReportsDoNotFlap(t *testing.T) {
	var first string
	for round := range 20 {
		s := newSaga()
		s.engine.Parallel = 8
		var objects []string
		for i := range 30 {
			objects = append(objects, fmt.Sprintf("ConfigMap a/m%02d=1", i))
		}
		s.refuse = func(_ string, ref manifest.Ref) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: ref.Kind}, ref.Name, nil)
		}
		s.become(s.revision(1).phase("base", objects...))
		got := strings.Join(failures(s.mustPass(t)), "\n")
		if round == 0 {
			first = got
		}
		if got != first || strings.Count(got, "\n") != 29 {
			t.Fatalf("first it was\n%s\nand now\n%s", first, got)
		}
	}
}

// TestB14RepairsBackOff: a writer that reverts each repair causes few repairs.
func TestB14RepairsBackOff(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1"))
	var writes []string
	for range 100 {
		s.alter(refOf("ConfigMap a/x").ID, func(o *thing) { o.set("data:value", "mine", "fighter") })
		writes = append(writes, s.writesOf(t, 1)...)
	}
	if len(writes) != contestAllowance {
		t.Errorf("100 rounds within a moment made %d writes, want %d", len(writes), contestAllowance)
	}
}

// TestB15NamespaceAndContentInOnePhase: a missing namespace does not block the phase that creates
// it.
func TestB15NamespaceAndContentInOnePhase(t *testing.T) {
	s := newSaga()
	s.refuse = func(_ string, ref manifest.Ref) error {
		if ref.Namespace != "" && s.objects[refOf("Namespace a").ID] == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, ref.Namespace)
		}
		return nil
	}
	s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1", "Namespace a=1"))
	if got := s.content("ConfigMap a/x"); got != "1" {
		t.Errorf("it is %q", got)
	}
}

// TestB16CreateIsOneWrite: a create needs no second write, which a controller's immediate write of
// status would conflict with.
func TestB16CreateIsOneWrite(t *testing.T) {
	s := newSaga()
	s.become(s.revision(1).phase("base", "Deployment.apps a/x=1"))
	s.refuse = func(verb string, _ manifest.Ref) error {
		if verb == "apply" && len(s.objects) > 0 {
			return errors.New("it was written again")
		}
		return nil
	}
	writes := s.writesOf(t, 1)
	s.alter(refOf("Deployment.apps a/x").ID, func(o *thing) { o.readyAt = o.generation })
	writes = append(writes, s.writesOf(t, 3)...)
	if len(writes) != 1 {
		t.Errorf("a create is %v", writes)
	}
	if report := s.mustPass(t); !report.Layers[0].Complete {
		t.Errorf("stuck with %v", failures(report))
	}
}

// objectNamed parses JSON as the engine parses manifests.
func objectNamed(t *testing.T, raw string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return o
}
