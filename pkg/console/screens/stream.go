package screens

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// Kinds of messages of a stream, beside those with content.
const (
	// kindSynced says that everything that there is has been sent.
	kindSynced = "synced"
	// kindTrouble says that nothing is heard of the cluster at the moment, and why.
	kindTrouble = "trouble"
	// kindHeard ends such a trouble.
	kindHeard = "heard"
	// kindError ends a stream.
	kindError = "error"
	// kindBeat is the message of an idle stream.
	kindBeat = "beat"
)

// Message is a line of a stream.
type Message struct {
	Kind string `json:"kind"`
	// Rows are of the overview.
	Rows *Rows `json:"rows,omitempty"`
	// Extension, Plan and Rollout are as they are now; without one of a stream about it, there is none.
	Extension *Extension `json:"extension,omitempty"`
	Plan      *Plan      `json:"plan,omitempty"`
	Rollout   *Rollout   `json:"rollout,omitempty"`
	// Wanted is the request of a ClusterExtension of the same name.
	Wanted *Wanted `json:"wanted,omitempty"`
	// Log are lines of a log, each with its time.
	Log []string `json:"log,omitempty"`
	// Refusal is of troubles and errors.
	Refusal *Refusal `json:"refusal,omitempty"`
	// Part names the part in trouble, when others continue: plans.
	Part string `json:"part,omitempty"`
}

// beat is the interval of messages on an idle stream.
const beat = 15 * time.Second

// stream is a handler that sends messages, a line of JSON each, until the context ends.
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
		// nginx, and ingresses made of it, would hand on some kilobytes at a time.
		w.Header().Set("X-Accel-Buffering", "no")
		// The page learns at once that somebody answers.
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
		l.stop() // nobody reads any more
	}
}

// close keeps a late message from being written when the answer has ended.
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

// trouble is a message about what is not heard.
func trouble(part string, err error) Message {
	refusal := refusalOf(err)
	return Message{Kind: kindTrouble, Part: part, Refusal: &refusal}
}
