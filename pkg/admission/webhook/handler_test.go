package webhook_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/governed"
	"github.com/penstock-project/penstock/pkg/admission/webhook/installlevel"
)

// all are the webhooks that there are.
func all() []webhook.Webhook {
	return []webhook.Webhook{governed.Webhook("penstock"), installlevel.Webhook([]installlevel.Resource{{Group: "config.openshift.io", Resource: "*"}})}
}

const (
	good = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE",` +
		`"kind":{"group":"config.openshift.io","version":"v1","kind":"Proxy"},"name":"cluster",` +
		`"object":{"metadata":{"annotations":{"release.openshift.io/install-level":"0","release.openshift.io/create-only":"true"}}}}}`
	bad = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE",` +
		`"kind":{"group":"config.openshift.io","version":"v1","kind":"Proxy"},"name":"cluster",` +
		`"object":{"metadata":{"annotations":{"release.openshift.io/install-level":"2"}}}}}`
)

func guard() http.Handler { return webhook.NewHandlers(all(), nil)["/webhooks/install-level"] }

func post(handler http.Handler, contentType, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/webhooks/install-level", strings.NewReader(body))
	request.Header.Set("Content-Type", contentType)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

func TestHandlerAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, body string
		allowed      bool
		says         string
	}{
		"Good":      {"what the judge admits", good, true, ""},
		"Bad":       {"what it refuses, and why", bad, false, `Proxy.config.openshift.io cluster: annotation release.openshift.io/install-level is "2", want "0" or "1"`},
		"NoObjects": {"nothing to look at", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CONNECT"}}`, true, ""},
		"Nulls":     {"as kube-apiserver sends", strings.Replace(good, `"object":`, `"oldObject":null,"options":null,"object":`, 1), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := post(guard(), "application/json; charset=utf-8", tc.body)
			var review admissionv1.AdmissionReview
			if err := json.Unmarshal(answer.Body.Bytes(), &review); err != nil || answer.Code != http.StatusOK || review.Response == nil {
				t.Fatalf("%s: %d %s (%v)", tc.reason, answer.Code, answer.Body, err)
			}
			got := review.Response
			if got.UID != "u" || got.Allowed != tc.allowed || review.Kind != "AdmissionReview" || review.APIVersion != "admission.k8s.io/v1" {
				t.Errorf("%s: %s", tc.reason, answer.Body)
			}
			if (got.Result == nil) != tc.allowed || got.Result != nil && (got.Result.Code != http.StatusForbidden || got.Result.Message != tc.says) {
				t.Errorf("%s: %s", tc.reason, answer.Body)
			}
		})
	}
}

// What is no review is the sender's mistake, whatever it is.
func TestHandlerRefuses(t *testing.T) {
	filler := strings.Repeat("x", 3<<20)
	for name, tc := range map[string]struct {
		reason, contentType, body string
		code                      int
	}{
		"Empty":       {"nothing", "application/json", "", http.StatusBadRequest},
		"NoJSON":      {"garbage", "application/json", "\x00\xff{", http.StatusBadRequest},
		"NoType":      {"of no type", "", good, http.StatusUnsupportedMediaType},
		"YAML":        {"of another type", "application/yaml", good, http.StatusUnsupportedMediaType},
		"OtherKind":   {"another object", "application/json", `{"apiVersion":"v1","kind":"Pod"}`, http.StatusBadRequest},
		"Beta":        {"another version", "application/json", strings.Replace(good, "io/v1\"", "io/v1beta1\"", 1), http.StatusBadRequest},
		"NoRequest":   {"an answer", "application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{}}`, http.StatusBadRequest},
		"NoUID":       {"nothing to answer to", "application/json", strings.Replace(good, `"uid":"u",`, "", 1), http.StatusBadRequest},
		"LongUID":     {"it would be repeated", "application/json", strings.Replace(good, `"uid":"u"`, `"uid":"`+strings.Repeat("u", 200)+`"`, 1), http.StatusBadRequest},
		"BadUTF8":     {"of the uid", "application/json", strings.Replace(good, `"uid":"u"`, "\"uid\":5", 1), http.StatusBadRequest},
		"NoMap":       {"annotations that are a list", "application/json", strings.Replace(good, `"annotations":{`, `"annotations":[],"x":{`, 1), http.StatusBadRequest},
		"Deep":        {"nesting", "application/json", strings.Repeat(`{"a":`, 1<<20), http.StatusBadRequest},
		"DeepLists":   {"nesting", "application/json", strings.Repeat(`[`, 3<<20), http.StatusBadRequest},
		"Filler":      {"3 MiB of nothing", "application/json", filler, http.StatusBadRequest},
		"LargeLabels": {"more than any object has", "application/json", strings.Replace(good, `"metadata":{`, `"metadata":{"labels":{"a":"`+filler+`"},`, 1), http.StatusBadRequest},
		"Managers":    {"small in JSON, large in memory", "application/json", strings.Replace(good, `"metadata":{`, `"metadata":{"managedFields":[{}`+strings.Repeat(",{}", 1<<20)+`],`, 1), http.StatusBadRequest},
		"TooLarge":    {"more than two objects of 3 MiB", "application/json", strings.Repeat(" ", 7<<20+1), http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if answer := post(guard(), tc.contentType, tc.body); answer.Code != tc.code {
				t.Errorf("%s: %d %.200s, want %d", tc.reason, answer.Code, answer.Body, tc.code)
			}
		})
	}
	answer := httptest.NewRecorder()
	guard().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/webhooks/install-level", nil))
	if answer.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", answer.Code)
	}
}

// An object as large as the host takes, twice, is judged.
func TestHandlerLargeReview(t *testing.T) {
	data := fmt.Sprintf(`"spec":{"a":%q}`, strings.Repeat("x", 3<<20-300))
	body := strings.Replace(bad, `"object":{`, `"oldObject":{`+data+`},"object":{`+data+`,`, 1)
	answer := post(guard(), "application/json", body)
	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "install-level is") {
		t.Errorf("%d %.300s", answer.Code, answer.Body)
	}
}

// trickle is a body that does not end before it is told to.
type trickle struct {
	started chan struct{}
	end     chan struct{}
	once    *sync.Once
}

func (b trickle) Read([]byte) (int, error) {
	b.once.Do(func() { close(b.started) })
	<-b.end
	return 0, io.EOF
}

// Large bodies take turns, whoever sends them; small ones, as nearly all are, do not
// wait for them.
func TestHandlerFlood(t *testing.T) {
	handler := guard()
	body := trickle{started: make(chan struct{}), end: make(chan struct{}), once: &sync.Once{}}
	request := httptest.NewRequest(http.MethodPost, "/", body)
	request.Header.Set("Content-Type", "application/json")
	request.ContentLength = -1
	slow := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		handler.ServeHTTP(slow, request)
	}()
	<-body.started
	large := good + strings.Repeat(" ", 3<<20)
	for range 20 {
		if answer := post(handler, "application/json", large); answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" {
			t.Fatalf("a large one beside another: %d %.200s", answer.Code, answer.Body)
		}
		if answer := post(handler, "application/json", good); answer.Code != http.StatusOK {
			t.Fatalf("a small one beside a large one: %d %.200s", answer.Code, answer.Body)
		}
	}
	close(body.end)
	<-done
	if slow.Code != http.StatusBadRequest {
		t.Errorf("the slow one: %d", slow.Code)
	}
	if answer := post(handler, "application/json", large); answer.Code != http.StatusOK {
		t.Errorf("a large one, when there is room: %d %.200s", answer.Code, answer.Body)
	}
}

// FuzzReview: whatever comes, it is answered, with an answer to what was asked or
// with 4xx.
func FuzzReview(f *testing.F) {
	for _, seed := range []string{
		good, bad, "", "{", "null", `{"request":{}}`, strings.Repeat("[", 20000),
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"DELETE","oldObject":{"metadata":{"labels":{"penstock.dev/chain":"a"},"managedFields":[{"manager":"penstock/a","operation":"Apply"}]}}}}`,
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE","oldObject":{"metadata":{"labels":{"penstock.dev/chain":"a"},"managedFields":null}},"object":{"metadata":null}}}`,
		strings.Replace(bad, `"2"`, `null`, 1), strings.Replace(bad, `"2"`, `1`, 1), strings.Replace(bad, `"2"`, `"１"`, 1),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for path, handler := range webhook.NewHandlers(all(), nil) {
			answer := post(handler, "application/json", body)
			if answer.Code >= 400 && answer.Code < 500 {
				continue
			}
			var review admissionv1.AdmissionReview
			if err := json.Unmarshal(answer.Body.Bytes(), &review); err != nil || answer.Code != http.StatusOK || review.Response == nil || review.Response.UID == "" {
				t.Errorf("%s: %d %s (%v)", path, answer.Code, answer.Body, err)
			}
			if again := post(handler, "application/json", body); again.Body.String() != answer.Body.String() {
				t.Errorf("%s: the same review, another answer:\n%s\n%s", path, answer.Body, again.Body)
			}
		}
	})
}
