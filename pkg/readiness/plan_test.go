package readiness

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestSteps: the manifests decide which version is next, and when it can be installed.
func TestSteps(t *testing.T) {
	class := func(version string) []manifest.Object {
		return []manifest.Object{object(t, `{"apiVersion": "resource.k8s.io/`+version+`", "kind": "DeviceClass", "metadata": {"name": "gpu"}}`)}
	}
	rendered := func(version string, objects ...manifest.Object) Candidate {
		return Candidate{Version: version, Rendered: true, Contents: ContentsOf(objects)}
	}
	needs := func(one Candidate, version string, packages ...string) Candidate {
		if version != "" {
			least, err := clusterversion.ParseKubernetes(version)
			if err != nil {
				t.Fatal(err)
			}
			one.Statement.Least = &least
		}
		one.Requires = packages
		return one
	}
	old := rendered("2.0.0", class("v1beta1")...)
	good := rendered("3.0.0", class("v1")...)
	failed := rendered("2.0.0")
	failed.Contents.NotLooked = "no such image"

	judge := asked(t, "1.37", "1.38")
	judge.Live(Live{Definitions: map[manifest.ID]Definition{object(t, lamps).ID: {Versions: []DefinedVersion{{Name: "v1", Served: true, Storage: true}, {Name: "v1beta1", Served: true}}, Stored: []string{"v1beta1"}}}})
	judge.Steps()
	blocked := []Revision{{Name: "blocked-1", Objects: class("v1beta1")}}
	for _, one := range []Extension{
		{Name: "after", Statement: Statement{Package: "a", Next: []Candidate{needs(rendered("2.0.0"), "1.38")}}},
		{Name: "blocked", Version: "1.0.0", Revisions: blocked, Statement: Statement{Package: "b", Next: []Candidate{old, good}}},
		{Name: "deadlock", Revisions: blocked, Statement: Statement{Package: "d", Next: []Candidate{needs(good, "1.38")}}},
		{Name: "failed", Statement: Statement{Package: "e", Next: []Candidate{failed, good}}},
		{Name: "first", Statement: Statement{Package: "f", Next: []Candidate{needs(good, "", "z")}}},
		{Name: "many", Statement: Statement{Package: "m", Next: slices.Repeat([]Candidate{needs(Candidate{Version: "2.0.0"}, "1.40.0")}, 8)}},
		{Name: "nothing", Statement: Statement{Package: "n"}},
		{Name: "pending", Statement: Statement{Package: "p", Next: []Candidate{{Version: "2.0.0"}}}},
		{Name: "stored", Statement: Statement{Package: "s", Next: []Candidate{rendered("2.0.0", object(t, lamps))}}},
		{Name: "zebra", Statement: Statement{Package: "z", Next: []Candidate{needs(good, "", "f")}}},
	} {
		judge.Extension(&one)
	}
	answer := judge.Answer()
	var got []string
	for _, step := range answer.Steps {
		got = append(got, strings.Join([]string{string(step.Order), step.Extension, step.Version, step.Next, step.Passed}, "|"))
	}
	want := []string{
		"Before|blocked|1.0.0|3.0.0|2.0.0: it has resource.k8s.io/v1beta1 DeviceClass, which Kubernetes 1.38 does not serve",
		"Either|failed||3.0.0|2.0.0: not looked at: no such image",
		"Either|zebra||3.0.0|", // its required package comes first
		"Either|first||3.0.0|",
		"After|after||2.0.0|",
		"Deadlock|deadlock||3.0.0|",
		"|many|||2.0.0: it needs Kubernetes 1.40.0; 2.0.0: it needs Kubernetes 1.40.0; 2.0.0: it needs Kubernetes 1.40.0; 2.0.0: it needs Kubernetes 1.40.0; 2.0.0: it needs Kubernetes 1.40.0; and 3 more",
		"|pending|||2.0.0: not rendered",
		"|stored|||2.0.0: it drops version v1beta1 of lamps.example.com, in which objects may be stored",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if command := answer.Steps[0].Command; command != "kubectl penstock upgrade blocked --version 3.0.0" {
		t.Error(command)
	}
	for _, row := range answer.Extensions {
		if (row.NotLooked != "") != (row.Name == "failed" || row.Name == "pending") {
			t.Errorf("%s: %q", row.Name, row.NotLooked)
		}
	}
	if answer.Verdict != v1alpha1.UpgradeBlocked {
		t.Errorf("%s: %s", answer.Verdict, answer.Message)
	}
}

// TestNotServedYet: a version with objects that only the upgraded cluster serves is installed after
// the upgrade.
func TestNotServedYet(t *testing.T) {
	judge := asked(t, "1.32", "1.33")
	judge.Steps()
	judge.Extension(&Extension{Name: "one", Statement: Statement{Next: []Candidate{{Version: "2.0.0", Rendered: true, Contents: ContentsOf([]manifest.Object{
		object(t, `{"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceClass", "metadata": {"name": "gpu"}}`)})}}}})
	if answer := judge.Answer(); len(answer.Steps) != 1 || answer.Steps[0].Order != v1alpha1.UpgradeAfter {
		t.Errorf("%+v", answer.Steps)
	}
}
