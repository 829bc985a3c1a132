package olm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

func TestChainOf(t *testing.T) {
	type parts struct {
		Chain    string
		Revision int64
		OK       bool
	}
	cases := map[string]struct {
		reason string
		name   string
		want   parts
	}{
		"Simple":       {"extension, dash, number", "argocd-1", parts{"argocd", 1, true}},
		"Dashes":       {"only the last dash separates", "cert-manager-12", parts{"cert-manager", 12, true}},
		"NumberInName": {"a number in the extension's name is part of it", "redis-6-2", parts{"redis-6", 2, true}},
		"Dots":         {"an extension may be a DNS subdomain", "a.b-3", parts{"a.b", 3, true}},
		"NoDash":       {"a name without a number is no revision's", "argocd", parts{}},
		"NoNumber":     {"nothing behind the dash", "argocd-", parts{}},
		"NoExtension":  {"nothing before the dash", "-1", parts{}},
		"Zero":         {"numbers start at 1", "argocd-0", parts{}},
		"LeadingZero":  {"1 has one spelling, or two names would be one revision", "argocd-01", parts{}},
		"Sign":         {"ParseInt would take a sign", "argocd-+1", parts{}},
		"Letters":      {"not a number", "argocd-v1", parts{}},
		"Trailing":     {"not only a number", "argocd-1a", parts{}},
		"Overflow":     {"beyond 64 bits", "argocd-99999999999999999999", parts{}},
		"Empty":        {"no name", "", parts{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got parts
			got.Chain, got.Revision, got.OK = olm.ChainOf(tc.name)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: ChainOf(%q) (-want +got):\n%s", tc.reason, tc.name, diff)
			}
			if got.OK && olm.RevisionName(got.Chain, got.Revision) != tc.name {
				t.Errorf("RevisionName is not the inverse of ChainOf(%q)", tc.name)
			}
		})
	}
}
