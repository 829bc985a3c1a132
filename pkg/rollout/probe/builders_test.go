package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// live decodes an object as a watch delivers it: with int64 and float64.
func live(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("reading the object of the test: %v", err)
	}
	return &unstructured.Unstructured{Object: object}
}

// expect checks a verdict, that the object was not changed, and that the declared reads suffice for
// the same verdict.
func expect(t testing.TB, reason string, p Probe, object *unstructured.Unstructured, want Verdict) {
	t.Helper()
	before := object.DeepCopy()
	if diff := cmp.Diff(want, p.Probe(object)); diff != "" {
		t.Errorf("%s: verdict (-want +got):\n%s", reason, diff)
	}
	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("the probe changed the object (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(want, p.Probe(p.Reads().Trim(object))); diff != "" {
		t.Errorf("%s: verdict on the object trimmed to what %+v reads (-want +got):\n%s", reason, p.Reads(), diff)
	}
}

func of(group, kind string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: kind} }

func onKind(group, kind string, assertions ...Assertion) Spec {
	gk := of(group, kind)
	return Spec{Selector: Selector{GroupKind: &gk}, Assertions: assertions}
}

func onLabels(t testing.TB, selector string, assertions ...Assertion) Spec {
	t.Helper()
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatalf("reading the selector of the test: %v", err)
	}
	return Spec{Selector: Selector{Labels: parsed}, Assertions: assertions}
}

func hasCondition(kind, status string) Assertion {
	return Assertion{ConditionEqual: &ConditionEqual{Type: kind, Status: status}}
}

func hasValue(path, value string) Assertion {
	return Assertion{FieldValue: &FieldValue{FieldPath: path, Value: value}}
}

func hasEqual(a, b string) Assertion {
	return Assertion{FieldsEqual: &FieldsEqual{FieldA: a, FieldB: b}}
}

func fulfils(expression, message string) Assertion {
	return Assertion{CEL: &CEL{Expression: expression, Message: message}}
}

func mustNew(t testing.TB, specs ...Spec) Set {
	t.Helper()
	set, err := New(specs)
	if err != nil {
		t.Fatalf("making the set: %v", err)
	}
	return set
}
