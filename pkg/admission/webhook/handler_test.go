package webhook_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/governed"
	"github.com/penstock-project/penstock/pkg/admission/webhook/installlevel"
)

func all() []webhook.Webhook {
	return []webhook.Webhook{governed.Webhooks("penstock")[0], installlevel.Webhook([]installlevel.Resource{{Group: "config.openshift.io", Resource: "*"}})}
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

// TestHandlerRefuses: a body that is not a review is an error of the sender.
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

// TestHandlerLargeReview: a review with two objects of the host's maximal size is answered.
func TestHandlerLargeReview(t *testing.T) {
	data := fmt.Sprintf(`"spec":{"a":%q}`, strings.Repeat("x", 3<<20-300))
	body := strings.Replace(bad, `"object":{`, `"oldObject":{`+data+`},"object":{`+data+`,`, 1)
	answer := post(guard(), "application/json", body)
	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "install-level is") {
		t.Errorf("%d %.300s", answer.Code, answer.Body)
	}
}

// silence is a body that sends its first bytes at once, and ends when end is closed.
type silence struct {
	first *strings.Reader
	began func()
	end   chan struct{}
}

func (b silence) Read(into []byte) (int, error) {
	if b.first.Len() > 0 {
		return b.first.Read(into)
	}
	b.began()
	<-b.end
	return 0, io.EOF
}

// flood sends reviews that announce the maximal length and send only come bytes each. It returns
// when all of them wait. end stops them and returns the answer codes.
func flood(handler http.Handler, reviews, come int, address string) (end func() []int) {
	stop, codes := make(chan struct{}), make(chan int, reviews)
	var beginning sync.WaitGroup
	for range reviews {
		beginning.Add(1)
		began := sync.OnceFunc(beginning.Done)
		request := httptest.NewRequest(http.MethodPost, "/", silence{strings.NewReader(strings.Repeat(" ", come)), began, stop})
		request.Header.Set("Content-Type", "application/json")
		request.ContentLength, request.RemoteAddr = 7<<20, address
		go func() {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			began() // The request may be refused before the body is read.
			codes <- answer.Code
		}()
	}
	beginning.Wait()
	return func() []int {
		close(stop)
		all := make([]int, reviews)
		for i := range all {
			all[i] = <-codes
		}
		return all
	}
}

// kubeAPIServer is the source address of reviews in these tests, as in httptest.
const kubeAPIServer = "192.0.2.1:1234"

// TestHandlerFlood: a body uses room for its received bytes, not for its announced length. Reviews
// are answered while many idle requests are open, from any address.
func TestHandlerFlood(t *testing.T) {
	handler := guard()
	for _, address := range []string{"192.0.2.2:1", kubeAPIServer} {
		end := flood(handler, 100, 0, address)
		for _, size := range []int{0, 1 << 20, 6 << 20} {
			if answer := post(handler, "application/json", good+strings.Repeat(" ", size)); answer.Code != http.StatusOK {
				t.Errorf("a review of %d bytes beside silent ones from %s: %d %.200s", size, address, answer.Code, answer.Body)
			}
		}
		for _, code := range end() {
			if code != http.StatusBadRequest {
				t.Errorf("a silent one: %d", code)
			}
		}
	}
}

// TestHandlerShares: no sender can take the memory that other senders need. Small reviews, the
// usual case, need no shared memory. Each answer releases its memory.
func TestHandlerShares(t *testing.T) {
	handler := guard()
	large := good + strings.Repeat(" ", 3<<20)
	end := flood(handler, 100, 6<<20, "192.0.2.2:1")
	if answer := post(handler, "application/json", large); answer.Code != http.StatusOK {
		t.Errorf("a large one beside those of another sender: %d %.200s", answer.Code, answer.Body)
	}
	endOwn := flood(handler, 10, 900<<10, kubeAPIServer)
	if answer := post(handler, "application/json", large); answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" {
		t.Errorf("a large one beside many of the same sender: %d %.200s", answer.Code, answer.Body)
	}
	if answer := post(handler, "application/json", good+strings.Repeat(" ", 200<<10)); answer.Code != http.StatusOK {
		t.Errorf("a small one beside large ones: %d %.200s", answer.Code, answer.Body)
	}
	for _, code := range append(end(), endOwn()...) {
		if code != http.StatusBadRequest && code != http.StatusTooManyRequests {
			t.Errorf("one of many: %d", code)
		}
	}
	if answer := post(handler, "application/json", good+strings.Repeat(" ", 6<<20)); answer.Code != http.StatusOK {
		t.Errorf("a large one, when there is room: %d %.200s", answer.Code, answer.Body)
	}
}

// TestHandlerLate: a slow sender gets a timeout error.
func TestHandlerLate(t *testing.T) {
	request := httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(os.ErrDeadlineExceeded))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	if guard().ServeHTTP(answer, request); answer.Code != http.StatusRequestTimeout {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

// FuzzReview: every body gets an answer to its review, or a 4xx error.
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
