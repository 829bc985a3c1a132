package imagetemplate

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	kjson "sigs.k8s.io/json"
)

func objectOf(t *testing.T, text string) map[string]any {
	t.Helper()
	found := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEvaluate(t *testing.T) {
	object := objectOf(t, `{"kind": "Sample", "spec": {"foo": {"bar": "v2"}, "number": 1234567, "float": 4.10, "yes": true, "none": null, "empty": "", "map": {"a": "b"}, "a.b": "dotted"},
		"status": {"history": [{"state": "Partial", "version": "4.17"}, {"state": "Completed", "version": "4.16"}], "names": ["a", "b"], "one": ["x"]}}`)
	for path, want := range map[string]string{
		"{.spec.foo.bar}": "v2", "{$.spec.foo.bar}": "v2", "{.spec['foo'].bar}": "v2", `{.spec.a\.b}`: "dotted",
		"{.spec.number}": "1234567", "{.spec.yes}": "true", "{.spec.empty}": "", "{.status.names[0]}": "a", "{.status.names[-1:]}": "b", "{.status.one[*]}": "x",
		`{.status.history[?(@.state=="Completed")].version}`: "4.16",
		// The result is not one scalar.
		"{.spec.float}": "!", "{.spec.none}": "!", "{.spec.map}": "!", "{.status.names}": "!", "{.status.names[*]}": "!", "{.status.history[*].version}": "!",
		"{.spec.missing}": "!", "{.status.names[7]}": "!", "{.spec.foo.bar.baz}": "!",
		// The path selects no field, or its cost has no bound.
		"{}": "!", "{$}": "!", "{@}": "!", `{"literal"}`: "!", "{'literal'}": "!", "{1}": "!", "{..}": "!", "{..bar}": "!", "{........}": "!", "{range .status.names[*]}": "!", "{end}": "!",
		"{.status.names[::0]}": "!", "{.status.names[99999999999999999999]}": "!", "{.spec['foo','foo'].bar}": "!", "{.spec.foo.bar}{.kind}": "!", "{.spec.foo": "!", "": "!", "x{.kind}": "!",
		`{.status.history[?(@.x[?(@.y==1)])].version}`: "!", "{[?(@.kind)]}": "!",
	} {
		got, err := Evaluate(path, object)
		if err != nil {
			got = "!"
			if strings.Contains(err.Error(), "v2") || strings.Contains(err.Error(), "1234567") {
				t.Errorf("%s: the error quotes the object: %s", path, err)
			}
		}
		if got != want {
			t.Errorf("%s is %q (%v), want %q", path, got, err, want)
		}
	}
}

// TestEvaluateIsBounded: the cost stays bounded for a deep object and for paths that would
// multiply.
func TestEvaluateIsBounded(t *testing.T) {
	deep := map[string]any{"x": "end"}
	for range 5000 {
		deep = map[string]any{"x": deep}
	}
	paths := []string{"{" + strings.Repeat(".x", 200) + "}", "{" + strings.Repeat("..", 100) + "x}", "{" + strings.Repeat("['x','x']", 40) + "}", "{" + strings.Repeat(".*", 200) + "}", "{" + strings.Repeat("[*]", 150) + "}"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, path := range paths {
			if got, err := Evaluate(path, deep); err == nil {
				t.Errorf("%.20s is %q", path, got)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it takes longer than a minute")
	}
}

// FuzzEvaluate: no input panics, and a result is one scalar of the object.
func FuzzEvaluate(f *testing.F) {
	for _, path := range []string{"{.a.b}", "{.a[?(@.b==1)].c}", "{range .a[*]}{end}", "{..}", "{['a','b']}", "{.a[::0]}", `{.a[?(@.b=="}")]}`, "{[?(@<@)]}", "{.a[?(@.b<'x')].b}"} {
		f.Add(path, `{"a": {"b": "c"}, "d": [1, {"b": 2, "c": "x"}, null]}`)
	}
	f.Fuzz(func(t *testing.T, path, text string) {
		object := map[string]any{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &object); err != nil || len(text) > 1<<12 {
			return
		}
		value, err := Evaluate(path, object)
		if err != nil {
			return
		}
		quoted, _ := json.Marshal(object)
		shown, _ := json.Marshal(value)
		if !strings.Contains(string(quoted), strings.Trim(string(shown), `"`)) {
			t.Errorf("%s is %q, which is not in %s", path, value, quoted)
		}
	})
}
