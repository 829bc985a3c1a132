package privilege

import (
	"testing"
)

// giving marks objects of a revision as create-only, by name.
func (r *revision) giving(names ...string) *revision {
	for p := range r.Spec.Phases {
		for o := range r.Spec.Phases[p].Objects {
			entry := &r.Spec.Phases[p].Objects[o]
			for _, name := range names {
				entry.CreateOnly = entry.CreateOnly || entry.Name == name
			}
		}
	}
	return r
}

// TestCreateOnlyObjects: a create-only object needs the right to create it, and no other right.
func TestCreateOnlyObjects(t *testing.T) {
	web, config := deployment(t, "web"), configMap(t, "config", "1")
	all := rule("create,patch,delete", "apps", "deployments")
	cases := map[string]struct {
		reason    string
		situation func(*situation)
		act       func(*situation) error
		code      int32
		says      []string
	}{
		"Create": {
			reason:    "the right to create is enough: it cannot overwrite anything",
			situation: func(w *situation) { w.may("lighthouse", rule("create", "", "configmaps")) },
			act:       func(w *situation) error { return w.creates(rev(1, config).giving("config")) },
		},
		"NotEvenCreate": {
			reason:    "and is needed",
			situation: func(*situation) {},
			act:       func(w *situation) error { return w.creates(rev(1, config).giving("config")) },
			code:      forbidden, says: []string{"cannot create configmaps lighthouse/config"},
		},
		"Dropped": {
			reason:    "a revision without it deletes nothing",
			situation: func(w *situation) { w.may("lighthouse", all).holds(rev(1, web, config).giving("config")) },
			act:       func(w *situation) error { return w.creates(rev(2, web)) },
		},
		"TornDown": {
			reason:    "nor does the end of the chain",
			situation: func(w *situation) { w.may("lighthouse", all) },
			act: func(w *situation) error {
				r := rev(1, web, config).giving("config")
				w.holds(r)
				return w.deletes(r)
			},
		},
		"GivenAway": {
			reason: "what the chain had owned is released, which is a patch",
			situation: func(w *situation) {
				w.may("lighthouse", rule("create", "", "configmaps")).holds(rev(1, config)).has(1, config)
			},
			act:  func(w *situation) error { return w.creates(rev(2, config).giving("config")) },
			code: forbidden, says: []string{"cannot patch configmaps lighthouse/config"},
		},
		"TakenBack": {
			reason: "a revision that owns it patches it",
			situation: func(w *situation) {
				w.may("lighthouse", rule("create", "", "configmaps")).holds(rev(1, config).giving("config"))
			},
			act:  func(w *situation) error { return w.creates(rev(2, config)) },
			code: forbidden, says: []string{"cannot patch configmaps lighthouse/config"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newSituation(t)
			tc.situation(w)
			want(t, tc.reason, tc.act(w), tc.code, tc.says...)
		})
	}
}
