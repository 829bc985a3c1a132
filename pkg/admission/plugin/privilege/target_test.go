package privilege

import (
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// TestTarget: a write to another cluster needs the right to use that cluster, and no other right
// replaces it.
func TestTarget(t *testing.T) {
	web := deployment(t, "web")
	use := func(target string) func(*situation) {
		return func(w *situation) { w.may("", rule("use", "policy.penstock.dev", "targets", target)) }
	}
	cases := map[string]struct {
		reason    string
		situation func(*situation)
		code      int32
		says      []string
	}{
		"Nobody": {
			reason:    "rights on objects of the host are none there",
			situation: func(w *situation) { w.may("", rule("*", "apps", "*")) },
			code:      forbidden, says: []string{"alice cannot use targets.policy.penstock.dev there"},
		},
		"User":      {reason: "users who may use it may have anything done", situation: use("there")},
		"OtherUser": {reason: "and who may use another one nothing", situation: use("elsewhere"), code: forbidden},
		"Bypass":    {reason: "the right to bypass is asked first", situation: func(w *situation) { w.may("", rule("bypass", "policy.penstock.dev", "privilegechecks")) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newSituation(t)
			w.target = "there"
			tc.situation(w)
			want(t, tc.reason, w.creates(rev(1, web)), tc.code, tc.says...)
			r := rev(1, web)
			w.holds(r)
			want(t, tc.reason, w.deletes(r), tc.code, tc.says...)
			// If the revision names the cluster, the flag has no effect.
			w.target = "elsewhere"
			named := rev(2, web)
			named.Spec.TargetRef = &olm.TargetReference{Name: "there"}
			want(t, tc.reason, w.creates(named), tc.code, tc.says...)
		})
	}
}
