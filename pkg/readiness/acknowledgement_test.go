package readiness

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestAcknowledge: a finding is acknowledged for one minor version, with the server's stamp. A
// blocking finding cannot be acknowledged.
func TestAcknowledge(t *testing.T) {
	slice := []manifest.Object{object(t, `{"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}`)}
	earlier := []Revision{{Name: "one-2"}, {Name: "one-1", Role: Earlier, Objects: slice}}
	idOf := func(revisions []Revision) string {
		judge := asked(t, "1.37", "1.38")
		judge.Extension(extension(revisions...))
		return judge.Answer().Findings[0].ID
	}
	id := idOf(earlier)
	if id == "" || idOf([]Revision{{Name: "one-1", Objects: slice}}) != "" {
		t.Fatal("what breaks a rollback has an id, and what blocks has none")
	}
	const stamp = "2026-11-28T10:00:00Z alice of ops"
	for reason, tc := range map[string]struct {
		id, value, stamp, target string
		blocks, accepted         bool
	}{
		"it is for the target":             {id, "1.38 nobody rolls back", stamp, "1.38", false, true},
		"a patch of the target":            {id, "1.38 nobody rolls back", stamp, "1.38.4", false, true},
		"it is for the minor before":       {id, "1.37 nobody rolls back", stamp, "1.38", false, false},
		"it ends with its minor":           {id, "1.38 nobody rolls back", stamp, "1.39", false, false},
		"it is about another finding":      {"0123456789", "1.38 nobody rolls back", stamp, "1.38", false, false},
		"the server has not stamped it":    {id, "1.38 nobody rolls back", "", "1.38", false, false},
		"it has no reason":                 {id, "1.38", stamp, "1.38", false, false},
		"the finding blocks since":         {id, "1.38 nobody rolls back", stamp, "1.38", true, false},
		"the id of a made finding, blocks": {"", "1.38 nobody rolls back", stamp, "1.38", true, false},
	} {
		t.Run(reason, func(t *testing.T) {
			one := extension(earlier...)
			if tc.blocks {
				one = extension(Revision{Name: "one-2", Objects: slice})
			}
			one.Acknowledge(map[string]string{v1alpha1.AcknowledgeFindingPrefix + tc.id: tc.value, v1alpha1.AcknowledgedByPrefix + tc.id: tc.stamp})
			judge := asked(t, "1.37", tc.target)
			judge.Extension(one)
			answer := judge.Answer()
			if len(answer.Findings) != 1 {
				t.Fatalf("%+v", answer.Findings)
			}
			said := answer.Findings[0].Acknowledged
			if (said != nil) != tc.accepted || tc.accepted && (said.By != "alice of ops" || said.Reason != "nobody rolls back" || said.At.IsZero()) {
				t.Errorf("%+v", said)
			}
			if accepted := strings.Contains(answer.Message, "1 finding acknowledged"); accepted != tc.accepted || strings.Contains(answer.Message, "for rollbacks") == (tc.accepted || tc.blocks) {
				t.Errorf("%s", answer.Message)
			}
			if blocked := answer.Verdict == v1alpha1.UpgradeBlocked; blocked != tc.blocks {
				t.Errorf("%s", answer.Verdict)
			}
			if worst := answer.Extensions[0].Severity; (worst == "") != tc.accepted {
				t.Errorf("the extension has severity %q", worst)
			}
		})
	}
}

// TestAcknowledgedLast: the newest acknowledgement counts, and unacknowledged findings are listed
// first.
func TestAcknowledgedLast(t *testing.T) {
	look := Revision{Name: "one-2", Objects: []manifest.Object{
		object(t, `{"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "a"}}`), object(t, `{"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "b"}}`),
	}}
	judge := asked(t, "1.36", "1.37")
	judge.Extension(extension(look))
	id := judge.Answer().Findings[0].ID
	one := extension(look)
	for _, by := range []string{"new", "old"} {
		one.Acknowledge(map[string]string{v1alpha1.AcknowledgeFindingPrefix + id: "1.37 known", v1alpha1.AcknowledgedByPrefix + id: "2026-11-28T10:00:00Z " + by})
	}
	judge = asked(t, "1.36", "1.37")
	judge.Extension(one)
	found := judge.Answer().Findings
	if len(found) != 2 || found[0].Acknowledged != nil || found[1].Name != "a" || found[1].Acknowledged == nil || found[1].Acknowledged.By != "new" {
		t.Errorf("%+v", found)
	}
}
