package fleet

import (
	"fmt"
	"slices"
)

// State is the state of a cluster in a rollout.
type State string

// States of clusters.
const (
	Pending    State = "Pending"
	Present    State = "Present"
	Deferred   State = "Deferred"
	Updating   State = "Updating"
	Soaking    State = "Soaking"
	Succeeded  State = "Succeeded"
	RolledBack State = "RolledBack"
	Failed     State = "Failed"
	Unknown    State = "Unknown"
	Skipped    State = "Skipped"
	Leaving    State = "Leaving"
)

// States returns all states, in the order of a rollout.
func States() []State {
	return []State{Present, Pending, Deferred, Updating, Unknown, Soaking, Succeeded, RolledBack, Failed, Skipped, Leaving}
}

// Event may move a cluster into another state.
type Event string

// Events of the table.
const (
	EventBegin      Event = "Begin"
	EventDefer      Event = "Defer"
	EventHealthy    Event = "Healthy"
	EventSoaked     Event = "Soaked"
	EventUnhealthy  Event = "Unhealthy"
	EventLost       Event = "Lost"
	EventRolledBack Event = "RolledBack"
	EventFail       Event = "Fail"
	EventRefuse     Event = "Refuse"
	EventLeave      Event = "Leave"
	EventRetry      Event = "Retry"
	EventSkip       Event = "Skip"
)

// Transition is one row of the table.
type Transition struct {
	From []State
	On   Event
	To   State
	// When describes when the event happens.
	When string
}

// Table returns the state machine of a cluster. Every change of a state is one of its rows.
func Table() []Transition {
	from := func(states ...State) []State { return states }
	return []Transition{
		{from(Pending, Deferred), EventBegin, Updating, "its turn has come, and it can be reached"},
		{from(Pending), EventDefer, Deferred, "its turn has come, and it cannot be reached"},
		{from(Updating, Unknown), EventHealthy, Soaking, "it runs the new content and is healthy"},
		{from(Soaking), EventSoaked, Succeeded, "it was healthy for the soak time"},
		{from(Soaking, Succeeded), EventUnhealthy, Soaking, "it is not healthy any more: the soak time begins again"},
		{from(Updating, Soaking), EventLost, Unknown, "it cannot be reached since it began"},
		{from(Updating, Unknown, Soaking, Succeeded), EventRolledBack, RolledBack, "it runs other content again"},
		{from(Updating, Unknown, Soaking, Succeeded), EventFail, Failed, "its rollout failed, or the deadline has passed"},
		{from(Pending, Deferred, Updating, Unknown, Soaking, Succeeded), EventRefuse, Failed, "its Secret leads to another cluster, or it would see another change than the approved one"},
		{from(Present, Pending, Deferred, Soaking, Succeeded), EventLeave, Leaving, "the set selects it no longer; a change in progress ends first, and a failure stays one"},
		{from(RolledBack, Failed), EventRetry, Pending, "a person has it tried again"},
		{from(Present, Pending, Deferred, RolledBack, Failed, Leaving), EventSkip, Skipped, "a person skips it"},
	}
}

// Next returns the state after an event. It returns an error if the state does not handle the
// event.
func Next(state State, event Event) (State, error) {
	for _, row := range Table() {
		if row.On == event && slices.Contains(row.From, state) {
			return row.To, nil
		}
	}
	return state, fmt.Errorf("a cluster in state %s does not handle the event %s", state, event)
}

func handles(state State, event Event) bool {
	_, err := Next(state, event)
	return err == nil
}
