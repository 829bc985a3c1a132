package maintenancewindow

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func recurring(name, kind, schedule string, lasts time.Duration, change ...func(*Spec)) Window {
	spec := Spec{Type: kind, Schedule: schedule, TimeZone: "Europe/Berlin", Duration: &metav1.Duration{Duration: lasts}}
	for _, c := range change {
		c(&spec)
	}
	return New(&MaintenanceWindow{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
}

func once(t *testing.T, name, kind, start, end string) Window {
	t.Helper()
	return New(&MaintenanceWindow{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: Spec{
		Type: kind, Start: &metav1.Time{Time: at(t, start)}, End: &metav1.Time{Time: at(t, end)},
	}})
}

func forTeam(team string) func(*Spec) {
	return func(s *Spec) {
		s.ExtensionSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
	}
}

func TestDecide(t *testing.T) {
	nights := recurring("nights", TypeAllow, "0 22 * * *", 4*time.Hour)
	holidays := once(t, "holidays", TypeDeny, "2026-12-23T23:00:00Z", "2027-01-01T23:00:00Z")
	for name, tc := range map[string]struct {
		reason string
		all    []Window
		now    string
		labels map[string]string
		open   bool
		by     string
		// opens and closes are empty for never.
		opens, closes string
	}{
		"None":        {reason: "without windows upgrades begin at any time", now: "2026-11-28T12:00:00Z", open: true},
		"Closed":      {reason: "an Allow is closed", all: []Window{nights}, now: "2026-11-28T12:00:00Z", by: "nights", opens: "2026-11-28T21:00:00Z"},
		"Open":        {reason: "an Allow is open", all: []Window{nights}, now: "2026-11-28T21:00:00Z", open: true, by: "nights", closes: "2026-11-29T01:00:00Z"},
		"Begins":      {reason: "the process began in the middle of a window", all: []Window{nights}, now: "2026-11-29T00:59:59Z", open: true, by: "nights", closes: "2026-11-29T01:00:00Z"},
		"Denied":      {reason: "Deny counts more than Allow", all: []Window{nights, holidays}, now: "2026-12-24T22:00:00Z", by: "holidays", opens: "2027-01-01T23:00:00Z"},
		"DenyInside":  {reason: "a Deny that opens inside of an Allow ends it", all: []Window{nights, once(t, "release", TypeDeny, "2026-11-28T22:00:00Z", "2026-11-28T23:00:00Z")}, now: "2026-11-28T21:30:00Z", open: true, by: "nights", closes: "2026-11-28T22:00:00Z"},
		"AfterDeny":   {reason: "what is left of the Allow counts", all: []Window{nights, once(t, "release", TypeDeny, "2026-11-28T20:00:00Z", "2026-11-28T23:00:00Z")}, now: "2026-11-28T21:30:00Z", by: "release", opens: "2026-11-28T23:00:00Z"},
		"Past":        {reason: "a Deny in the past is nothing", all: []Window{holidays}, now: "2027-02-01T00:00:00Z", open: true},
		"OncePast":    {reason: "the only Allow is over, and no other will open", all: []Window{once(t, "move", TypeAllow, "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z")}, now: "2026-11-28T00:00:00Z", by: "move"},
		"OtherTeam":   {reason: "windows of other extensions do not count", all: []Window{recurring("a", TypeAllow, "0 22 * * *", time.Hour, forTeam("a"))}, now: "2026-11-28T12:00:00Z", labels: map[string]string{"team": "b"}, open: true},
		"Team":        {reason: "those of its own do", all: []Window{recurring("a", TypeAllow, "0 22 * * *", time.Hour, forTeam("a"))}, now: "2026-11-28T12:00:00Z", labels: map[string]string{"team": "a"}, by: "a", opens: "2026-11-28T21:00:00Z"},
		"OneOfAllows": {reason: "one open Allow is enough", all: []Window{nights, recurring("noon", TypeAllow, "0 12 * * *", time.Hour)}, now: "2026-11-28T11:30:00Z", open: true, by: "noon", closes: "2026-11-28T12:00:00Z"},
		"Spring":      {reason: "the hour that is skipped begins when the clocks go forward", all: []Window{recurring("two", TypeAllow, "30 2 * * *", time.Hour)}, now: "2026-03-29T00:30:00Z", by: "two", opens: "2026-03-29T01:00:00Z"},
		"Autumn":      {reason: "the first of two hours counts", all: []Window{recurring("two", TypeAllow, "30 2 * * *", time.Hour)}, now: "2026-10-25T01:45:00Z", by: "two", opens: "2026-10-26T01:30:00Z"},
		"AlwaysOpen":  {reason: "windows without a gap do not close", all: []Window{recurring("all", TypeAllow, "0 0 * * *", 24*time.Hour)}, now: "2026-11-28T12:00:00Z", open: true, by: "all"},
		"NoZone":      {reason: "a window that cannot be read holds, even beside one that is open", all: []Window{nights, recurring("typo", TypeAllow, "0 22 * * *", time.Hour, func(s *Spec) { s.TimeZone = "Europe/Berlln" })}, now: "2026-11-28T21:30:00Z", by: "typo"},
		"NoSelector": {reason: "a selector that cannot be read chooses all", all: []Window{recurring("typo", TypeAllow, "0 22 * * *", time.Hour, func(s *Spec) {
			s.ExtensionSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
		})}, now: "2026-11-28T21:30:00Z", by: "typo"},
		"Unreadable": {reason: "so does one of which nothing can be read", all: NewAll([]unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "x"}, "spec": "none"}}}), now: "2026-11-28T21:30:00Z", by: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.all, tc.labels, at(t, tc.now))
			shown := func(moment time.Time) string {
				if moment.IsZero() {
					return ""
				}
				return moment.UTC().Format(time.RFC3339)
			}
			if got.Open != tc.open || got.By != tc.by || shown(got.Opens) != tc.opens || name != "AlwaysOpen" && shown(got.Closes) != tc.closes {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			if got.Open == (got.Why != "") || !got.Open && !strings.Contains(got.Why, tc.by) {
				t.Errorf("it says %q", got.Why)
			}
		})
	}
}

// TestDecideHolds: a decision agrees with the individual windows at any time, until its stated end.
func TestDecideHolds(t *testing.T) {
	begin := at(t, "2026-10-20T00:00:00Z")
	random := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		var all []Window
		for i := range random.IntN(4) {
			kind := []string{TypeAllow, TypeDeny}[random.IntN(2)]
			if random.IntN(3) == 0 {
				opens := begin.Add(time.Duration(random.IntN(72*60)) * time.Minute)
				all = append(all, New(&MaintenanceWindow{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}, Spec: Spec{
					Type: kind, Start: &metav1.Time{Time: opens}, End: &metav1.Time{Time: opens.Add(time.Duration(1+random.IntN(600)) * time.Minute)},
				}}))
				continue
			}
			schedule := []string{"0 22 * * *", "30 2 * * *", "0 * * * *", "15 6 * * Sun", "*/30 1-5 * * *"}[random.IntN(5)]
			all = append(all, recurring(string(rune('a'+i)), kind, schedule, time.Duration(1+random.IntN(300))*time.Minute))
		}
		simple := func(moment time.Time) bool {
			allows, allowed := false, false
			for _, w := range all {
				_, open := w.At(moment)
				if w.deny && open {
					return false
				}
				allows, allowed = allows || !w.deny, allowed || !w.deny && open
			}
			return !allows || allowed
		}
		now := begin.Add(time.Duration(random.IntN(10*24*60)) * time.Minute)
		got := Decide(all, nil, now)
		if got.Open != simple(now) {
			t.Fatalf("at %s: %+v of %+v", now, got, all)
		}
		change := got.Opens
		if got.Open {
			change = got.Closes
		}
		if change.IsZero() {
			change = now.Add(48 * time.Hour)
		} else if simple(change) == got.Open {
			t.Fatalf("at %s: nothing changes at %s: %+v", now, change, all)
		}
		for moment := now; moment.Before(change); moment = moment.Add(5 * time.Minute) {
			if simple(moment) != got.Open {
				t.Fatalf("at %s: it changes at %s already: %+v of %+v", now, moment, got, all)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	hour := &metav1.Duration{Duration: time.Hour}
	noon := &metav1.Time{Time: at(t, "2026-11-28T12:00:00Z")}
	one := &metav1.Time{Time: at(t, "2026-11-28T13:00:00Z")}
	for name, tc := range map[string]struct {
		spec Spec
		want string
	}{
		"Recurring":    {Spec{Type: TypeAllow, Schedule: "0 22 * * Sat", Duration: hour}, ""},
		"Once":         {Spec{Type: TypeDeny, Start: noon, End: one}, ""},
		"NoType":       {Spec{Start: noon, End: one}, "spec.type: Required value: must be Allow or Deny"},
		"OtherType":    {Spec{Type: "allow", Start: noon, End: one}, `spec.type: Unsupported value: "allow": supported values: "Allow", "Deny"`},
		"Nothing":      {Spec{Type: TypeAllow}, "spec.schedule: Required value: must be set, with duration; or start and end"},
		"Both":         {Spec{Type: TypeAllow, Schedule: "@daily", Duration: hour, Start: noon, End: one}, "spec.start: Forbidden"},
		"NoEnd":        {Spec{Type: TypeAllow, Start: noon}, "spec.end: Required value"},
		"Backwards":    {Spec{Type: TypeAllow, Start: one, End: noon}, "spec.end: Invalid value: \"2026-11-28T12:00:00Z\": must be after start, 2026-11-28T13:00:00Z"},
		"Empty":        {Spec{Type: TypeAllow, Start: one, End: one}, "must be after start"},
		"ZoneOfOnce":   {Spec{Type: TypeAllow, Start: noon, End: one, TimeZone: "UTC"}, "spec.timeZone: Forbidden"},
		"NoDuration":   {Spec{Type: TypeAllow, Schedule: "@daily"}, "spec.duration: Required value"},
		"Long":         {Spec{Type: TypeAllow, Schedule: "@daily", Duration: &metav1.Duration{Duration: 745 * time.Hour}}, "must be 1m to 744h"},
		"NeverComes":   {Spec{Type: TypeAllow, Schedule: "0 0 30 2 *", Duration: hour}, "spec.schedule: Invalid value: \"0 0 30 2 *\": never comes"},
		"NoSuchZone":   {Spec{Type: TypeAllow, Schedule: "@daily", Duration: hour, TimeZone: "Mars"}, "spec.timeZone: Invalid value: \"Mars\""},
		"BadSelector":  {Spec{Type: TypeAllow, Schedule: "@daily", Duration: hour, ExtensionSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}}, "spec.extensionSelector"},
		"ZoneInSchema": {Spec{Type: TypeAllow, Schedule: "TZ=UTC 0 1 * * *", Duration: hour}, "must not name a time zone"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := Validate(&tc.spec)
			if tc.want == "" && len(errs) > 0 || tc.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want)) {
				t.Errorf("got %v, want %q", errs, tc.want)
			}
		})
	}
}
