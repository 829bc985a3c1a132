package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// nested returns JSON of a custom resource with a value inside the given number of lists.
func nested(depth int, value string) *manifest.Object {
	o := &manifest.Object{Ref: manifest.Ref{ID: manifest.ID{Group: "example.com", Kind: "X", Name: "x"}, Version: "v1"}}
	half := depth / 2
	o.JSON = []byte(`{"apiVersion":"example.com/v1","kind":"X","metadata":{"name":"x"},"spec":` +
		strings.Repeat(`{"a":[`, half) + value + strings.Repeat(`]}`, half) + `}`)
	return o
}

// checkOutput checks the properties that every output to clients must have.
func checkOutput(t difftest.TB, change Change) {
	t.Helper()
	difftest.CheckPrintable(t, "the unified diff", change.Unified)
	difftest.CheckNotes(t, change.Notes)
	for _, f := range change.Fields {
		difftest.CheckPrintable(t, "a path", f.Path)
		difftest.CheckPrintable(t, "a value", string(f.Old)+string(f.New))
		if len(f.Path) > 4<<10 {
			t.Errorf("a path of %d bytes", len(f.Path))
		}
	}
	encoded, err := json.Marshal(change)
	if err != nil {
		t.Errorf("encoding: %v", err)
	}
	var decoded Change
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Errorf("decoding: %v", err)
	}
}

func TestDeepNesting(t *testing.T) {
	for name, pair := range map[string][2]*manifest.Object{
		"Replaced":     {nested(9990, `1`), nested(9990, `2`)},
		"Added":        {nil, nested(9990, `1`)},
		"ValueIsDeep":  {nested(2, `1`), nested(9990, `1`)},
		"BeyondJSON":   {nested(2, `1`), nested(30_000, `1`)},
		"OnlyBrackets": {nested(2, `1`), {Ref: nested(2, `1`).Ref, JSON: []byte(strings.Repeat(`{"a":`, 5_000_000))}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			change := Compare(t.Context(), pair[0], pair[1], Options{Schema: difftest.Builtin(t)})
			if change.Kind == Unchanged {
				t.Error("found no change")
			}
			checkOutput(t, change)
			if size := len(change.Unified); size > 1<<20 {
				t.Errorf("a unified diff of %d bytes", size)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestDeepValuesAreLeftOut: deep values are omitted although they are small, because clients could
// not decode them.
func TestDeepValuesAreLeftOut(t *testing.T) {
	old := nested(0, `1`)
	for depth, want := range map[int]int{60: 0, 200: 1} {
		change := Compare(t.Context(), old, nested(depth, `2`), Options{})
		if len(change.Fields) != 1 || change.Truncated.Values != want || (change.Fields[0].Truncated > 0) != (want > 0) {
			t.Errorf("%d levels: got %+v, %+v", depth, change.Fields, change.Truncated)
		}
	}
}

func crowd(t testing.TB, count int, version string) []manifest.Object {
	objects := make([]manifest.Object, 0, count)
	for i := range count {
		o, err := difftest.Digester().FromJSON([]byte(fmt.Sprintf(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-%d","namespace":"ns","labels":{"version":%q}},"data":{"a":"x","b":%q,"c":"line 1\nline 2\n%s\n"}}`,
			i, version, version, version)))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

func TestManyObjectsAreBounded(t *testing.T) {
	limits := Limits{TotalFields: 1000, TotalUnifiedBytes: 10_000, TotalValueBytes: 5000}
	report := Revisions(t.Context(), crowd(t, 4000, "v1"), crowd(t, 4000, "v2"), Options{Schema: difftest.Builtin(t), Limits: limits})
	if report.Summary.Changed != 4000 || len(report.Changes) != 4000 {
		t.Fatalf("got %+v and %d changes, want all", report.Summary, len(report.Changes))
	}
	shown, bytes, unified, lines := 0, 0, 0, 0
	for _, change := range report.Changes {
		shown += len(change.Fields)
		for _, f := range change.Fields {
			bytes += len(f.Old) + len(f.New)
		}
		unified += len(change.Unified)
		lines += change.AddedLines + change.RemovedLines
		if change.FieldCount() != 3 {
			t.Fatalf("%s: counts %d fields, want 3 whatever is shown", change.ID, change.FieldCount())
		}
	}
	if shown != 1000 || report.Truncated.Fields != 11_000 {
		t.Errorf("shows %d fields and leaves out %d, want 1000 and 11000", shown, report.Truncated.Fields)
	}
	if bytes > 5000 || report.Truncated.Values == 0 {
		t.Errorf("%d bytes of values, %d left out", bytes, report.Truncated.Values)
	}
	// The limit does not include the file names.
	if unified > 20_000 || lines != 24_000 || report.Truncated.Lines == 0 {
		t.Errorf("unified diffs of %d bytes, %d changed lines, %d left out", unified, lines, report.Truncated.Lines)
	}
}

func TestTimeRunsOut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	old, new := crowd(t, 10, "v1"), append(crowd(t, 9, "v2"), crowd(t, 10, "v1")[9])
	report := Revisions(ctx, old, new, Options{Schema: difftest.Builtin(t)})
	if report.Summary.Changed != 9 || report.Summary.Unchanged != 1 || report.Truncated.Objects != 9 {
		t.Errorf("got %+v, %+v; digests need no time, the rest is counted", report.Summary, report.Truncated)
	}
	for _, change := range report.Changes {
		if change.NotCompared == "" || len(change.Fields) > 0 {
			t.Errorf("got %+v", change)
		}
	}
}

func TestUnreadable(t *testing.T) {
	good := difftest.Object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}")
	for _, content := range []string{"", "null", "[]", "{", "7", "{\"a\":\"\xff\"}"} {
		bad := &manifest.Object{Ref: good.Ref, JSON: []byte(content)}
		bad.Digest = ""
		change := Compare(t.Context(), bad, good, Options{})
		if change.Kind != Changed || content != "{\"a\":\"\xff\"}" && change.NotCompared == "" {
			t.Errorf("%q: got %s, not compared because %q", content, change.Kind, change.NotCompared)
		}
		checkOutput(t, change)
	}
	if change := Compare(t.Context(), nil, nil, Options{}); change.Kind != Unchanged {
		t.Errorf("nothing became nothing: got %s", change.Kind)
	}
}
