// Package window computes when an action may begin: at repeated times in cron format, each for a
// duration. It uses no clock.
package window

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Window is a recurring time.
type Window struct {
	schedule *cron.SpecSchedule
	zone     *time.Location
	lasts    time.Duration
	// hourly is true if the schedule names no hour.
	hourly bool
}

// Span is a time span from Opens until just before Closes.
type Span struct{ Opens, Closes time.Time }

// New returns the window that opens by a schedule in a time zone for a duration. The error
// describes the invalid schedule or zone.
func New(schedule, zone string, lasts time.Duration) (*Window, error) {
	read, err := Schedule(schedule)
	if err != nil {
		return nil, fmt.Errorf("schedule %q %w", schedule, err)
	}
	location, err := Zone(zone)
	if err != nil {
		return nil, fmt.Errorf("time zone %q %w", zone, err)
	}
	if lasts <= 0 {
		return nil, fmt.Errorf("a window of %s is never open", lasts)
	}
	return &Window{schedule: read, zone: location, lasts: lasts, hourly: read.Hour&every != 0}, nil
}

// every is the bit with which the parser marks a star.
const every = 1 << 63

// Schedule parses a schedule: the five fields of cron, or one of its names. The error follows the
// schedule in a message.
func Schedule(text string) (*cron.SpecSchedule, error) {
	switch {
	case strings.Contains(text, "TZ"):
		// This check comes before the parser, which panics at a zone without a space.
		return nil, errors.New("must not name a time zone: it has a field of its own")
	case strings.HasPrefix(strings.TrimSpace(text), "@every"):
		return nil, errors.New("must say when, not how often: minute, hour, day of the month, month and day of the week")
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("must be minute, hour, day of the month, month and day of the week, such as 0 22 * * Sat: %w", err)
	}
	schedule, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("must be minute, hour, day of the month, month and day of the week")
	}
	// The schedule is computed on a clock without zones. This package handles the zone's changes.
	schedule.Location = time.UTC
	if opening(schedule, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("never comes: there is no such day")
	}
	return schedule, nil
}

// Doubt returns a probable mistake in a valid schedule; empty for none. If both fields for days are
// set, cron opens the window on the days of either field.
func Doubt(text string) string {
	schedule, err := Schedule(text)
	if err != nil || schedule.Dom&every != 0 || schedule.Dow&every != 0 {
		return ""
	}
	return fmt.Sprintf("schedule %q names days of the month and days of the week: cron opens the window on each day that is one or the other, not only on days that are both; set one of the two to *", text)
}

// Zone returns a time zone by its name. The error follows the name in a message.
func Zone(name string) (*time.Location, error) {
	if name == "" || strings.EqualFold(name, "local") {
		return nil, errors.New("must be a name of the IANA database, such as Europe/Berlin or UTC")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, errors.New("is no name of the IANA database: must be one such as Europe/Berlin or UTC")
	}
	return zone, nil
}

// merges bounds the adjacent or overlapping windows that are joined to find their common end. Each
// extends the joined window by at least half a window.
const merges = 64

// At returns the present opening, or else the next one. Openings that touch or overlap count as
// one. If they do so without end, Closes is a time until which the window stays open. The span is
// empty if the window never opens again.
func (w *Window) At(now time.Time) (span Span, open bool) {
	first := w.opens(now.Add(-w.lasts))
	if first.IsZero() {
		return Span{}, false
	}
	span = Span{first, first.Add(w.lasts)}
	for range merges {
		// Try a later opening first: it needs fewer iterations.
		next := w.opens(span.Closes.Add(-w.lasts / 2))
		if next.After(span.Closes) {
			next = w.opens(span.Closes.Add(-w.lasts))
		}
		if next.IsZero() || next.After(span.Closes) {
			break
		}
		span.Closes = next.Add(w.lasts)
	}
	return span, !first.After(now)
}

// Local returns a time as the clocks show it in the zone of the window.
func (w *Window) Local(t time.Time) string {
	return t.In(w.zone).Format("Mon 2006-01-02 15:04 MST") + ", " + w.zone.String()
}

// opens returns the first opening after a moment; zero if there is none in years.
func (w *Window) opens(after time.Time) time.Time {
	if w.hourly {
		return w.opensHourly(after)
	}
	return w.opensDaily(after)
}

// opensDaily is for schedules that name hours. If the clocks skip such an hour, the window opens at
// that moment. If the hour comes twice, only the first one counts. So each named time opens one
// window, as users expect.
func (w *Window) opensDaily(after time.Time) time.Time {
	for shown := clock(after.In(w.zone)); ; {
		if shown = opening(w.schedule, shown); shown.IsZero() {
			return shown
		}
		// The first of two equal hours may have ended already.
		if moment := w.moment(shown); moment.After(after) {
			return moment
		}
	}
}

// moment returns the first time at which the zone's clocks show a time. If the clocks skip it,
// moment returns the time of the skip.
func (w *Window) moment(shown time.Time) time.Time {
	at := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), shown.Second(), 0, w.zone)
	begins, ends := at.ZoneBounds()
	switch really := clock(at); {
	case really.After(shown):
		return begins
	case really.Before(shown):
		return ends
	}
	if begins.IsZero() {
		return at
	}
	// The clocks may have shown the time before they went back, too.
	_, before := begins.Add(-1).Zone()
	if earlier := shown.Add(-time.Duration(before) * time.Second).In(w.zone); earlier.Before(begins) && clock(earlier).Equal(shown) {
		return earlier
	}
	return at
}

// changes bounds the clock changes that the search for the next opening crosses.
const changes = 64

// opensHourly is for schedules that name no hour. It counts the elapsed time: a skipped hour has no
// window, and an hour that comes twice has two windows.
func (w *Window) opensHourly(after time.Time) time.Time {
	for range changes {
		here := after.In(w.zone)
		_, offset := here.Zone()
		ends := changed(here)
		shift := time.Duration(offset) * time.Second
		shown := opening(w.schedule, after.UTC().Add(shift))
		if shown.IsZero() {
			return shown
		}
		if moment := shown.Add(-shift).In(w.zone); ends.IsZero() || moment.Before(ends) {
			return moment
		}
		// The first moment after the change counts, and opening returns only later times.
		_, offset = ends.In(w.zone).Zone()
		shift = time.Duration(offset) * time.Second
		if shown = opening(w.schedule, ends.UTC().Add(shift-1)); shown.IsZero() {
			return shown
		}
		moment := shown.Add(-shift).In(w.zone)
		if next := changed(ends.In(w.zone)); next.IsZero() || moment.Before(next) {
			return moment
		}
		after = ends
	}
	return time.Time{}
}

// changed returns the next change of a zone's clocks; zero for never. In the last days of leap
// years after 2037, time.Time.ZoneBounds may return a past moment (seen in Go 1.26). The clocks
// then do not change within a day.
func changed(t time.Time) time.Time {
	_, ends := t.ZoneBounds()
	if !ends.IsZero() && !ends.After(t) {
		return t.AddDate(0, 0, 1)
	}
	return ends
}

// clock returns the time that the clocks show, as a time without a zone.
func clock(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// opening returns the next time of a schedule, on a clock without zones; zero if there is none. The
// library gives up after five years, and leap years may be eight years apart.
func opening(schedule *cron.SpecSchedule, after time.Time) time.Time {
	next := schedule.Next(after)
	if next.IsZero() {
		next = schedule.Next(after.AddDate(5, 0, 0))
	}
	return next
}
