package notify

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/outbound"
)

var at = metav1.Unix(1000, 0)

func condition(kind, status, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: "secret-content", LastTransitionTime: at}
}

func revisionOf(state olmv1alpha1.LifecycleState, conditions ...metav1.Condition) *olmv1alpha1.ClusterExtensionRevision {
	r := &olmv1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "argo-cd-3", UID: "u", CreationTimestamp: at}}
	r.Spec.LifecycleState, r.Status.Conditions = state, conditions
	return r
}

func told(all []Fact) []string {
	var out []string
	for _, fact := range all {
		out = append(out, string(fact.Type)+"/"+fact.Reason)
	}
	return out
}

func TestOfRevision(t *testing.T) {
	const active, paused, archived = olmv1alpha1.LifecycleStateActive, olmv1alpha1.LifecycleStatePaused, olmv1alpha1.LifecycleStateArchived
	proposed := revisionOf(paused)
	proposed.Annotations = map[string]string{olmv1alpha1.ProposedAnnotation: "true"}
	later, again := proposed.DeepCopy(), proposed.DeepCopy()
	later.Annotations[olmv1alpha1.ScheduledApprovalAnnotation] = `{"user":"alice","notBefore":"2026-11-28T21:00:00Z"}`
	again.Annotations[olmv1alpha1.ScheduledApprovalAnnotation] = `{"user":"alice","notBefore":"2026-11-28T21:00:00Z","ended":"2026-11-28T21:00:01Z","why":"alice cannot"}`
	if _, facts := OfRevision(again); !facts[0].Since.Equal(time.Date(2026, 11, 28, 21, 0, 1, 0, time.UTC)) {
		t.Errorf("what waits again waits since %s: it would be taken for a duplicate", facts[0].Since)
	}
	approved := revisionOf(active)
	approved.Annotations = proposed.Annotations
	for name, tc := range map[string]struct {
		reason   string
		revision *olmv1alpha1.ClusterExtensionRevision
		want     []string
	}{
		"new":         {"nothing is known of it", revisionOf(active), nil},
		"proposed":    {"somebody has to approve it", proposed, []string{"WaitingForApproval/Proposed"}},
		"later":       {"a person has approved it", later, nil},
		"again":       {"the approval had no effect", again, []string{"WaitingForApproval/Proposed"}},
		"approved":    {"nobody has to any more", approved, nil},
		"complete":    {"it succeeded", revisionOf(active, condition("Succeeded", "True", "RolledOut")), []string{"Completed/RolledOut"}},
		"deadline":    {"it took too long", revisionOf(active, condition("Stalled", "True", "ProgressDeadlineExceeded")), []string{"Failed/ProgressDeadlineExceeded"}},
		"collision":   {"a person has to help", revisionOf(active, condition("Stalled", "True", "Collision")), []string{"Halted/Collision"}},
		"budget":      {"Penstock does not delete so much unasked", revisionOf(active, condition("Stalled", "True", "BudgetExceeded")), []string{"Held/BudgetExceeded"}},
		"trouble":     {"a pass that failed is tried again", revisionOf(active, condition("Stalled", "True", "PassFailed")), nil},
		"frozen":      {"nothing is written", revisionOf(active, condition("Progressing", "False", "Frozen")), []string{"Held/Frozen"}},
		"held":        {"a rollback holds the owner", revisionOf(active, condition("Held", "True", "IsRollback")), []string{"Held/IsRollback"}},
		"released":    {"that is over", revisionOf(active, condition("Held", "False", "Released")), nil},
		"rolled back": {"also when it is archived since", revisionOf(archived, condition("RolledBack", "True", "ProgressDeadlineExceeded"), condition("Stalled", "True", "Collision")), []string{"RolledBack/ProgressDeadlineExceeded"}},
	} {
		subject, facts := OfRevision(tc.revision)
		if diff := cmp.Diff(tc.want, told(facts)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
		if subject.Extension != "argo-cd" {
			t.Errorf("the extension is %q", subject.Extension)
		}
	}
}

func TestOfPlan(t *testing.T) {
	for phase, want := range map[hcov1alpha1.Phase][]string{
		hcov1alpha1.PhaseReviewRequired: {"WaitingForApproval/R"}, hcov1alpha1.PhaseScheduled: nil, hcov1alpha1.PhaseFailed: {"Failed/R"},
		hcov1alpha1.PhaseExpired: {"Failed/R"}, hcov1alpha1.PhaseCompletedWithErrors: {"Failed/R"}, hcov1alpha1.PhaseCompleted: {"Completed/R"},
		hcov1alpha1.PhaseDrifted: nil, hcov1alpha1.PhaseInProgress: nil,
	} {
		plan := &hcov1alpha1.ConfigurationPlan{Status: hcov1alpha1.ConfigurationPlanStatus{Phase: phase, Conditions: []metav1.Condition{condition("Ready", "False", "R")}}}
		_, facts := OfPlan(plan)
		if diff := cmp.Diff(want, told(facts)); diff != "" {
			t.Errorf("%s: %s", phase, diff)
		}
	}
	// A plan that is computed again waits again. A plan whose drift was repaired completes nothing.
	again := &hcov1alpha1.ConfigurationPlan{Status: hcov1alpha1.ConfigurationPlanStatus{
		Phase: hcov1alpha1.PhaseCompleted, DraftedAt: &metav1.Time{Time: time.Unix(900, 0)}, Conditions: []metav1.Condition{condition("Ready", "True", "R")}}}
	_, first := OfPlan(again)
	again.Status.Conditions[0].LastTransitionTime = metav1.Unix(5000, 0)
	_, second := OfPlan(again)
	if !first[0].Since.Equal(second[0].Since) {
		t.Error("a plan that was brought back is another completion")
	}
}

func TestOfExtension(t *testing.T) {
	for name, tc := range map[string]struct {
		condition metav1.Condition
		want      []string
	}{
		"not upgradeable":   {condition("UpgradeAvailable", "True", "NotUpgradeable"), []string{"Held/NotUpgradeable"}},
		"window":            {condition("UpgradeAvailable", "True", "WaitingForWindow"), nil},
		"denied":            {condition("Ready", "False", "Denied"), []string{"Failed/Denied"}},
		"pull failed":       {condition("Ready", "False", "PullFailed"), nil},
		"rolling out":       {condition("Ready", "False", "RollingOut"), nil},
		"rollback":          {condition("Ready", "False", "Held"), nil},
		"upgrade denied":    {condition("UpgradeAvailable", "True", "UnsafeDefinitions"), []string{"Held/UnsafeDefinitions"}},
		"upgrade allowed":   {condition("UpgradeAvailable", "True", "Allowed"), nil},
		"upgrade by choice": {condition("UpgradeAvailable", "True", "Blocked"), nil},
	} {
		e := &extension.Extension{}
		e.Status.Conditions = []metav1.Condition{tc.condition}
		_, facts := OfExtension(e)
		if diff := cmp.Diff(tc.want, told(facts)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestEvent: a fact always gives the same CloudEvent with the same id. It quotes neither a
// condition's message nor unprintable characters.
func TestEvent(t *testing.T) {
	revision := revisionOf(olmv1alpha1.LifecycleStateActive, condition("Stalled", "True", "Collision"))
	revision.Annotations = map[string]string{olmv1alpha1.VersionAnnotation: "1.0\x1b[31m\n" + strings.Repeat("9", 5000), olmv1alpha1.PackageAnnotation: "\u202eargo"}
	subject, facts := OfRevision(revision)
	event := Of(Source("id"), subject, facts[0])
	body, err := Encode(event)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"specversion": "1.0", "type": "dev.penstock.Halted", "source": "urn:penstock:store:id", "subject": "clusterextensionrevisions/argo-cd-3",
		"time": "1970-01-01T00:16:40Z", "datacontenttype": "application/json",
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %s", key, got[key], want)
		}
	}
	for _, never := range []string{"secret-content", `\u001b`, `\n`, "\u202e"} {
		if strings.Contains(string(body), never) {
			t.Errorf("the body has %q: %s", never, body)
		}
	}
	if len(body) > 4096 {
		t.Errorf("the body has %d bytes", len(body))
	}
	if again := Of(Source("id"), subject, facts[0]); again.ID != event.ID {
		t.Errorf("its id is %s and then %s", event.ID, again.ID)
	}
	other := facts[0]
	other.Since = other.Since.Add(time.Second)
	if Of(Source("id"), subject, other).ID == event.ID {
		t.Error("a fact that came back has the id of the first one")
	}
}

// TestSummary: many events become one event within the size limit, the most urgent first.
func TestSummary(t *testing.T) {
	var bodies []json.RawMessage
	for i := range 500 {
		kind := Halted
		if i == 499 {
			kind = Failed
		}
		body, err := Encode(Of("s", Subject{Kind: "ClusterExtensionRevision", Name: fmt.Sprintf("a-%d", i), UID: fmt.Sprint(i), Package: strings.Repeat("p", 128)}, Fact{Type: kind, Reason: "Collision"}))
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	event := Summary("s", "r", 8, 507, bodies, 7, time.Unix(1, 0))
	body, err := Encode(event)
	if err != nil || len(body) > MaxBytes {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	data, ok := event.Data.(SummaryData)
	if !ok || data.Counts["Halted"] != 499 || data.LeftOut != 7 || data.NotListed+len(data.Notifications) != 500 {
		t.Errorf("it has %d, %v, %d left out, %d not listed", len(data.Notifications), data.Counts, data.LeftOut, data.NotListed)
	}
	if !strings.Contains(string(data.Notifications[0]), "dev.penstock.Failed") {
		t.Errorf("the first one is %s", data.Notifications[0])
	}
	if data.Summary != "500 notifications: 1 Failed, 499 Halted; 7 were left out, because the receiver took none for too long" {
		t.Error(data.Summary)
	}
	if Summary("s", "r", 8, 507, bodies, 7, time.Unix(9, 0)).ID != event.ID {
		t.Error("sent again it has another id")
	}
}

// serve runs a receiver on loopback, and returns its Secret.
func serve(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *corev1.Secret) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server, &corev1.Secret{Data: map[string][]byte{
		"url": []byte(server.URL + "/hooks/token-in-path"), "key": []byte("0123456789abcdef"), "ca.crt": roots,
	}}
}

// anywhere lets a test connect to loopback.
func anywhere() outbound.Dialer {
	return outbound.Dialer{Check: func(netip.AddrPort, []netip.AddrPort) error { return nil }}
}

func send(t *testing.T, dialer outbound.Dialer, secret *corev1.Secret) error {
	t.Helper()
	to, err := ReceiverOf(secret)
	if err != nil {
		t.Fatal(err)
	}
	return to.Send(t.Context(), dialer, []byte(`{"id":"1"}`), time.Unix(1700000000, 0))
}

// TestSend: the request is signed, and an answer of 2xx accepts it.
func TestSend(t *testing.T) {
	_, secret := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if want := Sign([]byte("0123456789abcdef"), body, time.Unix(1700000000, 0)); r.Header.Get(SignatureHeader) != want || !strings.HasPrefix(want, "t=1700000000,v1=") {
			t.Errorf("signed %s, want %s", r.Header.Get(SignatureHeader), want)
		}
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != ContentType || r.URL.Path != "/hooks/token-in-path" || string(body) != `{"id":"1"}` {
			t.Errorf("%s %s %s: %s", r.Method, r.URL, r.Header.Get("Content-Type"), body)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	if err := send(t, anywhere(), secret); err != nil {
		t.Error(err)
	}
}

// TestRefused: only a 2xx answer accepts an event. Redirects are not followed. The error quotes
// neither the answer nor the path.
func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
		after   time.Duration
	}{
		"error": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "answer-text", http.StatusInternalServerError)
		}, "answered 500", 0},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://169.254.169.254/answer-text", http.StatusMovedPermanently)
		}, "answered 301: redirects are not followed", 0},
		"busy": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "999999")
			w.WriteHeader(http.StatusTooManyRequests)
		}, "answered 429", time.Hour},
		"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = connection.Write([]byte("answer-text without a status\r\n\r\n"))
				_ = connection.Close()
			}
		}, "something else than HTTP", 0},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			for range 1 << 10 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return // the client does not read it
				}
			}
			t.Error("1 GiB of an answer was read")
		}, "answered 502", 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, secret := serve(t, tc.handler)
			err := send(t, anywhere(), secret)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%v, want %s", err, tc.want)
			}
			for _, never := range []string{"answer-text", "token-in-path"} {
				if strings.Contains(err.Error(), never) {
					t.Errorf("the error has %s: %v", never, err)
				}
			}
			if refused, ok := err.(*RefusedError); ok && refused.RetryAfter != tc.after { //nolint:errorlint // Send does not wrap it
				t.Errorf("to be tried again after %s, want %s", refused.RetryAfter, tc.after)
			}
		})
	}
}

// TestUnreachable: a wrong authority, a refused address, and a name that resolves to a refused
// address.
func TestUnreachable(t *testing.T) {
	server, secret := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was reached") })
	without := secret.DeepCopy()
	delete(without.Data, "ca.crt")
	if err := send(t, anywhere(), without); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate of nobody: %v", err)
	}
	if err := send(t, outbound.Dialer{}, secret); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("loopback: %v", err)
	}
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	named := secret.DeepCopy()
	named.Data["url"] = []byte("https://localhost:" + at.Port())
	if err := send(t, outbound.Dialer{}, named); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("a name of loopback: %v", err)
	}
	// The host's API: the checked address is the address of the connection.
	host := outbound.Dialer{Hosts: []string{at.Host}}
	host.Check = func(to netip.AddrPort, known []netip.AddrPort) error {
		if len(known) != 1 || known[0] != to {
			t.Errorf("%s is checked against %v", to, known)
		}
		return outbound.Allowed(netip.AddrPortFrom(netip.MustParseAddr("203.0.113.1"), to.Port()), nil)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	to, err := ReceiverOf(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Send(ctx, host, nil, time.Now()); err == nil {
		t.Error("it is sent after the end")
	}
	if connection, err := host.Transport(nil).DialContext(t.Context(), "tcp", at.Host); err != nil {
		t.Error(err)
	} else {
		_ = connection.Close()
	}
}

// TestSlow: a receiver that hangs costs only one request and its timeout.
func TestSlow(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	secret := &corev1.Secret{Data: map[string][]byte{"url": []byte("https://" + listener.Addr().String()), "key": []byte("0123456789abcdef")}}
	to, err := ReceiverOf(secret)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := to.Send(ctx, anywhere(), nil, time.Now()); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("%v", err)
	}
}

// TestReceiverOf: an error about a Secret does not quote its content.
func TestReceiverOf(t *testing.T) {
	for name, tc := range map[string]struct{ url, key, roots, want string }{
		"complete":   {"https://hooks.example.com/x\n", "0123456789abcdef\n", "", ""},
		"nothing":    {"", "0123456789abcdef", "", "key url"},
		"http":       {"http://s3cret.example.com", "0123456789abcdef", "", "https://"},
		"no host":    {"https:///s3cret", "0123456789abcdef", "", "names a host"},
		"user":       {"https://s3cret:pw@example.com", "0123456789abcdef", "", "has a user"},
		"no URL":     {"https://s3cret\x7f", "0123456789abcdef", "", "not a URL"},
		"short key":  {"https://example.com", "s3cret", "", "6 bytes, 16 are needed"},
		"no root":    {"https://example.com", "0123456789abcdef", "s3cret", "no certificate"},
		"file":       {"file:///etc/s3cret", "0123456789abcdef", "", "https://"},
		"no key":     {"https://example.com", "", "", "0 bytes"},
		"space only": {"  ", "0123456789abcdef", "", "key url"},
	} {
		_, err := ReceiverOf(&corev1.Secret{Data: map[string][]byte{"url": []byte(tc.url), "key": []byte(tc.key), "ca.crt": []byte(tc.roots)}})
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error quotes the Secret: %v", name, err)
		}
	}
}
