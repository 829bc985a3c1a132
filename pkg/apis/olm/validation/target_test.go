package validation

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

func to(secret string) change {
	return withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.TargetRef = &olm.TargetReference{Name: secret} })
}

func TestTarget(t *testing.T) {
	const at = "spec.targetRef.name"
	runRevisionCases(t, map[string]revisionCase{
		"Secret":  {reason: "a name of a Secret", change: to("hosted.eu-1")},
		"Empty":   {reason: "no name", change: to(""), want: []string{missing + at}},
		"NoName":  {reason: "no Secret can be called so", change: to("Hosted/a"), want: []string{invalid + at}},
		"Default": {reason: "rules of RBAC would mean two clusters", change: to("default"), want: []string{invalid + at}, mentions: "--target-kubeconfig"},
	})
}

// TestTargetOfChain: a chain is in one cluster.
func TestTargetOfChain(t *testing.T) {
	named := func(name, secret string) olm.ClusterExtensionRevision {
		r := *revision(to(secret))
		if secret == "" {
			r.Spec.TargetRef = nil
		}
		r.Name = name
		return r
	}
	cases := map[string]struct {
		reason string
		self   olm.ClusterExtensionRevision
		others []olm.ClusterExtensionRevision
		says   string
	}{
		"First":  {reason: "nothing is anywhere", self: named("a-1", "hosted")},
		"Same":   {reason: "where the others are", self: named("a-2", "hosted"), others: []olm.ClusterExtensionRevision{named("a-1", "hosted")}},
		"Itself": {reason: "a create that is tried again finds itself", self: named("a-1", "hosted"), others: []olm.ClusterExtensionRevision{named("a-1", "")}},
		"Host":   {reason: "without one it is another cluster", self: named("a-2", ""), others: []olm.ClusterExtensionRevision{named("a-1", "hosted")}, says: `must be "hosted", as in a-1`},
		"Other":  {reason: "both are named", self: named("a-2", "x"), others: []olm.ClusterExtensionRevision{named("a-1", "hosted")}, says: `"x": must be "hosted"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			errs := ValidateTargetOfChain(&tc.self, tc.others)
			if len(errs) > 0 != (tc.says != "") || tc.says != "" && !strings.Contains(errs[0].Error(), tc.says) {
				t.Errorf("%s: got %v, want %q", tc.reason, errs, tc.says)
			}
		})
	}
}
