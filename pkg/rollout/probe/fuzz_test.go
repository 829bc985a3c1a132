package probe

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
)

// everyProbe returns all built-in probes and every kind of assertion, also for an unknown kind and
// for Secrets.
func everyProbe(t testing.TB) map[schema.GroupKind]Probe {
	set := mustNew(t, onLabels(t, "!never",
		hasCondition("Ready", "True"), hasValue("spec.replicas", "1"), hasEqual("spec.replicas", "status.replicas")),
		onKind("", "Secret", fulfils("size(self.type) > 0", "")),
		onKind("example.com", "Whole", fulfils("self.status.replicas > 0 && self.metadata.labels.all(k, size(k) > 0)", "")))
	probes := map[schema.GroupKind]Probe{}
	for kind := range builtin() {
		probes[kind] = set.For(kind)
	}
	for _, kind := range []schema.GroupKind{of("", "Secret"), of("example.com", "Whole"), of("example.com", "Widget")} {
		probes[kind] = set.For(kind)
	}
	return probes
}

// holds checks the properties of every verdict.
func holds(t interface{ Errorf(string, ...any) }, kind schema.GroupKind, p Probe, object *unstructured.Unstructured) {
	before := object.DeepCopy()
	got := p.Probe(object)
	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("%s: the probe changed the object:\n%s", kind, diff)
	}
	if (got.Status == True) != (got.Message == "") {
		t.Errorf("%s: verdict %+v: a message exactly when it is not True", kind, got)
	}
	if len(got.Message) > MaxMessageBytes || !utf8.ValidString(got.Message) || strings.ContainsAny(got.Message, "\n\r\t\x1b") {
		t.Errorf("%s: message is too long, no text, or more than a line: %q", kind, got.Message)
	}
	if diff := cmp.Diff(got, p.Probe(p.Reads().Trim(object))); diff != "" {
		t.Errorf("%s: another verdict on the trimmed object (-whole +trimmed):\n%s", kind, diff)
	}
}

// FuzzProbes calls every probe with any JSON object.
func FuzzProbes(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"metadata":null,"spec":[],"status":{"conditions":[null]}}`,
		`{"metadata":{"generation":1e300,"labels":{"a":1}},"status":{"conditions":{"type":"Ready"}}}`,
		`{"metadata":{"generation":-1,"deletionTimestamp":7,"finalizers":[1,"a"]},"status":{"observedGeneration":1.5}}`,
		`{"metadata":{"generation":1},"spec":{"replicas":"x","updateStrategy":[]},"status":{"observedGeneration":9,"replicas":9223372036854775807}}`,
		`{"metadata":{"generation":1,"annotations":[]},"spec":{"storageClassName":{}},"status":{"phase":"Pending"}}`,
		`{"metadata":{},"status":{"phase":"Running","containerStatuses":[{"state":"waiting"}],"conditions":[{"type":"Ready","status":"False","message":"\u0000\ud83d\n"}]}}`,
	} {
		f.Add([]byte(seed))
	}
	probes := everyProbe(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		object := map[string]any{}
		if utiljson.Unmarshal(data, &object) != nil {
			t.Skip("no JSON object")
		}
		for kind, p := range probes {
			holds(t, kind, p, &unstructured.Unstructured{Object: object})
		}
	})
}

// TestBrokenObjects replaces fields of nearly valid objects by values of wrong types. Random JSON
// is rarely nearly valid.
func TestBrokenObjects(t *testing.T) {
	probes := everyProbe(t)
	rapid.Check(t, func(t *rapid.T) {
		object := nearlyRight().Draw(t, "object")
		if _, err := json.Marshal(object); err != nil {
			t.Fatalf("the generator made something that is no JSON: %v", err)
		}
		for kind, p := range probes {
			holds(t, kind, p, &unstructured.Unstructured{Object: object})
		}
	})
}

func nearlyRight() *rapid.Generator[map[string]any] {
	number := anyOr(rapid.Custom(func(t *rapid.T) any { return rapid.Int64Range(-1, 4).Draw(t, "number") }))
	text := anyOr(rapid.Custom(func(t *rapid.T) any {
		return rapid.SampledFrom([]string{"", "Pending", "Bound", "Running", "Failed", "Terminating", "OnDelete", "x\ny", "2026-11-21T10:00:00Z"}).Draw(t, "text")
	}))
	status := anyOr(rapid.Custom(func(t *rapid.T) any { return rapid.SampledFrom([]string{"True", "False", "Unknown"}).Draw(t, "status") }))
	kind := anyOr(rapid.Custom(func(t *rapid.T) any {
		return rapid.SampledFrom([]string{"Ready", "Progressing", "ReplicaFailure", "Complete", "Failed", "Established", "NamesAccepted", "Available", "PodScheduled"}).Draw(t, "type")
	}))
	condition := anyOr(fields(map[string]*rapid.Generator[any]{
		"type": kind, "status": status, "reason": text, "message": text, "observedGeneration": number}))
	container := anyOr(fields(map[string]*rapid.Generator[any]{
		"name": text, "state": anyOr(fields(map[string]*rapid.Generator[any]{"waiting": anyOr(fields(map[string]*rapid.Generator[any]{"reason": text}))}))}))
	strategy := fields(map[string]*rapid.Generator[any]{
		"type": text, "rollingUpdate": anyOr(fields(map[string]*rapid.Generator[any]{"partition": number}))})
	whole := fields(map[string]*rapid.Generator[any]{
		"metadata": anyOr(fields(map[string]*rapid.Generator[any]{
			"generation": number, "labels": anyOr(fields(map[string]*rapid.Generator[any]{"a": text})),
			"deletionTimestamp": text, "finalizers": list(text), "annotations": anyOr(fields(map[string]*rapid.Generator[any]{storageProvisioner: text, selectedNode: text}))})),
		"spec": anyOr(fields(map[string]*rapid.Generator[any]{
			"replicas": number, "paused": status, "updateStrategy": anyOr(strategy), "storageClassName": text, "volumeName": text})),
		"status": anyOr(fields(map[string]*rapid.Generator[any]{
			"observedGeneration": number, "replicas": number, "updatedReplicas": number, "availableReplicas": number, "desiredNumberScheduled": number,
			"phase": text, "active": number, "failed": number, "conditions": anyOr(list(condition)), "containerStatuses": anyOr(list(container))})),
		"type": text, "data": text,
	})
	return rapid.Map(whole, func(object any) map[string]any { return object.(map[string]any) })
}

// anyOr mostly uses the generator, and sometimes no value or a value of another type.
func anyOr(right *rapid.Generator[any]) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 9).Draw(t, "right") > 0 {
			return right.Draw(t, "value")
		}
		return rapid.SampledFrom([]any{nil, "text", int64(7), 1.5, true, []any{}, []any{"a", nil}, map[string]any{}, map[string]any{"type": int64(1)}}).Draw(t, "wrong")
	})
}

func fields(generators map[string]*rapid.Generator[any]) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		object := map[string]any{}
		for name, g := range generators {
			if rapid.IntRange(0, 9).Draw(t, "has") > 1 {
				object[name] = g.Draw(t, name)
			}
		}
		return object
	})
}

func list(element *rapid.Generator[any]) *rapid.Generator[any] {
	return rapid.Map(rapid.SliceOfN(element, 0, 4), func(elements []any) any { return elements })
}
