package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// ContentType is the content type of a CloudEvent in structured mode.
	ContentType = "application/cloudevents+json"
	typePrefix  = "dev.penstock."
	// MaxBytes bounds the body of a request.
	MaxBytes = 64 << 10
)

// Types of events that no fact has.
const (
	// SummaryType is the type of an event that summarises many events. ConnectedType is the type of
	// the first event for a receiver.
	SummaryType   = "Summary"
	ConnectedType = "Connected"
)

// Event is a CloudEvent, version 1.0.
type Event struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`
	Source          string `json:"source"`
	Type            string `json:"type"`
	Subject         string `json:"subject,omitempty"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	Data            any    `json:"data"`
}

// Data is the data of an event about one object. It contains no content of objects and no messages
// of conditions, because only some users may read them.
type Data struct {
	Subject
	Reason string `json:"reason"`
	// Summary is one sentence.
	Summary string `json:"summary"`
	// Look is the command that shows details.
	Look string `json:"look"`
}

// Source returns the source attribute of a store's events; id is the store's id.
func Source(id string) string { return "urn:penstock:store:" + id }

func idOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:16])
}

func newEvent(source, kind, subject, id string, at time.Time, data any) Event {
	return Event{
		SpecVersion: "1.0", ID: id, Source: source, Type: typePrefix + kind, Subject: subject,
		Time: at.UTC().Format(time.RFC3339), DataContentType: "application/json", Data: data,
	}
}

// Of returns the event of a fact.
func Of(source string, subject Subject, fact Fact) Event {
	data := Data{Subject: subject, Reason: fact.Reason, Summary: sentence(subject, fact), Look: look(subject, fact.Type)}
	id := idOf(subject.UID, string(fact.Type), fact.Reason, strconv.FormatInt(fact.Since.Unix(), 10))
	return newEvent(source, string(fact.Type), strings.ToLower(subject.Kind)+"s/"+subject.Name, id, fact.At, data)
}

// Connected returns the first event for a receiver, which tests the connection.
func Connected(source, receiver, uid string, at time.Time) Event {
	data := map[string]string{"summary": "Penstock sends notifications to receiver " + receiver}
	return newEvent(source, ConnectedType, "secrets/"+receiver, idOf(ConnectedType, uid), at, data)
}

// sentence returns the event as one English sentence.
func sentence(s Subject, fact Fact) string {
	what := map[string]string{"ClusterExtensionRevision": "revision " + s.Name, "ConfigurationPlan": "plan " + s.Name}[s.Kind]
	if what == "" {
		if fact.Type == Held {
			return fmt.Sprintf("An upgrade of ClusterExtension %s is held: %s", s.Name, fact.Reason)
		}
		return fmt.Sprintf("No revision of ClusterExtension %s can be made: %s", s.Name, fact.Reason)
	}
	if of := strings.TrimSpace(s.Package + " " + s.Version); of != "" {
		what += " (" + of + ")"
	}
	switch fact.Type {
	case WaitingForApproval:
		return "Penstock waits for approval of " + what
	case Held:
		return "Penstock holds " + what + ": " + fact.Reason
	case Halted:
		return "The rollout of " + what + " has halted: " + fact.Reason
	case RolledBack:
		return "Penstock rolled back " + what + ": " + fact.Reason
	case Failed:
		return "The rollout of " + what + " failed: " + fact.Reason
	case Completed:
	}
	return "The rollout of " + what + " is complete"
}

// look returns the command that shows details. Object names need no quotes in it.
func look(s Subject, kind Type) string {
	switch {
	case s.Kind == "ConfigurationPlan":
		return "kubectl penstock plan show " + s.Name
	case kind == WaitingForApproval:
		return "kubectl penstock upgrade " + s.Extension
	}
	return "kubectl penstock why " + s.Extension
}

// Encode returns the body of a request. The body of one fact stays far below MaxBytes, because all
// of its text is bounded.
func Encode(event Event) ([]byte, error) {
	body, err := json.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("encoding notification %s: %w", event.ID, err)
	}
	return body, nil
}
