package governance_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TestHashesOfBefore: hashes of plans without terms never change, so that stored approvals and
// approvedPlanHash stay valid.
func TestHashesOfBefore(t *testing.T) {
	items := []v1alpha1.PlanItem{{
		Name: "a", Digest: "d", Fingerprint: "f", Action: v1alpha1.ItemUpdate, ImpactSeverity: v1alpha1.ImpactHigh,
		TargetRef: v1alpha1.TargetRef{APIVersion: "v1", Kind: "K", Name: "n"}, BlastRadius: &v1alpha1.BlastRadius{Nodes: 3},
	}}
	for _, approvals := range []int32{0, 1} {
		spec := v1alpha1.ConfigurationPlanSpec{Profile: "P", OnConflict: v1alpha1.OnConflictBlock, RestoreRun: 2, Approvals: approvals}
		want := hashOf(`["penstock/plan/1",[{"Name":"a","Digest":"d","Fingerprint":"f","Target":{"apiVersion":"v1","kind":"K","name":"n"},"Action":"Update","Impact":"High","Blast":{"nodes":3},"Takes":null}]]`)
		if got := governance.PlanHash(spec, items, ""); got != want {
			t.Errorf("approvals %d: the plan has hash %s, and had %s", approvals, got, want)
		}
		want = hashOf(`["penstock/inputs/1",{"Profile":"P","OnConflict":"Block","Options":null,"RestoreRun":2}]`)
		if got := governance.InputsHash(spec); got != want {
			t.Errorf("approvals %d: the inputs have hash %s, and had %s", approvals, got, want)
		}
	}
}

// TestHashOfTerms: an approval covers the time of execution and the number of approvers. A plan
// with other terms has another hash.
func TestHashOfTerms(t *testing.T) {
	week := v1alpha1.PlanWindow{Schedule: "0 22 * * Sat", TimeZone: "UTC", Duration: metav1.Duration{Duration: time.Hour}}
	other := week
	other.TimeZone = "Europe/Berlin"
	until := metav1.NewTime(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	later := metav1.NewTime(until.Add(time.Hour))
	plans, inputs := map[string]string{}, map[string]string{}
	for name, spec := range map[string]v1alpha1.ConfigurationPlanSpec{
		"none": {}, "window": {Window: &week}, "other window": {Window: &other}, "end": {Expires: &until}, "later end": {Expires: &later},
		"two": {Approvals: 2}, "three": {Approvals: 3}, "after": {Requires: []v1alpha1.ProfileName{"A"}}, "after both": {Requires: []v1alpha1.ProfileName{"B", "A"}}, "all": {Window: &week, Expires: &until, Approvals: 2},
	} {
		for _, seen := range []struct {
			hashes map[string]string
			hash   string
		}{{plans, governance.PlanHash(spec, nil, "")}, {inputs, governance.InputsHash(spec)}} {
			if before, same := seen.hashes[seen.hash]; same {
				t.Errorf("%s and %s are the same", name, before)
			}
			seen.hashes[seen.hash] = name
		}
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := metav1.NewTime(until.In(berlin))
	if governance.PlanHash(v1alpha1.ConfigurationPlanSpec{Expires: &until}, nil, "") != governance.PlanHash(v1alpha1.ConfigurationPlanSpec{Expires: &elsewhere}, nil, "") {
		t.Error("the same moment, written in another zone, is another plan")
	}
}

func TestTurnAt(t *testing.T) {
	saturday := &v1alpha1.PlanWindow{Schedule: "0 22 * * Sat", TimeZone: "Europe/Berlin", Duration: metav1.Duration{Duration: 6 * time.Hour}}
	opens := time.Date(2026, 11, 28, 21, 0, 0, 0, time.UTC)
	shown := func(at time.Time) *v1alpha1.PlanWindowStatus {
		return &v1alpha1.PlanWindowStatus{OpensAt: metav1.NewTime(at), ClosesAt: metav1.NewTime(at.Add(6 * time.Hour)), Local: at.Add(time.Hour).Format("Mon 2006-01-02 15:04") + " CET, Europe/Berlin"}
	}
	until := func(at time.Time) *metav1.Time { end := metav1.NewTime(at); return &end }
	for name, c := range map[string]struct {
		reason string
		spec   v1alpha1.ConfigurationPlanSpec
		now    time.Time
		want   governance.Turn
	}{
		"no terms":     {"always", v1alpha1.ConfigurationPlanSpec{}, opens, governance.Turn{Open: true}},
		"before":       {"when it opens", v1alpha1.ConfigurationPlanSpec{Window: saturday}, opens.Add(-time.Hour), governance.Turn{Window: shown(opens), In: time.Hour}},
		"open":         {"until it closes", v1alpha1.ConfigurationPlanSpec{Window: saturday}, opens.Add(time.Hour), governance.Turn{Open: true, Window: shown(opens), In: 5 * time.Hour}},
		"over":         {"the next week", v1alpha1.ConfigurationPlanSpec{Window: saturday}, opens.Add(6 * time.Hour), governance.Turn{Window: shown(opens.Add(7 * 24 * time.Hour)), In: 7*24*time.Hour - 6*time.Hour}},
		"ends":         {"until then", v1alpha1.ConfigurationPlanSpec{Expires: until(opens)}, opens.Add(-time.Minute), governance.Turn{Open: true, In: time.Minute}},
		"ended":        {"not at that time", v1alpha1.ConfigurationPlanSpec{Expires: until(opens)}, opens, governance.Turn{Open: true, Expired: true}},
		"ends in it":   {"whatever is first", v1alpha1.ConfigurationPlanSpec{Window: saturday, Expires: until(opens.Add(2 * time.Hour))}, opens.Add(time.Hour), governance.Turn{Open: true, Window: shown(opens), In: time.Hour}},
		"ends before":  {"", v1alpha1.ConfigurationPlanSpec{Window: saturday, Expires: until(opens)}, opens.Add(-2 * time.Hour), governance.Turn{Window: shown(opens), In: 2 * time.Hour}},
		"ended before": {"", v1alpha1.ConfigurationPlanSpec{Window: saturday, Expires: until(opens.Add(-time.Hour))}, opens.Add(-time.Minute), governance.Turn{Expired: true, Window: shown(opens), In: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := governance.TurnAt(c.spec, c.now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
	for _, broken := range []v1alpha1.PlanWindow{{Schedule: "x", TimeZone: "UTC", Duration: saturday.Duration}, {Schedule: "0 22 * * *", TimeZone: "Nowhere/Land", Duration: saturday.Duration}, {Schedule: "0 22 * * *", TimeZone: "UTC"}} {
		if turn, err := governance.TurnAt(v1alpha1.ConfigurationPlanSpec{Window: &broken}, opens); err == nil || turn.Open || !strings.Contains(err.Error(), "spec.window") {
			t.Errorf("%+v: %+v, %v", broken, turn, err)
		}
	}
}

func TestBegins(t *testing.T) {
	spec := v1alpha1.ConfigurationPlanSpec{Window: &v1alpha1.PlanWindow{Schedule: "0 22 * * Sat", TimeZone: "Europe/Berlin", Duration: metav1.Duration{Duration: time.Hour}}}
	now := time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC)
	turn, err := governance.TurnAt(spec, now)
	if err != nil {
		t.Fatal(err)
	}
	if got := turn.Begins(spec); got != "its window opens at 2026-11-28T21:00:00Z (Sat 2026-11-28 22:00 CET, Europe/Berlin)" {
		t.Error(got)
	}
	end := metav1.NewTime(now.Add(time.Hour))
	spec.Expires = &end
	if got := turn.Begins(spec); !strings.HasSuffix(got, "; before that, at 2026-11-23T05:00:00Z, it expires") {
		t.Error(got)
	}
}

// TestTurnsOfAYear: for a year with both clock changes, a waiting plan is reconciled when a window
// opens and when it closes, and at no other time.
func TestTurnsOfAYear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := v1alpha1.ConfigurationPlanSpec{Window: &v1alpha1.PlanWindow{Schedule: "30 2 * * Sun", TimeZone: "Europe/Berlin", Duration: metav1.Duration{Duration: 90 * time.Minute}}}
		end := time.Now().AddDate(1, 0, 0)
		opened, woken := 0, 0
		var open time.Duration
		for time.Now().Before(end) {
			turn, err := governance.TurnAt(spec, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if turn.Open {
				opened++
				open += turn.In
			}
			time.Sleep(turn.In)
			woken++
		}
		// 2000 has 53 Sundays. On 26 March 02:30 does not exist, and on 29 October it occurs twice.
		// The last reconcile is in the next year.
		if opened != 53 || woken != 2*opened+1 || open != 53*90*time.Minute {
			t.Errorf("opened %d times for %s, woken %d times", opened, open, woken)
		}
	})
}
