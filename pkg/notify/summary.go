package notify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// maxSingle is the most pending events that are sent separately. More events are sent as one
	// summary.
	maxSingle = 20
	maxListed = 100
)

// SummaryData is the data of a summary.
type SummaryData struct {
	Summary string `json:"summary"`
	// Counts has the number of events of each type, without LeftOut.
	Counts map[string]int `json:"counts"`
	// Notifications are the most urgent events, each as it would be sent separately.
	Notifications []json.RawMessage `json:"notifications"`
	// NotListed is the number of further events in Counts. LeftOut is the number of events that
	// Penstock dropped, because the receiver was unavailable for too long.
	NotListed int   `json:"notListed,omitempty"`
	LeftOut   int64 `json:"leftOut,omitempty"`
}

// NeedsSummary reports whether pending events are sent as one event.
func NeedsSummary(pending int, leftOut int64) bool { return pending > maxSingle || leftOut > 0 }

// Summary returns one event for the events from first to last.
func Summary(source, receiver string, first, last int64, bodies []json.RawMessage, leftOut int64, at time.Time) Event {
	type one struct {
		Type string `json:"type"`
		raw  json.RawMessage
	}
	all := make([]one, 0, len(bodies))
	data := SummaryData{Counts: map[string]int{}, LeftOut: leftOut}
	for _, body := range bodies {
		event := one{raw: body}
		_ = json.Unmarshal(body, &event) // the log holds valid events only
		event.Type = strings.TrimPrefix(event.Type, typePrefix)
		data.Counts[event.Type]++
		all = append(all, event)
	}
	urgency := func(kind string) int { return slices.Index(Types(), Type(kind)) }
	slices.SortStableFunc(all, func(a, b one) int { return cmp.Compare(urgency(a.Type), urgency(b.Type)) })
	bytes := 0
	for _, event := range all {
		if bytes += len(event.raw) + 1; len(data.Notifications) == maxListed || bytes > MaxBytes-4096 {
			break
		}
		data.Notifications = append(data.Notifications, event.raw)
	}
	data.NotListed = len(all) - len(data.Notifications)
	var counts []string
	for _, kind := range Types() {
		if n := data.Counts[string(kind)]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	data.Summary = text.Count(len(all), "notification") + ": " + strings.Join(counts, ", ")
	if leftOut > 0 {
		data.Summary += fmt.Sprintf("; %s left out, because the receiver took none for too long", count(leftOut))
	}
	return newEvent(source, SummaryType, "", idOf(SummaryType, receiver, fmt.Sprint(first), fmt.Sprint(last)), at, data)
}

func count(n int64) string {
	if n == 1 {
		return "1 was"
	}
	return fmt.Sprintf("%d were", n)
}
