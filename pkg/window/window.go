// Package window says when an action may begin: at repeated times, given in cron format, each for a
// while. It knows no clock.
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

// Span is one stretch of time: from Opens, to the moment before Closes.
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

// every is the bit by which the parser marks a field that is a star.
const every = 1 << 63

// Schedule reads when windows open: the five fields of cron, or one of its names. The
// error is to stand behind the schedule.
func Schedule(text string) (*cron.SpecSchedule, error) {
	switch {
	case strings.Contains(text, "TZ"):
		// Before it is parsed: the parser panics at one without a space.
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
	// It is read on a clock without summer time; what zones make of that is said here.
	schedule.Location = time.UTC
	if opening(schedule, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("never comes: there is no such day")
	}
	return schedule, nil
}

// Doubt returns a probable mistake in a schedule that is valid; empty for none. Cron opens a window
// on each day that one of its two fields for days names, where both name some.
func Doubt(text string) string {
	schedule, err := Schedule(text)
	if err != nil || schedule.Dom&every != 0 || schedule.Dow&every != 0 {
		return ""
	}
	return fmt.Sprintf("schedule %q names days of the month and days of the week: cron opens the window on each day that is one or the other, not only on days that are both; set one of the two to *", text)
}

// Zone finds a time zone by its name. The error is to stand behind the name.
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

// At is the time that is open at some moment, or else the next one. Windows that touch or
// overlap are one; where they do so without end, Closes is a time until which it does not
// close. A window that may never open any more is empty.
func (w *Window) At(now time.Time) (span Span, open bool) {
	first := w.opens(now.Add(-w.lasts))
	if first.IsZero() {
		return Span{}, false
	}
	span = Span{first, first.Add(w.lasts)}
	for range merges {
		// The later one saves steps, where there is one.
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

// Local is a time as the clocks show it in the zone of the window.
func (w *Window) Local(t time.Time) string {
	return t.In(w.zone).Format("Mon 2006-01-02 15:04 MST") + ", " + w.zone.String()
}

// opens is the first opening after a moment; zero when there is none in years.
func (w *Window) opens(after time.Time) time.Time {
	if w.hourly {
		return w.opensHourly(after)
	}
	return w.opensDaily(after)
}

// opensDaily is for schedules that name hours. An hour that is skipped when the clocks go
// forward begins at that moment, and of an hour that comes twice the first one counts: each
// time that the schedule names opens one window, as people expect.
func (w *Window) opensDaily(after time.Time) time.Time {
	for shown := clock(after.In(w.zone)); ; {
		if shown = opening(w.schedule, shown); shown.IsZero() {
			return shown
		}
		// One of the first of two hours is over in the second.
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
	// The clocks showed it before they went back, perhaps.
	_, before := begins.Add(-1).Zone()
	if earlier := shown.Add(-time.Duration(before) * time.Second).In(w.zone); earlier.Before(begins) && clock(earlier).Equal(shown) {
		return earlier
	}
	return at
}

// changes bounds the clock changes that the search for the next opening crosses.
const changes = 64

// opensHourly is for schedules that name no hour. It goes by the time that passes: an hour
// that is skipped has no window, one that comes twice has two.
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
		// The first moment after the change counts, and opening looks behind.
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

// changed is until when the clocks of a zone go on as at a moment; zero for ever. In the
// last days of leap years after 2037 time.Time.ZoneBounds may name a moment that is over
// (seen in Go 1.26): nothing changes within a day then.
func changed(t time.Time) time.Time {
	_, ends := t.ZoneBounds()
	if !ends.IsZero() && !ends.After(t) {
		return t.AddDate(0, 0, 1)
	}
	return ends
}

// clock returns the time that clocks show at a moment of a zone, as if there were no zones.
func clock(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// opening is the next time of a schedule, on a clock without zones; zero when there is
// none. The library gives up after five years, and leap years may be eight apart.
func opening(schedule *cron.SpecSchedule, after time.Time) time.Time {
	next := schedule.Next(after)
	if next.IsZero() {
		next = schedule.Next(after.AddDate(5, 0, 0))
	}
	return next
}
