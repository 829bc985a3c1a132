package probe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAssertions(t *testing.T) {
	const object = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, generation: 2, labels: {tier: db}},
		spec: {replicas: 3, ratio: 1.5, enabled: true, size: "3", list: [1]},
		status: {ready: 3, share: 3.0, phase: Running, note: "<ok>",
			conditions: [{type: Ready, status: "True", observedGeneration: 2},
				{type: Synced, status: "True", observedGeneration: 1},
				{type: Plain, status: "False", reason: Because, message: it rained}]}}`
	cases := map[string]struct {
		reason string
		assert Assertion
		want   Verdict
	}{
		"ConditionHolds":   {"it is of this generation", hasCondition("Ready", "True"), Verdict{Status: True}},
		"ConditionOld":     {"it was earned by the previous spec", hasCondition("Synced", "True"), Verdict{Unknown, "condition Synced is of generation 1, the object of 2"}},
		"ConditionMissing": {"the object does not say", hasCondition("Happy", "True"), Verdict{Unknown, "has no condition Happy yet"}},
		"ConditionDiffers": {"with the controller's explanation", hasCondition("Plain", "True"), Verdict{False, "condition Plain is False, want True; Because: it rained"}},
		"ConditionFalse":   {"any status can be asked for", hasCondition("Plain", "False"), Verdict{Status: True}},

		"ValueText":      {"text as it is", hasValue("status.phase", "Running"), Verdict{Status: True}},
		"ValueNumber":    {"in JSON form", hasValue("spec.replicas", "3"), Verdict{Status: True}},
		"ValueFraction":  {"in JSON form", hasValue("spec.ratio", "1.5"), Verdict{Status: True}},
		"ValueBool":      {"in JSON form", hasValue("spec.enabled", "true"), Verdict{Status: True}},
		"ValueHTML":      {"no HTML escapes creep in", hasValue("status.note", "<ok>"), Verdict{Status: True}},
		"ValueDiffers":   {"both are said", hasValue("status.phase", "Done"), Verdict{False, `status.phase is "Running", want "Done"`}},
		"ValueMissing":   {"not there yet", hasValue("status.url", "x"), Verdict{False, `status.url is not set, want "x"`}},
		"ValueOfObject":  {"no text form is invented", hasValue("spec", "x"), Verdict{Unknown, "spec is an object, which cannot be compared with a value"}},
		"ValueInText":    {"a path through something that has no fields", hasValue("status.phase.x", "y"), Verdict{Unknown, "status.phase is text, not an object"}},
		"ValueLabel":     {"metadata is there without reading anything", hasValue("metadata.labels.tier", "db"), Verdict{Status: True}},
		"ValueOfMissing": {"a missing parent is a missing field", hasValue("data.x.y", "z"), Verdict{False, `data.x.y is not set, want "z"`}},

		"FieldsEqual":        {"the usual one", hasEqual("spec.replicas", "status.ready"), Verdict{Status: True}},
		"FieldsEqualNumbers": {"3 and 3.0 are one number, no matter who decoded them", hasEqual("status.share", "spec.replicas"), Verdict{Status: True}},
		"FieldsOtherType":    {"3 and \"3\" are not", hasEqual("spec.replicas", "spec.size"), Verdict{False, `spec.replicas is 3, spec.size is "3"`}},
		"FieldsMissing":      {"nothing equals nothing is no proof of readiness", hasEqual("status.a", "status.b"), Verdict{False, "status.a is not set"}},
		"FieldsOneMissing":   {"which one is said", hasEqual("spec.enabled", "status.b"), Verdict{False, "status.b is not set"}},
		"FieldsLists":        {"lists are compared as a whole, not printed", hasEqual("spec.list", "status.conditions"), Verdict{False, "spec.list is a list, status.conditions is a list"}},

		"CELTrue":    {"over the whole object", fulfils(`self.spec.replicas == self.status.ready && self.metadata.labels.tier == "db"`, ""), Verdict{Status: True}},
		"CELFalse":   {"the expression is the message", fulfils(`self.status.phase == "Done"`, ""), Verdict{False, "`self.status.phase == \"Done\"` is false"}},
		"CELMessage": {"unless there is one", fulfils(`self.status.phase == "Done"`, "the widget is not done"), Verdict{False, "the widget is not done"}},
		"CELError":   {"a missing field is not false", fulfils(`self.status.url != ""`, "no URL"), Verdict{Unknown, "`self.status.url != \"\"`: no such key: url"}},
		"CELGuard":   {"has() is how to say that it may be missing", fulfils(`has(self.status.url) && self.status.url != ""`, "no URL"), Verdict{False, "no URL"}},
		"CELLibrary": {"functions of Kubernetes", fulfils(`quantity("1Gi").isGreaterThan(quantity("1Mi"))`, ""), Verdict{Status: True}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := mustNew(t, onKind("example.com", "Widget", tc.assert)).For(of("example.com", "Widget"))
			expect(t, tc.reason, p, live(t, object), tc.want)
		})
	}
}

func TestConditionOfOldStatus(t *testing.T) {
	p := mustNew(t, onKind("example.com", "Widget", hasCondition("Ready", "True"))).For(of("example.com", "Widget"))
	expect(t, "conditions without a generation are as old as the status they stand in", p,
		live(t, `{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`),
		Verdict{Unknown, "condition Ready is of generation 1, the object of 2"})
	expect(t, "a kind that knows no generation is taken at its word", p,
		live(t, `{metadata: {generation: 2}, status: {conditions: [{type: Ready, status: "True"}]}}`),
		Verdict{Status: True})
}

func TestCELCost(t *testing.T) {
	digits, expression := "[0,1,2,3,4,5,6,7,8,9]", "a+b+c+d+e+f >= 0"
	for _, variable := range []string{"f", "e", "d", "c", "b", "a"} {
		expression = digits + ".all(" + variable + ", " + expression + ")"
	}
	p := mustNew(t, onKind("example.com", "Widget", fulfils(expression, "too many digits"))).For(of("example.com", "Widget"))
	got := p.Probe(live(t, `{}`))
	if got.Status != Unknown || !strings.Contains(got.Message, "costs more than 500000 units") {
		t.Errorf("a million additions must not stop the engine, got: %+v", got)
	}
}

// TestUnits: selectors and assertions are charged as expressions are, because a probe may have many
// of them.
func TestUnits(t *testing.T) {
	widget := of("example.com", "Widget")
	var requirements []string
	for i := range 2000 {
		requirements = append(requirements, fmt.Sprintf("a%d!=b", i))
	}
	for name, tc := range map[string]struct {
		reason string
		spec   Spec
		units  uint64
	}{
		"Assertion": {"one", onKind("example.com", "Widget", hasCondition("Ready", "True")), 1},
		"Labels":    {"each requirement", onLabels(t, strings.Join(requirements, ","), hasCondition("Ready", "True")), 2001},
		"Path":      {"a long path is in the message", onKind("example.com", "Widget", hasValue(strings.Repeat("a.", 50_000)+"a", "b")), 10_001},
		"Condition": {"so is a type", onKind("example.com", "Widget", hasCondition(strings.Repeat("R", 1000), "True")), 101},
		"Equal":     {"fields with all that is in them", onKind("example.com", "Widget", hasEqual("metadata.labels", "metadata.labels")), 1 + 3 + 2*(1+1+1)},
	} {
		budget := NewCostBudget(MaxCELCost)
		object := live(t, `{metadata: {labels: {x: y}}}`)
		mustNew(t, tc.spec).For(widget).(Metered).ProbeWithin(t.Context(), object, budget)
		if budget.Spent() != tc.units {
			t.Errorf("%s: %s: %d units, want %d", name, tc.reason, budget.Spent(), tc.units)
		}
		if tc.units > 1 {
			if got := mustNew(t, tc.spec).For(widget).(Metered).ProbeWithin(t.Context(), object, NewCostBudget(tc.units-1)); got.Status != Unknown || !strings.Contains(got.Message, "units") {
				t.Errorf("%s: without the units for it: %+v", name, got)
			}
		}
	}
}

func TestCombination(t *testing.T) {
	widget := of("example.com", "Widget")
	cases := map[string]struct {
		reason string
		specs  []Spec
		kind   schema.GroupKind
		object string
		want   Verdict
	}{
		"FalseBeatsUnknown": {
			reason: "what is known to be wrong is said first, all of it, in the order of the specs",
			specs: []Spec{onKind("example.com", "Widget", hasCondition("Ready", "True"), hasValue("spec.a", "2")),
				onKind("example.com", "Widget", hasValue("spec.b", "2"))},
			kind: widget, object: `{spec: {a: 1, b: 1}}`,
			want: Verdict{False, `spec.a is 1, want "2"; spec.b is 1, want "2"`},
		},
		"UnknownBeatsTrue": {
			reason: "one that cannot be judged holds the phase",
			specs:  []Spec{onKind("example.com", "Widget", hasValue("spec.a", "1"), hasCondition("Ready", "True"))},
			kind:   widget, object: `{spec: {a: 1}}`,
			want: Verdict{Unknown, "has no condition Ready yet"},
		},
		"OnTopOfBuiltin": {
			reason: "a custom probe adds to what is built in, it does not replace it",
			specs:  []Spec{onKind("batch", "Job", hasValue("metadata.labels.ok", "yes"))},
			kind:   of("batch", "Job"), object: `{metadata: {labels: {ok: no-yet}}, status: {active: 1}}`,
			want: Verdict{False, `not complete, 1 pod running; metadata.labels.ok is "no-yet", want "yes"`},
		},
		"LabelsSelectAnyKind": {
			reason: "labels alone apply to every kind",
			specs:  []Spec{onLabels(t, "gate=yes", hasValue("data.ready", "true"))},
			kind:   of("", "ConfigMap"), object: `{metadata: {labels: {gate: "yes"}}, data: {ready: "no"}}`,
			want: Verdict{False, `data.ready is "no", want "true"`},
		},
		"LabelsDoNotMatch": {
			reason: "an object that is not selected passes",
			specs:  []Spec{onLabels(t, "gate=yes", hasValue("data.ready", "true"))},
			kind:   of("", "ConfigMap"), object: `{metadata: {labels: {gate: "no"}}, data: {ready: "no"}}`,
			want: Verdict{Status: True},
		},
		"LabelsUnreadable": {
			reason: "whether it is selected is not known",
			specs:  []Spec{onLabels(t, "gate=yes", hasValue("data.ready", "true"))},
			kind:   of("", "ConfigMap"), object: `{metadata: {labels: 7}}`,
			want: Verdict{Unknown, "metadata.labels is a number, not an object"},
		},
		"LabelsOnBuiltinKind": {
			reason: "also on kinds with a probe of their own",
			specs:  []Spec{onLabels(t, "!skip", hasValue("spec.x", "1"))},
			kind:   of("batch", "Job"), object: `{spec: {x: 2}, status: {conditions: [{type: Complete, status: "True"}]}}`,
			want: Verdict{False, `spec.x is 2, want "1"`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, tc.reason, mustNew(t, tc.specs...).For(tc.kind), live(t, tc.object), tc.want)
		})
	}
}

func TestCustomReads(t *testing.T) {
	cases := map[string]struct {
		reason string
		specs  []Spec
		kind   schema.GroupKind
		want   *Reads
	}{
		"OtherKind": {
			reason: "a probe for one kind costs nothing for another",
			specs:  []Spec{onKind("example.com", "Widget", fulfils("self.a == 1", ""))},
			kind:   of("", "ConfigMap"),
		},
		"Paths": {
			reason: "only the fields that are looked at",
			specs:  []Spec{onKind("example.com", "Widget", hasEqual("spec.b", "spec.a"), hasValue("metadata.name", "x"))},
			kind:   of("example.com", "Widget"),
			want:   &Reads{Fields: [][]string{{"metadata"}, {"spec", "a"}, {"spec", "b"}}},
		},
		"MetadataOnly": {
			reason: "it is not the same as no probe: an observer must keep metadata to judge",
			specs:  []Spec{onKind("example.com", "Widget", hasValue("metadata.labels.a", "b"))},
			kind:   of("example.com", "Widget"),
			want:   &Reads{Fields: [][]string{{"metadata"}}},
		},
		"CEL": {
			reason: "an expression may look at anything",
			specs:  []Spec{onKind("example.com", "Widget", hasValue("spec.a", "1"), fulfils("self.a == 1", ""))},
			kind:   of("example.com", "Widget"),
			want:   &Reads{Whole: true},
		},
		"LabelsAlone": {
			reason: "every kind pays for what the assertion needs, and not more",
			specs:  []Spec{onLabels(t, "a=b", hasValue("status.phase", "x"))},
			kind:   of("", "Service"),
			want:   &Reads{Fields: [][]string{{"status", "phase"}}},
		},
		"WithBuiltin": {
			reason: "united with what the built-in probe reads",
			specs:  []Spec{onKind("batch", "Job", hasValue("status.active", "0"), hasValue("spec.parallelism", "1"))},
			kind:   of("batch", "Job"),
			want:   &Reads{Status: true, Fields: [][]string{{"spec", "parallelism"}}},
		},
		"SecretContent": {
			reason: "the content of Secrets is never kept",
			specs:  []Spec{onLabels(t, "a=b", hasValue("data.x", "1"), fulfils("has(self.data)", ""))},
			kind:   of("", "Secret"),
			want:   &Reads{Fields: [][]string{{"immutable"}, {"metadata"}, {"type"}}},
		},
		"SecretStatus": {
			reason: "a field that Secrets do not have",
			specs:  []Spec{onLabels(t, "a=b", hasValue("status.x", "1"))},
			kind:   of("", "Secret"),
			want:   &Reads{Fields: [][]string{{"metadata"}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := mustNew(t, tc.specs...).For(tc.kind)
			if tc.want == nil {
				if p != nil {
					t.Errorf("%s: got a probe that reads %+v", tc.reason, p.Reads())
				}
				return
			}
			if diff := cmp.Diff(*tc.want, p.Reads()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestInvalidSpecs(t *testing.T) {
	widget := of("example.com", "Widget")
	cases := map[string]struct {
		reason string
		spec   Spec
		says   []string
	}{
		"NoSelector":    {"it would select everything by accident", Spec{Assertions: []Assertion{hasValue("a", "b")}}, []string{"probe 0", "selector is empty"}},
		"NoKind":        {"a group alone is no kind", onKind("example.com", "", hasValue("a", "b")), []string{"no kind"}},
		"NoAssertions":  {"it would always pass", Spec{Selector: Selector{GroupKind: &widget}}, []string{"has no assertions"}},
		"EmptyMember":   {"an assertion that asserts nothing", onKind("example.com", "Widget", Assertion{}), []string{"assertion 0", "has 0 of", "exactly one"}},
		"TwoMembers":    {"which of them was meant?", onKind("example.com", "Widget", Assertion{FieldValue: &FieldValue{"a", "b"}, CEL: &CEL{Expression: "true"}}), []string{"has 2 of"}},
		"NoType":        {"a condition has a type", onKind("example.com", "Widget", hasCondition("", "True")), []string{"type is empty"}},
		"OddStatus":     {"what is allowed is said", onKind("example.com", "Widget", hasCondition("Ready", "true")), []string{`"true"`, `["True" "False" "Unknown"]`}},
		"EmptyPath":     {"not a field", onKind("example.com", "Widget", hasValue("", "b")), []string{"fieldValue", `""`}},
		"EmptyPart":     {"a typing error", onKind("example.com", "Widget", hasEqual("a..b", "c")), []string{"fieldA", `"a..b"`}},
		"Brackets":      {"would never be found", onKind("example.com", "Widget", hasEqual("a", "b[0].c")), []string{"fieldB", "cel"}},
		"CELSyntax":     {"with the position", onKind("example.com", "Widget", fulfils("self.a ==", "")), []string{"assertion 0", "cel", "line 1"}},
		"CELNames":      {"only self is known", onKind("example.com", "Widget", hasValue("a", "b"), fulfils("object.a == 1", "")), []string{"assertion 1", "undeclared reference to 'object'"}},
		"CELType":       {"a number is not a verdict", onKind("example.com", "Widget", fulfils("1 + 1", "")), []string{"int", "must be bool"}},
		"CELDyn":        {"whether it is bool would be known too late", onKind("example.com", "Widget", fulfils("self.spec.paused", "")), []string{"dyn", "must be bool"}},
		"SecretContent": {"it could never be fulfilled", onKind("", "Secret", hasValue("data.password", "x")), []string{"data.password", "Secret"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := New([]Spec{tc.spec})
			if err == nil {
				t.Fatalf("%s: no error", tc.reason)
			}
			if set != nil {
				t.Errorf("a set in spite of the error")
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: error does not say %q: %v", tc.reason, part, err)
				}
			}
		})
	}
}

func TestNewReportsEverySpec(t *testing.T) {
	_, err := New([]Spec{onKind("a", "B", hasValue("", "x")), onKind("a", "B", hasValue("x", "x")), onKind("a", "B")})
	if err == nil || !strings.Contains(err.Error(), "probe 0") || !strings.Contains(err.Error(), "probe 2") {
		t.Errorf("want both wrong specs in one error, got: %v", err)
	}
}

func TestCheckCEL(t *testing.T) {
	cases := map[string]struct {
		reason, expression string
		valid              bool
	}{
		"Valid":     {"the usual one", `self.status.phase == "Ready"`, true},
		"Optional":  {"optional fields", `self.?status.phase.orValue("") == "Ready"`, true},
		"Syntax":    {"a missing operand", `self.a &&`, false},
		"Empty":     {"nothing at all", ``, false},
		"Type":      {"not bool", `"yes"`, false},
		"Regex":     {"a bad literal is found before it is stored", `self.name.matches("[")`, false},
		"Recursion": {"depth is limited by the parser", strings.Repeat("(", 5000) + "true" + strings.Repeat(")", 5000), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := NewCELChecker()(tc.expression); (err == nil) != tc.valid {
				t.Errorf("%s: the checker says %v, want valid: %v", tc.reason, err, tc.valid)
			} else if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %v", err)
			}
			if _, err := CompileCEL(tc.expression); (err == nil) != tc.valid {
				t.Errorf("%s: CompileCEL says %v, want valid: %v", tc.reason, err, tc.valid)
			}
		})
	}
}

func TestSecrets(t *testing.T) {
	const value = "hunter2"
	const secret = `{apiVersion: v1, kind: Secret, metadata: {labels: {a: b}, annotations: {last: hunter2}},
		type: hunter2, data: {password: hunter2}, status: {conditions: [{type: Ready, status: "False", reason: hunter2, message: hunter2}]}}`
	cases := map[string]struct {
		reason string
		assert Assertion
		want   Verdict
	}{
		"Metadata":  {"what is compared may repeat the content", hasValue("metadata.annotations.last", "x"), Verdict{False, "metadata.annotations.last is (hidden), want (hidden)"}},
		"Content":   {"not even looked at", hasValue("data.password", value), Verdict{Unknown, "data.password: the content of a Secret is not read"}},
		"Equal":     {"both sides are hidden", hasEqual("type", "metadata.labels.a"), Verdict{False, "type is (hidden), metadata.labels.a is (hidden)"}},
		"Condition": {"Secrets have none, but may claim to", hasCondition("Ready", "True"), Verdict{Unknown, "has no condition Ready yet"}},
		"CELFalse":  {"why it cannot be seen is said", fulfils(`has(self.data)`, ""), Verdict{False, "`has(self.data)` is false; the content of a Secret is not read"}},
		"CELError":  {"an error of the evaluation would quote the value", fulfils(`int(self.type) == 1`, ""), Verdict{Unknown, "`int(self.type) == 1` cannot be evaluated; the content of a Secret is not read"}},
		"CELTrue":   {"type and metadata can be judged", fulfils(`self.type == "hunter2"`, ""), Verdict{Status: True}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := mustNew(t, onLabels(t, "a=b", tc.assert)).For(of("", "Secret"))
			expect(t, tc.reason, p, live(t, secret), tc.want)
			if got := p.Probe(live(t, secret)); strings.Contains(got.Message, value) && tc.assert.CEL == nil {
				t.Errorf("the message shows the value: %s", got.Message)
			}
		})
	}
}

func TestNoObject(t *testing.T) {
	p := Builtin().For(of("batch", "Job"))
	if diff := cmp.Diff(Verdict{Unknown, "its state was not read"}, p.Probe(nil)); diff != "" {
		t.Errorf("an object that nobody read (-want +got):\n%s", diff)
	}
}
