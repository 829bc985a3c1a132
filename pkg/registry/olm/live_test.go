package olm_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/diff"
	diffreview "github.com/penstock-project/penstock/pkg/diff/review"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
)

// liveFunc is a Live that is a function.
type liveFunc func(manifests []manifest.Object) revisiondiff.Preview

func (f liveFunc) Preview(_ context.Context, question revisiondiff.LiveQuestion) (revisiondiff.Preview, error) {
	return f(question.Manifests), nil
}

// TestLive: the preview gets only manifests that the caller may see, and the answer is its result.
func TestLive(t *testing.T) {
	var given []string
	s := newServer(t, settings{live: liveFunc(func(manifests []manifest.Object) revisiondiff.Preview {
		given = nil
		for _, object := range manifests {
			given = append(given, object.ID.String())
		}
		a := manifests[0].ID
		return revisiondiff.Preview{Withheld: 2, Report: diff.Report{
			Summary: diff.Summary{Changed: 1, Unchanged: 3},
			Notes:   []diffreview.Note{{Severity: note.Warning, Reason: "Conflict", ID: a, Message: ".data.k belongs to kubectl-edit"}},
			Changes: []diff.Change{{ID: a, Kind: diff.Changed, OldVersion: "v1", NewVersion: "v1", Fields: []diff.FieldChange{{Path: ".data.k", Op: diff.Replace}}}},
		}}
	})})
	s.create(file("e-1", inline(configMap("a", "1"), secret("s", "x")))).want(t, http.StatusCreated)
	s.rules.set("bob", nil)
	for user, tc := range map[string]struct {
		given    []string
		withheld float64
	}{
		"alice": {[]string{"ConfigMap default/a", "Secret default/s"}, 2},
		"bob":   {[]string{"ConfigMap default/a"}, 3},
	} {
		got := s.do(call{method: http.MethodGet, path: diffs + "/e-1..live", user: user}).want(t, http.StatusOK)
		if diff := cmp.Diff(tc.given, given); diff != "" {
			t.Errorf("%s: the preview was given (-want +got):\n%s", user, diff)
		}
		want := object{"added": 0.0, "changed": 1.0, "removed": 0.0, "unchanged": 3.0, "withheld": tc.withheld}
		if diff := cmp.Diff(want, got.body["summary"]); diff != "" {
			t.Errorf("%s: summary (-want +got):\n%s", user, diff)
		}
		if diff := cmp.Diff([]any{"live", "e-1", "e-1..live"}, []any{got.body["from"], got.body["to"], at(got.body, "metadata", "name")}); diff != "" {
			t.Errorf("%s: sides (-want +got):\n%s", user, diff)
		}
		if !strings.Contains(notes(got), "kubectl-edit") {
			t.Errorf("%s: notes: %s", user, notes(got))
		}
	}
}
