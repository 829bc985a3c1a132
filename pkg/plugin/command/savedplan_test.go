package command

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/plugin/outcome"
)

// TestPlanDifferences: each difference is reported.
func TestPlanDifferences(t *testing.T) {
	saved := savedPlan{Server: "https://a", Extension: "buoy", Revision: "buoy-2", From: "buoy-1", FromUID: "u", Content: "c", Changes: "d"}
	for want, change := range map[string]func(*savedPlan){
		"": func(*savedPlan) {},
		"the cluster was https://a and is https://b":                           func(p *savedPlan) { p.Server = "https://b" },
		"the extension was buoy and is light":                                  func(p *savedPlan) { p.Extension = "light" },
		"the revision to make was buoy-2 and is buoy-3":                        func(p *savedPlan) { p.Revision = "buoy-3" },
		"the revision that it is compared with was buoy-1 and is nothing":      func(p *savedPlan) { p.From = "" },
		"buoy-1 was deleted and made anew":                                     func(p *savedPlan) { p.FromUID = "v" },
		"the manifests are not the same":                                       func(p *savedPlan) { p.Content, p.Changes = "x", "y" },
		"the changes are not the same":                                         func(p *savedPlan) { p.Changes = "x" },
		"the revision to make was buoy-2 and is buoy-3; the manifests are not": func(p *savedPlan) { p.Revision, p.Content = "buoy-3", "x" },
	} {
		now := saved
		change(&now)
		if got := strings.Join(saved.differences(&now), "; "); (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestPlanFlags: a saved plan replaces the review, so it excludes other flags that accept changes.
func TestPlanFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		options deployOptions
		want    string
	}{
		"both":    {deployOptions{planFile: "a", savePlanFile: "b"}, "--plan"},
		"yes":     {deployOptions{planFile: "a", yes: true}, "--yes"},
		"dry-run": {deployOptions{planFile: "a", dryRun: true}, "--dry-run"},
		"save":    {deployOptions{savePlanFile: "a", yes: true}, "--yes"},
	} {
		tc.options.name = "buoy"
		err := (&deployment{deployOptions: tc.options}).check()
		if outcome.Of(err) != outcome.Unknown || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
