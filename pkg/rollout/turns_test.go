package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTurns: custom resources are deleted before the objects that serve them.
func TestTurns(t *testing.T) {
	const (
		crd      = "CustomResourceDefinition.apiextensions.k8s.io widgets.example.com"
		cr       = "Widget.example.com a/w"
		operator = "Deployment.apps a/operator"
		webhook  = "ValidatingWebhookConfiguration.admissionregistration.k8s.io w"
	)
	all := map[string]int{"Namespace a": 0, crd: 0, "ConfigMap a/x": 1, operator: 2, cr: 2, webhook: 3}
	with := func(change map[string]int) map[string]int {
		changed := map[string]int{}
		for object, rank := range all {
			changed[object] = rank
		}
		for object, rank := range change {
			if changed[object] = rank; rank < 0 {
				delete(changed, object)
			}
		}
		return changed
	}
	for name, tc := range map[string]struct {
		reason    string
		inventory map[string]int
		// asked are the definitions that the budget holds back.
		asked   string
		allowed string
		change  func(*pass)
		want    []string
	}{
		"Plain": {
			reason: "without custom resources the ranks decide", inventory: with(map[string]int{cr: -1}),
			want: []string{webhook, operator, "ConfigMap a/x", "Namespace a, " + crd},
		},
		"Instances": {
			reason: "a webhook that does not answer must not refuse them, and the operator does their finalizers", inventory: all,
			want: []string{"early " + webhook, "early " + cr, operator, "ConfigMap a/x", "Namespace a, " + crd},
		},
		"LateInstances": {
			reason: "whatever phase they are in", inventory: with(map[string]int{cr: 0, "Widget.example.com a/second": 5}),
			want: []string{"early " + webhook, "early Widget.example.com a/second", "early " + cr, operator, "ConfigMap a/x", "Namespace a, " + crd},
		},
		"Acknowledged": {
			reason: "the API server deletes the other instances, and the operator does their finalizers", inventory: all, allowed: "widgets.example.com",
			want: []string{"early " + webhook, "early " + cr, "early " + crd, operator, "ConfigMap a/x", "Namespace a"},
		},
		"AcknowledgedAlone": {
			reason: "so it is without instances of the revision", inventory: with(map[string]int{cr: -1}), allowed: "widgets.example.com",
			want: []string{"early " + webhook, "early " + crd, operator, "ConfigMap a/x", "Namespace a"},
		},
		"Asked": {
			reason: "the definition stays for now, and its operator does not", inventory: all, asked: crd,
			want: []string{"early " + webhook, "early " + cr, operator, "ConfigMap a/x", "Namespace a"},
		},
		"OfOthers": {
			reason: "the definition is not of this extension, nor is the operator", inventory: with(map[string]int{crd: -1}),
			want: []string{webhook, operator + ", " + cr, "ConfigMap a/x", "Namespace a"},
		},
		"Orphaned": {
			reason: "a definition that is released takes nothing along", inventory: with(map[string]int{cr: -1}), allowed: "widgets.example.com",
			change: func(p *pass) { p.Orphan = map[int64]bool{0: true} },
			want:   []string{webhook, operator, "ConfigMap a/x", "Namespace a, " + crd},
		},
		"OtherGroup": {
			reason: "the end of a group is another group", inventory: with(map[string]int{cr: -1, "Widget.com a/w": 2}),
			want: []string{webhook, operator + ", Widget.com a/w", "ConfigMap a/x", "Namespace a, " + crd},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := passOver(newSaga(), tc.inventory)
			p.AllowCRDDeletion = map[string]bool{tc.allowed: true}
			if tc.change != nil {
				tc.change(p)
			}
			unclaimed := p.unclaimed()
			var leaving []*object
			for _, o := range unclaimed {
				if o.step.ID.String() != tc.asked {
					leaving = append(leaving, o)
				}
			}
			var got []string
			for _, turn := range turnsOf(leaving, unclaimed) {
				var names []string
				for _, o := range turn.objects {
					names = append(names, o.step.ID.String())
				}
				line := strings.Join(names, ", ")
				if turn.early {
					line = "early " + line
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHeld: the report of an object that waits for a finalizer names it, and needs a user after a
// while.
func TestHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizers []string
		want       string
	}{
		"one":  {[]string{"example.com/hold"}, "is being deleted; it waits for its finalizer example.com/hold"},
		"many": {[]string{"a/b", "c/d", "e/f", "g/h"}, "is being deleted; it waits for its finalizers a/b, c/d, e/f and 1 more"},
	} {
		for _, wanted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, wanted=%t", name, wanted), func(t *testing.T) {
				s := newSaga()
				r := s.revision(1).phase("a", "ConfigMap a/x=1")
				s.roll(t, r)
				x := refOf("ConfigMap a/x").ID
				s.alter(x, func(o *thing) { o.finalizers, o.deleting = tc.finalizers, wanted })
				if !wanted {
					s.become()
				}
				report := s.settle(t)
				stuck := func() Failure {
					t.Helper()
					if wanted {
						return report.Layers[0].Phases[0].Failures[0]
					}
					return report.Leaving[0]
				}
				if got := stuck(); !strings.HasSuffix(got.Message, tc.want) || got.Stuck || got.NeedsPerson || got.Reason != ReasonTerminating {
					t.Fatalf("got %+v, want %q", got, tc.want)
				}
				s.clock.SetTime(s.clock.Now().Add(HeldAfter))
				var err error
				if report, err = s.pass(); err != nil {
					t.Fatal(err)
				}
				if !stuck().Stuck {
					t.Errorf("after %s nobody is called: %+v", HeldAfter, stuck())
				}
				s.erase(x)
				report = s.settle(t)
				if got := failures(report); len(got) > 0 {
					t.Errorf("it does not go on: %v", got)
				}
			})
		}
	}
}
