package screens

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// The kinds of messages without content.
const (
	// kindSynced means that all present objects were sent.
	kindSynced = "synced"
	// kindTrouble means that the cluster does not answer at the moment. The message has the reason.
	kindTrouble = "trouble"
	kindHeard   = "heard"
	kindError   = "error"
	kindBeat    = "beat"
)

// Message is one line of a stream.
type Message struct {
	Kind string `json:"kind"`
	// Rows are the rows of the overview.
	Rows *Rows `json:"rows,omitempty"`
	// Extension, Plan and Rollout are the present objects. In a stream about one, nil means that
	// the object does not exist.
	Extension *Extension `json:"extension,omitempty"`
	Plan      *Plan      `json:"plan,omitempty"`
	Rollout   *Rollout   `json:"rollout,omitempty"`
	// Wanted is the request of a ClusterExtension of the same name.
	Wanted *Wanted `json:"wanted,omitempty"`
	// Log holds lines of a log, each with its time.
	Log []string `json:"log,omitempty"`
	// Refusal is set for troubles and errors.
	Refusal *Refusal `json:"refusal,omitempty"`
	// Part names the part in trouble when the other parts continue: plans.
	Part string `json:"part,omitempty"`
}

// beat is the interval of messages on an idle stream.
const beat = 15 * time.Second

// stream returns a handler that sends messages, one line of JSON each, until the context ends.
func stream(watch func(context.Context, *http.Request, func(Message)) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := r.PathValue("name"); name != "" {
			if err := checkName(name); err != nil {
				Refuse(w, *err)
				return
			}
		}
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		lines := &lines{controller: http.NewResponseController(w), encoder: json.NewEncoder(w), stop: stop}
		w.Header().Set("Content-Type", "application/x-ndjson")
		// nginx, and ingresses based on it, would buffer some kilobytes.
		w.Header().Set("X-Accel-Buffering", "no")
		// With the first beat, the page knows at once that the console answers.
		lines.send(Message{Kind: kindBeat})
		go lines.beats(ctx)
		err := watch(ctx, r, lines.send)
		if err != nil && r.Context().Err() == nil {
			refusal := refusalOf(err)
			lines.send(Message{Kind: kindError, Refusal: &refusal})
		}
		stop()
		lines.close()
	})
}

// lines writes messages, one at a time.
type lines struct {
	mu         sync.Mutex
	controller *http.ResponseController
	encoder    *json.Encoder
	stop       context.CancelFunc
	closed     bool
}

func (l *lines) send(message Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.encoder.Encode(message) != nil || l.controller.Flush() != nil {
		l.stop() // the client has disconnected
	}
}

// close prevents a write after the end of the answer.
func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

func (l *lines) beats(ctx context.Context) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.send(Message{Kind: kindBeat})
		}
	}
}

// trouble returns the message for a part that the cluster does not send.
func trouble(part string, err error) Message {
	refusal := refusalOf(err)
	return Message{Kind: kindTrouble, Part: part, Refusal: &refusal}
}
