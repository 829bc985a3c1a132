package screens

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/text"
)

// Refusal is the reason why a request failed, as pages receive it.
type Refusal struct {
	// Status is an HTTP status code: the cluster's, if the cluster refused.
	Status int `json:"status"`
	// Reason is one word, for pages: from the cluster or from the console.
	Reason string `json:"reason"`
	// Message is a text for users.
	Message string `json:"message"`
}

// These are the console's own reasons that pages know.
const (
	// ReasonReadOnly means that the console is read-only.
	ReasonReadOnly = "ReadOnly"
	// ReasonChanged means that an object has changed since it was on the screen.
	ReasonChanged = "Changed"
	// ReasonUnreachable means that the cluster does not answer.
	ReasonUnreachable = "Unreachable"
)

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

const maxMessage = 4 << 10

// refusalOf returns the refusal for an error. It keeps the cluster's own message, if there is one.
func refusalOf(err error) Refusal {
	var own *Refusal
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &own):
		return *own
	case errors.As(err, &status) && status.Status().Code != 0:
		said := status.Status()
		return Refusal{Status: int(said.Code), Reason: string(said.Reason), Message: text.Clip(said.Message, maxMessage)}
	case errors.Is(err, context.Canceled):
		return Refusal{Status: http.StatusServiceUnavailable, Reason: "Ended", Message: "the request was cancelled"}
	default:
		return Refusal{Status: http.StatusBadGateway, Reason: ReasonUnreachable, Message: text.Clip("the cluster does not answer: "+err.Error(), maxMessage)}
	}
}

// Refuse answers with a refusal.
func Refuse(w http.ResponseWriter, refusal Refusal) { sendJSON(w, refusal.Status, refusal) }

func sendJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // a disconnected client does not read the rest
}
