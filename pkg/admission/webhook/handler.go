package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/requestbody"
)

const (
	// maxBody has room for the old and the new object, of 3 MiB each, which is the limit of the
	// host.
	maxBody = 7 << 20
	// smallBody is the size up to which a body needs no room, in bytes.
	smallBody = 256 << 10
	// room bounds the memory of bodies above smallBody that are processed at the same time, in
	// bytes. A body may be in memory twice while it is read. A sender can use half of the room, so
	// the largest body fits. Decoding needs several times as much.
	room = 32 << 20
	// readTimeout bounds the time to receive a whole body.
	readTimeout = 5 * time.Second
	// maxUID bounds the uid, which the answer repeats.
	maxUID = 128
)

// Handler answers reviews for one webhook.
type Handler struct {
	webhook Webhook
	room    *requestbody.Budget
	metrics *Metrics
}

var _ http.Handler = &Handler{}

// NewHandlers returns the handlers of webhooks, by path. They share the memory for large bodies. It
// is divided between the sender addresses, because senders are not authenticated. metrics may be
// nil.
func NewHandlers(webhooks []Webhook, metrics *Metrics) map[string]http.Handler {
	shared := requestbody.NewMemoryBudget(room, smallBody)
	handlers := make(map[string]http.Handler, len(webhooks))
	for _, w := range webhooks {
		handlers[w.Path()] = &Handler{webhook: w, room: shared, metrics: metrics}
	}
	return handlers
}

// refusal is the answer to a request that is not a valid review.
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

// answer decides about a request, or returns a refusal.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request) ([]byte, decision, error) {
	if h.webhook.Authenticated && !isHost(r) {
		return nil, malformed, &refusal{http.StatusForbidden, "only kube-apiserver may send reviews"}
	}
	if err := checkForm(r); err != nil {
		return nil, malformed, err
	}
	share := h.room.Share(sender(r))
	defer share.GiveBack()
	body, err := read(w, r, share)
	if err != nil {
		return nil, decisionOf(err), err
	}
	uid, review, err := decode(body, h.webhook.Authenticated)
	if err != nil {
		return nil, malformed, err
	}
	decided, given := allowed, h.webhook.decide(r.Context(), review)
	if given.Refusal != nil {
		decided = denied
	}
	out, err := encode(uid, review, given)
	if err != nil {
		return nil, malformed, &refusal{http.StatusBadRequest, err.Error()}
	}
	return out, decided, nil
}

// isHost reports whether kube-apiserver itself is the caller. kube-apiserver authenticates to
// itself with a token that no other process has. Its aggregation layer, whose certificate Penstock
// verifies, forwards that identity. Members of the group have all rights anyway.
func isHost(r *http.Request) bool {
	asks, found := request.UserFrom(r.Context())
	return found && asks.GetName() == user.APIServerUser && slices.Contains(asks.GetGroups(), user.SystemPrivilegedGroup)
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

// sender returns the address of the client without its port. It identifies the holder of a share of
// the room.
func sender(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// read returns the body. It reserves space for the received bytes, not for the announced length.
func read(w http.ResponseWriter, r *http.Request, share *requestbody.Share) ([]byte, error) {
	// A slow client must not hold the room for long. If the connection supports no deadline, the
	// server's deadline for the whole request applies.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout))
	body, complete, err := requestbody.Read(r, maxBody, share)
	switch {
	case apierrors.IsTooManyRequests(err):
		return nil, &refusal{http.StatusTooManyRequests, "other large reviews are being read: try again"}
	case apierrors.IsTimeout(err):
		return nil, &refusal{http.StatusRequestTimeout, "the review did not arrive in time"}
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, "the review did not arrive completely"}
	case !complete:
		return nil, tooLarge()
	}
	return body, nil
}

// decode reads a review. The objects have metadata only, unless whole is true.
func decode(body []byte, whole bool) (types.UID, Review, error) {
	var sent struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    *struct {
			UID         types.UID                 `json:"uid"`
			Kind        metav1.GroupVersionKind   `json:"kind"`
			SubResource string                    `json:"subResource"`
			Namespace   string                    `json:"namespace"`
			Name        string                    `json:"name"`
			Operation   admissionv1.Operation     `json:"operation"`
			User        authenticationv1.UserInfo `json:"userInfo"`
			Object      *sentObject               `json:"object"`
			OldObject   *sentObject               `json:"oldObject"`
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
		review := Review{
			Operation: q.Operation, Group: q.Kind.Group, Kind: q.Kind.Kind, Namespace: q.Namespace, Name: q.Name,
			SubResource: q.SubResource, User: q.User, Object: q.Object.metadata(), Old: q.OldObject.metadata(),
		}
		if whole {
			review.ObjectJSON, review.OldJSON = q.Object.content(), q.OldObject.content()
		}
		return q.UID, review, nil
	}
}

// sentObject is an object with its JSON text, which is a part of the body.
type sentObject struct {
	Object

	text []byte
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *sentObject) UnmarshalJSON(data []byte) error {
	o.text = data
	return kjson.UnmarshalCaseSensitivePreserveInts(data, &o.Object)
}

func (o *sentObject) metadata() *Object {
	if o == nil {
		return nil
	}
	return &o.Object
}

func (o *sentObject) content() []byte {
	if o == nil {
		return nil
	}
	return slices.Clone(o.text)
}

// encode returns the answer in JSON.
func encode(uid types.UID, review Review, given Answer) ([]byte, error) {
	response := &admissionv1.AdmissionResponse{UID: uid, Allowed: given.Refusal == nil, Result: given.Refusal, Warnings: given.Warnings}
	if response.Allowed && len(given.Annotations) > 0 {
		patch, err := patchOf(review, given.Annotations)
		if err != nil {
			return nil, err
		}
		kind := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = patch, &kind
	}
	return json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: response,
	})
}

// patchOf returns a JSON patch that sets and removes annotations of an object.
func patchOf(review Review, annotations map[string]*string) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	var there Annotations
	if review.Object != nil {
		there = review.Object.Metadata.Annotations
	}
	var patch []operation
	if there == nil {
		patch = append(patch, operation{Op: "add", Path: "/metadata/annotations", Value: struct{}{}})
	}
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		path := "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		_, found := there[name]
		switch value := annotations[name]; {
		case value != nil:
			patch = append(patch, operation{Op: "add", Path: path, Value: *value})
		case found:
			patch = append(patch, operation{Op: "remove", Path: path})
		}
	}
	return json.Marshal(patch)
}
