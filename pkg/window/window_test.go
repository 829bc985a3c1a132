package window_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/window"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestAt(t *testing.T) {
	const berlin, newYork, saoPaulo, lordHowe = "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe"
	for name, c := range map[string]struct {
		reason         string
		schedule, zone string
		lasts          time.Duration
		now            string
		open           bool
		opens, closes  string
	}{
		"before":          {"it opens later", "0 22 * * Sat", berlin, 6 * time.Hour, "2026-11-23T04:00:00Z", false, "2026-11-28T21:00:00Z", "2026-11-29T03:00:00Z"},
		"first moment":    {"it is open when it opens", "0 22 * * Sat", berlin, 6 * time.Hour, "2026-11-28T21:00:00Z", true, "2026-11-28T21:00:00Z", "2026-11-29T03:00:00Z"},
		"moment before":   {"it is not open before", "0 22 * * Sat", berlin, 6 * time.Hour, "2026-11-28T20:59:59Z", false, "2026-11-28T21:00:00Z", "2026-11-29T03:00:00Z"},
		"within":          {"", "0 22 * * Sat", berlin, 6 * time.Hour, "2026-11-29T02:59:59Z", true, "2026-11-28T21:00:00Z", "2026-11-29T03:00:00Z"},
		"first after":     {"it is closed when it closes", "0 22 * * Sat", berlin, 6 * time.Hour, "2026-11-29T03:00:00Z", false, "2026-12-05T21:00:00Z", "2026-12-06T03:00:00Z"},
		"summer":          {"the same hour for people", "0 22 * * Sat", berlin, 6 * time.Hour, "2026-07-01T00:00:00Z", false, "2026-07-04T20:00:00Z", "2026-07-05T02:00:00Z"},
		"clocks go back":  {"it lasts as long, whatever clocks show", "0 22 * * Sat", berlin, 6 * time.Hour, "2026-10-24T20:00:00Z", true, "2026-10-24T20:00:00Z", "2026-10-25T02:00:00Z"},
		"skipped":         {"an hour that does not come opens when the clocks go forward", "30 2 * * *", berlin, time.Hour, "2026-03-29T00:00:00Z", false, "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"},
		"skipped, west":   {"", "30 2 * * Sun", newYork, time.Hour, "2026-03-08T00:00:00Z", false, "2026-03-08T07:00:00Z", "2026-03-08T08:00:00Z"},
		"after skipped":   {"", "30 2 * * *", berlin, time.Hour, "2026-03-29T02:00:00Z", false, "2026-03-30T00:30:00Z", "2026-03-30T01:30:00Z"},
		"repeated":        {"the first of two", "30 2 * * *", berlin, 20 * time.Minute, "2026-10-25T00:00:00Z", false, "2026-10-25T00:30:00Z", "2026-10-25T00:50:00Z"},
		"repeated, over":  {"and not the second", "30 2 * * *", berlin, 20 * time.Minute, "2026-10-25T01:00:00Z", false, "2026-10-26T01:30:00Z", "2026-10-26T01:50:00Z"},
		"repeated, soon":  {"in the second hour, before that minute", "30 2 * * *", berlin, 10 * time.Minute, "2026-10-25T01:20:00Z", false, "2026-10-26T01:30:00Z", "2026-10-26T01:40:00Z"},
		"repeated, west":  {"", "30 1 * * *", newYork, 20 * time.Minute, "2026-11-01T05:00:00Z", false, "2026-11-01T05:30:00Z", "2026-11-01T05:50:00Z"},
		"west, over":      {"", "30 1 * * *", newYork, 20 * time.Minute, "2026-11-01T06:10:00Z", false, "2026-11-02T06:30:00Z", "2026-11-02T06:50:00Z"},
		"no midnight":     {"there the clocks went forward at midnight", "0 0 * * *", saoPaulo, time.Hour, "2018-11-03T12:00:00Z", false, "2018-11-04T03:00:00Z", "2018-11-04T04:00:00Z"},
		"half an hour":    {"there they go by half an hour", "15 2 * * *", lordHowe, time.Hour, "2026-10-03T00:00:00Z", false, "2026-10-03T15:30:00Z", "2026-10-03T16:30:00Z"},
		"hourly, skipped": {"each hour that comes", "15 * * * *", berlin, 10 * time.Minute, "2026-03-29T00:20:00Z", false, "2026-03-29T00:25:00Z", ""},
		"hourly, twice":   {"both hours", "15 * * * *", berlin, 10 * time.Minute, "2026-10-25T01:00:00Z", false, "2026-10-25T01:15:00Z", "2026-10-25T01:25:00Z"},
		"leap day":        {"four years", "0 0 29 2 *", "UTC", time.Hour, "2026-01-01T00:00:00Z", false, "2028-02-29T00:00:00Z", "2028-02-29T01:00:00Z"},
		"leap day, 2096":  {"1900, 2100 and 2200 have none", "0 0 29 2 *", "UTC", time.Hour, "2096-03-01T00:00:00Z", false, "2104-02-29T00:00:00Z", "2104-02-29T01:00:00Z"},
		"longer":          {"longer than the time to the next one: it is always open", "0 0 * * *", berlin, 36 * time.Hour, "2026-11-23T12:00:00Z", true, "2026-11-22T23:00:00Z", "*"},
		"exactly":         {"one ends where the next begins", "0 0 * * *", "UTC", 24 * time.Hour, "2026-11-23T00:00:00Z", true, "2026-11-23T00:00:00Z", "*"},
		"overlapping":     {"two that overlap are one", "0 0,2 * * *", "UTC", 3 * time.Hour, "2026-11-23T01:00:00Z", true, "2026-11-23T00:00:00Z", "2026-11-23T05:00:00Z"},
		"second of two":   {"", "0 0,2 * * *", "UTC", 3 * time.Hour, "2026-11-23T04:00:00Z", true, "2026-11-23T02:00:00Z", "2026-11-23T05:00:00Z"},
		"year":            {"by name", "@yearly", "UTC", time.Hour, "2026-11-23T04:00:00Z", false, "2027-01-01T00:00:00Z", "2027-01-01T01:00:00Z"},
		"a minute":        {"minute by minute without end", "* * * * *", berlin, time.Minute, "2026-10-25T00:59:30Z", true, "2026-10-25T00:59:00Z", "*"},
		"through the gap": {"", "* * * * *", berlin, time.Minute, "2026-03-29T01:00:00Z", true, "2026-03-29T01:00:00Z", "*"},
		"far away":        {"the library of time names a change that is over", "*/20 * * * *", lordHowe, 37*time.Hour + 14*time.Minute, "2073-01-02T10:41:35Z", true, "2072-12-31T21:40:00Z", "*"},
		"a fraction":      {"", "0 22 * * *", "UTC", time.Hour, "2026-11-23T21:59:59.999999999Z", false, "2026-11-23T22:00:00Z", "2026-11-23T23:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := window.New(c.schedule, c.zone, c.lasts)
			if err != nil {
				t.Fatal(err)
			}
			now := at(t, c.now)
			span, open := w.At(now)
			if c.closes == "" { // the skipped hour
				c.opens, c.closes = "2026-03-29T01:15:00Z", "2026-03-29T01:25:00Z"
				c.open = false
				span, open = w.At(at(t, "2026-03-29T00:30:00Z"))
			}
			if open != c.open || !span.Opens.Equal(at(t, c.opens)) {
				t.Errorf("%s: open %t from %s to %s, want %t from %s", c.reason, open, span.Opens.UTC(), span.Closes.UTC(), c.open, c.opens)
			}
			switch {
			case c.closes == "*":
				if span.Closes.Before(now.Add(30 * time.Minute)) {
					t.Errorf("%s: it closes at %s", c.reason, span.Closes.UTC())
				}
			case !span.Closes.Equal(at(t, c.closes)):
				t.Errorf("%s: it closes at %s, want %s", c.reason, span.Closes.UTC(), c.closes)
			}
		})
	}
}

func TestLocal(t *testing.T) {
	w, err := window.New("0 22 * * Sat", "Europe/Berlin", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Local(at(t, "2026-11-28T21:00:00Z")); got != "Sat 2026-11-28 22:00 CET, Europe/Berlin" {
		t.Error(got)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct{ schedule, zone, says string }{
		"nothing":          {"", "UTC", "minute, hour"},
		"four fields":      {"0 22 * *", "UTC", "minute, hour"},
		"six fields":       {"0 0 22 * * *", "UTC", "minute, hour"},
		"hour 25":          {"0 25 * * *", "UTC", "minute, hour"},
		"step 0":           {"*/0 * * * *", "UTC", "minute, hour"},
		"often":            {"@every 1h", "UTC", "not how often"},
		"no such name":     {"@noon", "UTC", "minute, hour"},
		"zone in it":       {"TZ=UTC 0 22 * * *", "UTC", "must not name a time zone"},
		"other zone in it": {"CRON_TZ=UTC 0 22 * * *", "UTC", "must not name a time zone"},
		"zone without end": {"TZ=0", "UTC", "must not name a time zone"},
		"30 February":      {"0 0 30 2 *", "UTC", "never comes"},
		"no zone":          {"0 22 * * *", "", "IANA"},
		"local":            {"0 22 * * *", "Local", "IANA"},
		"unknown zone":     {"0 22 * * *", "Mars/Olympus", "IANA"},
		"path":             {"0 22 * * *", "../../etc/passwd", "IANA"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := window.New(c.schedule, c.zone, time.Hour); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	if _, err := window.New("0 22 * * *", "UTC", 0); err == nil {
		t.Error("a window that is never open is taken")
	}
}

// TestAtProperties: the answers of At before, at and after each change agree. No schedule makes At
// hang or return an earlier time.
func TestAtProperties(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu", "Africa/Casablanca", "Pacific/Apia"}
	schedules := []string{"0 22 * * Sat", "30 2 * * *", "30 1 * * Sun", "*/20 * * * *", "15 * * * *", "0 0 29 2 *", "0 0 1 * *", "0 0,6,12 * * 1-5", "5 4 13 * Fri", "0 */2 * * *", "45 23 * 3,10 *"}
	for range 1000 {
		schedule, zone := schedules[dice.IntN(len(schedules))], zones[dice.IntN(len(zones))]
		lasts := time.Duration(1+dice.IntN([]int{30, 3000}[dice.IntN(2)])) * time.Minute
		w, err := window.New(schedule, zone, lasts)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(dice.Int64N(4e9), dice.Int64N(1e9))
		if dice.IntN(2) == 0 { // near a change of the clocks
			here, _ := time.LoadLocation(zone)
			if _, change := now.In(here).ZoneBounds(); !change.IsZero() {
				now = change.Add(time.Duration(dice.IntN(240)-120) * time.Minute)
			}
		}
		span, open := w.At(now)
		said := func(format string, args ...any) {
			t.Fatalf("%s in %s for %s at %s: %s to %s, open %t: "+format, append([]any{schedule, zone, lasts, now.UTC(), span.Opens.UTC(), span.Closes.UTC(), open}, args...)...)
		}
		if span.Closes.Sub(span.Opens) < lasts || open != (!span.Opens.After(now) && span.Closes.After(now)) || !open && !span.Opens.After(now) {
			said("it contradicts itself")
		}
		if _, again := w.At(span.Opens); !again {
			said("it is closed when it opens")
		}
		if _, again := w.At(span.Closes.Add(-1)); !again {
			said("it is closed before it closes")
		}
		if later, again := w.At(span.Closes); again && later.Opens.Before(span.Opens) {
			said("later it was open from %s", later.Opens)
		}
		if open {
			continue
		}
		if before, again := w.At(span.Opens.Add(-1)); again || !before.Opens.Equal(span.Opens) {
			said("the moment before: open %t from %s", again, before.Opens)
		}
		between := now.Add(time.Duration(dice.Int64N(int64(span.Opens.Sub(now)))))
		if same, again := w.At(between); again || !same.Opens.Equal(span.Opens) {
			said("at %s: open %t from %s", between.UTC(), again, same.Opens.UTC())
		}
	}
}

func FuzzSchedule(f *testing.F) {
	for _, seed := range []string{"0 22 * * Sat", "TZ=", "@every -1s", "*/0 0 0 0 0", "0-59/7 1,2 L * ?", "@hourly", "0 0 31 2,4,6,9,11 *"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := window.Schedule(text); err != nil {
			return
		}
		w, err := window.New(text, "Europe/Berlin", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if span, _ := w.At(time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)); !span.Closes.After(span.Opens) {
			t.Errorf("%q opens never", text)
		}
	})
}

func BenchmarkAt(b *testing.B) {
	for name, schedule := range map[string]string{"week": "0 22 * * Sat", "leap": "0 0 29 2 *", "minute": "* * * * *"} {
		b.Run(name, func(b *testing.B) {
			w, err := window.New(schedule, "Europe/Berlin", time.Hour)
			if err != nil {
				b.Fatal(err)
			}
			now := time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC)
			for b.Loop() {
				w.At(now)
			}
		})
	}
}

// TestDoubt: if both fields for days are set, cron takes the days of either field.
func TestDoubt(t *testing.T) {
	for schedule, doubted := range map[string]bool{
		"0 2 1-7 * 6": true, "0 2 31 * Sun": true, "0 22 * * Sat": false, "0 22 31 * *": false, "0 22 ? * SAT": false, "0 2 */2 * 6": true, "@weekly": false, "not a schedule": false,
	} {
		if got := window.Doubt(schedule); (got != "") != doubted {
			t.Errorf("%s: %q", schedule, got)
		}
	}
}

// TestFieldSchedules: only the first of the users' schedules gets a warning. Schedules that no cron
// implementation accepts are refused.
func TestFieldSchedules(t *testing.T) {
	text, err := os.ReadFile("../../../shared/data/field-cases/plans/10-windows/schedules.txt")
	if err != nil {
		t.Skipf("the cases of the field are kept beside the repository: %v", err)
	}
	refused := []string{"0 22 * * 7", "0 22 * * 5-7", "0 22 * * 6#1", "0 22 L * *", "0 24 * * *", "0 0 22 * * 6"}
	for line := range strings.Lines(string(text)) {
		schedule := strings.TrimSpace(line)
		if _, err := window.Schedule(schedule); (err != nil) != slices.Contains(refused, schedule) {
			t.Errorf("%s: %v", schedule, err)
		}
		if doubt := window.Doubt(schedule); (doubt != "") != (schedule == "0 2 1-7 * 6") {
			t.Errorf("%s: %q", schedule, doubt)
		}
	}
}
