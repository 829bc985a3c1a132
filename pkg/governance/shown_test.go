package governance_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// target returns an object with a spec, or nil without one.
func target(t *testing.T, spec string) *manifest.Object {
	t.Helper()
	if spec == "" {
		return nil
	}
	raw, err := yaml.YAMLToJSON([]byte("{apiVersion: v1, kind: K, metadata: {name: thing}, spec: " + spec + "}"))
	if err != nil {
		t.Fatal(err)
	}
	object, err := manifest.Digester{}.FromJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &object
}

// specOf returns the spec of a shown object as text.
func specOf(t *testing.T, object *manifest.Object) string {
	t.Helper()
	if object == nil {
		return ""
	}
	var content struct{ Spec json.RawMessage }
	if err := json.Unmarshal(object.JSON, &content); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(content.Spec), `"`, "")
}

func TestShown(t *testing.T) {
	for name, c := range map[string]struct {
		reason, before, after, intent string
		was, is                       string
	}{
		"changed":          {"what goes is hidden, what comes is the plan's", "{a: 1, b: x}", "{a: 2, b: x}", "{a: 2}", "{a:***}", "{a:2}"},
		"added":            {"it has not been there", "{b: x}", "{a: 2, b: x}", "{a: 2}", "{}", "{a:2}"},
		"same":             {"it does not change, no matter who says it", "{a: 2, b: x}", "{a: 2, b: u}", "{a: 2, b: u}", "{b:***}", "{b:u}"},
		"defaulted":        {"what the server adds is not the plan's", "{b: x}", "{a: {c: 1, d: 2}, b: x}", "{a: {c: 1}}", "{}", "{a:{c:1,d:***}}"},
		"altered":          {"a webhook made another value of it", "{a: 1}", "{a: 3}", "{a: 2}", "{a:***}", "{a:*** (another value)}"},
		"removed":          {"names of fields are there, values are not", "{a: {b: x}, c: 1}", "{c: 1}", "{c: 1}", "{a:{b:***}}", "{}"},
		"items":            {"those that stay are the target's", "{l: [x, u]}", "{l: [x, z]}", "{l: [x, z]}", "{l:[***,***]}", "{l:[***,z]}"},
		"items, unasked":   {"", "{l: [x]}", "{l: [x, z]}", "{}", "{l:[***]}", "{l:[***,*** (another value)]}"},
		"order":            {"that there is a change is seen", "{l: [x, u]}", "{l: [u, x]}", "{l: [u, x]}", "{l:***}", "{l:*** (in another order)}"},
		"another type":     {"", "{a: {b: x}}", "{a: 1}", "{a: 1}", "{a:{b:***}}", "{a:1}"},
		"created":          {"all of it is the plan's", "", "{a: 1, l: [x]}", "{a: 1, l: [x]}", "", "{a:1,l:[x]}"},
		"deleted":          {"all of it is the target's", "{a: 1}", "", "{a: 1}", "{a:***}", ""},
		"restored":         {"what was there once is no more public than what is there", "{a: 2}", "{a: 1}", "", "{a:***}", "{a:*** (another value)}"},
		"restored, absent": {"", "{b: 1}", "{a: {c: 1}, b: 1}", "", "{}", "{a:{c:***}}"},
	} {
		t.Run(name, func(t *testing.T) {
			was, is, err := governance.Shown(target(t, c.before), target(t, c.after), target(t, c.intent))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.was, c.is}, []string{specOf(t, was), specOf(t, is)}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestShownHidesTargets: for random states before and after, no value of the target is shown,
// except new values of the intent. Every change is visible.
func TestShownHidesTargets(t *testing.T) {
	for seed := range uint64(500) {
		dice := rand.New(rand.NewPCG(seed, 3))
		// Values of the target, of the intent and of the server have different names.
		var tree func(source string, depth int) any
		tree = func(source string, depth int) any {
			switch n := dice.IntN(4); {
			case n == 0 && depth > 0:
				items := []any{}
				for range dice.IntN(4) {
					items = append(items, tree([]string{source, "live"}[dice.IntN(2)], depth-1))
				}
				return items
			case n < 3 && depth > 0:
				fields := map[string]any{}
				for range dice.IntN(4) {
					fields[fmt.Sprintf("f%d", dice.IntN(5))] = tree(source, depth-1)
				}
				return fields
			default:
				return fmt.Sprintf("%s-%d", source, dice.IntN(3))
			}
		}
		made := func(spec any) *manifest.Object {
			object, err := manifest.Digester{}.New(map[string]any{"apiVersion": "v1", "kind": "K", "metadata": map[string]any{"name": "n"}, "spec": spec})
			if err != nil {
				t.Fatal(err)
			}
			return &object
		}
		before, after, intent := made(tree("live", 3)), made(tree([]string{"plan", "live", "server"}[dice.IntN(3)], 3)), made(tree("plan", 3))
		was, is, err := governance.Shown(before, after, intent)
		if err != nil {
			t.Fatal(err)
		}
		shown := string(was.JSON) + string(is.JSON)
		if strings.Contains(shown, "live-") || strings.Contains(shown, "server-") {
			t.Errorf("seed %d: %s\n%s\nshow\n%s", seed, before.JSON, after.JSON, shown)
		}
		if (was.Digest == is.Digest) != (before.Digest == after.Digest) {
			t.Errorf("seed %d: %s\n%s\nshow\n%s", seed, before.JSON, after.JSON, shown)
		}
	}
}
