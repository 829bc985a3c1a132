package status

import (
	"os"
	"strings"
	"testing"
)

// TestPage: each reason of Ready and UpgradeAvailable is on a documentation page about the required
// action.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/clusterextension-status.md")
	if err != nil {
		t.Fatal(err)
	}
	revisions, err := os.ReadFile("../../../docs/reference/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	page = append(page, revisions...)
	reasons := []string{
		ReasonSucceeded, ReasonRollingOut, string(Pending), reasonRevisionsUnknown, reasonDeleting, reasonProposed, reasonPaused, reasonUnavailable,
		reasonUpgradeAllowed, reasonUpgradeBlocked, reasonNewest, reasonNoCatalogData, reasonNoUpgrades, ReasonAbsent,
	}
	for result := range verdicts() {
		reasons = append(reasons, string(result))
	}
	for _, reason := range reasons {
		if !strings.Contains(string(page), "`"+reason+"` |") && !strings.Contains(string(page), "`"+reason+"`, `") {
			t.Errorf("no page has a row for %s", reason)
		}
	}
}
