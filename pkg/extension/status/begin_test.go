package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBegins: after its start, a process does not know the catalogs yet. Earlier conditions about
// them stay, so that there is no write and no event.
func TestBegins(t *testing.T) {
	known := facts(with(rev(1, well)), upgrades(&Upgrades{Newest: "2.0.0", Blocked: []BlockedVersion{{"2.0.0", "it does not succeed 1.0.0"}}}),
		func(f *Facts) { f.Deprecations = &Deprecations{Package: []string{"use dex"}} })
	known.Extension.Status = Of(known)
	begins := known
	begins.Outcome, begins.Deprecations, begins.Upgrades = Outcome{Result: Pending, Message: "the catalogs are not known yet"}, nil, nil
	if got := Of(begins); !Same(known.Extension.Status, got) {
		t.Errorf("the status is another one (-before +after)\n%s", cmp.Diff(known.Extension.Status, got))
	}
	begins.Extension.Generation++
	if got := line(Of(begins).Conditions, Deprecated); got != "Unknown/DeprecationStatusUnknown: deprecation status unknown: catalog data unavailable" {
		t.Errorf("of another spec it says %q", got)
	}
}

// TestGoesBack: a spec that selects an older version is not reported as an upgrade.
func TestGoesBack(t *testing.T) {
	f := facts(with(rev(2, well)), upgrades(&Upgrades{Newest: "1.1.0", Allowed: "1.0.0"}))
	if got, want := line(Of(f).Conditions, UpgradeAvailable), "False/NewestInstalled: 1.1.0 is the newest version"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	f.Upgrades.Allowed = "1.10.0"
	if got, want := line(Of(f).Conditions, UpgradeAvailable), "True/Allowed: 1.10.0 is newer than 1.1.0, and allowed"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}
