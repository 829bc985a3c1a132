package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/requestbody"
)

const (
	// maxBody has room for an object as it is and as it shall be, of 3 MiB each,
	// which is the most that the host takes.
	maxBody = 7 << 20
	// smallBody is what is read without asking whether there is room.
	smallBody = 256 << 10
	// room bounds the memory of bodies above smallBody that are read and judged at a
	// time, in bytes. A body may be there twice while it is read, and one sender has half
	// of the room at most: the largest body fits. Decoding takes several times as much.
	room = 32 << 20
	// readTimeout is for how long a body may trickle in, all of it.
	readTimeout = 5 * time.Second
	// maxUID bounds what is repeated in the answer.
	maxUID = 128
)

// Handler answers reviews for one webhook.
type Handler struct {
	webhook Webhook
	room    *requestbody.Budget
	metrics *Metrics
}

var _ http.Handler = &Handler{}

// NewHandlers returns the handlers of webhooks, by path. They share the memory for
// large bodies, which is divided between the addresses that send some: nobody is
// authenticated. Metrics may be nil.
func NewHandlers(webhooks []Webhook, metrics *Metrics) map[string]http.Handler {
	shared := requestbody.NewMemoryBudget(room, smallBody)
	handlers := make(map[string]http.Handler, len(webhooks))
	for _, w := range webhooks {
		handlers[w.Path()] = &Handler{webhook: w, room: shared, metrics: metrics}
	}
	return handlers
}

// refusal is the answer to what is no review that we judge.
type refusal struct {
	code   int
	reason string
}

func (r *refusal) Error() string { return r.reason }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, decided, err := h.answer(w, r)
	h.metrics.decided(h.webhook.Name, decided)
	var refused *refusal
	if errors.As(err, &refused) {
		if refused.code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		http.Error(w, refused.reason, refused.code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(answer); err != nil {
		klog.FromContext(r.Context()).V(2).Info("Nobody waited for the answer to a review", "webhook", h.webhook.Name, "reason", err.Error())
	}
}

// answer judges a request, or says why it cannot.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request) ([]byte, decision, error) {
	if err := checkForm(r); err != nil {
		return nil, malformed, err
	}
	share := h.room.Share(sender(r))
	defer share.GiveBack()
	body, err := read(w, r, share)
	if err != nil {
		return nil, decisionOf(err), err
	}
	uid, review, err := decode(body)
	if err != nil {
		return nil, malformed, err
	}
	decided, reason := allowed, h.webhook.Judge(review)
	if reason != "" {
		decided = denied
	}
	out, err := encode(uid, reason)
	if err != nil {
		return nil, malformed, &refusal{http.StatusBadRequest, err.Error()}
	}
	return out, decided, nil
}

func decisionOf(err error) decision {
	var refused *refusal
	if errors.As(err, &refused) && refused.code == http.StatusTooManyRequests {
		return busy
	}
	return malformed
}

func checkForm(r *http.Request) error {
	if r.Method != http.MethodPost {
		return &refusal{http.StatusMethodNotAllowed, "reviews are sent with POST"}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &refusal{http.StatusUnsupportedMediaType, "reviews are application/json"}
	}
	if r.ContentLength > maxBody {
		return tooLarge()
	}
	return nil
}

func tooLarge() error {
	return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("a review has at most %d bytes", maxBody)}
}

// sender is who has a share of the room: an address, without its port.
func sender(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// read returns the body. The share grows with what has come of it, whatever is announced.
func read(w http.ResponseWriter, r *http.Request, share *requestbody.Share) ([]byte, error) {
	// Whoever sends slowly does not hold the room for long. Where the connection
	// cannot be given a deadline, the server's own for the whole request holds.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout))
	body, complete, err := requestbody.Read(r, maxBody, share)
	switch {
	case apierrors.IsTooManyRequests(err):
		return nil, &refusal{http.StatusTooManyRequests, "other large reviews are being read: try again"}
	case apierrors.IsTimeout(err):
		return nil, &refusal{http.StatusRequestTimeout, "the review did not come in time"}
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, "the review did not come whole"}
	case !complete:
		return nil, tooLarge()
	}
	return body, nil
}

// decode reads as much of a review as anybody looks at.
func decode(body []byte) (types.UID, Review, error) {
	var sent struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    *struct {
			UID         types.UID               `json:"uid"`
			Kind        metav1.GroupVersionKind `json:"kind"`
			SubResource string                  `json:"subResource"`
			Namespace   string                  `json:"namespace"`
			Name        string                  `json:"name"`
			Operation   admissionv1.Operation   `json:"operation"`
			Object      *Object                 `json:"object"`
			OldObject   *Object                 `json:"oldObject"`
		} `json:"request"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &sent); err != nil {
		return "", Review{}, &refusal{http.StatusBadRequest, "this is no admission review: it is not the JSON of one"}
	}
	switch q := sent.Request; {
	case sent.APIVersion != admissionv1.SchemeGroupVersion.String() || sent.Kind != "AdmissionReview":
		return "", Review{}, &refusal{http.StatusBadRequest, "this is no AdmissionReview of " + admissionv1.SchemeGroupVersion.String()}
	case q == nil:
		return "", Review{}, &refusal{http.StatusBadRequest, "the review has no request"}
	case q.UID == "" || len(q.UID) > maxUID:
		return "", Review{}, &refusal{http.StatusBadRequest, fmt.Sprintf("the request must have a uid of at most %d bytes", maxUID)}
	default:
		return q.UID, Review{
			Operation: q.Operation, Group: q.Kind.Group, Kind: q.Kind.Kind, Namespace: q.Namespace, Name: q.Name,
			SubResource: q.SubResource, Object: q.Object, Old: q.OldObject,
		}, nil
	}
}

// encode makes the answer.
func encode(uid types.UID, reason string) ([]byte, error) {
	response := &admissionv1.AdmissionResponse{UID: uid, Allowed: reason == ""}
	if reason != "" {
		response.Result = &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: reason,
		}
	}
	return json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: response,
	})
}
