package screens

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/overview"
)

// fakeCluster lists and watches revisions, and refuses plans. If asked is nil, it has no
// ClusterExtensions.
type fakeCluster struct {
	*httptest.Server
	revisions []v1alpha1.ClusterExtensionRevision
	events    chan v1alpha1.ClusterExtensionRevision
	asked     []any
}

func newFakeCluster(t *testing.T, revisions ...v1alpha1.ClusterExtensionRevision) *fakeCluster {
	t.Helper()
	f := &fakeCluster{revisions: revisions, events: make(chan v1alpha1.ClusterExtensionRevision)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_ = json.NewEncoder(w).Encode(v1alpha1.ClusterExtensionRevisionList{
				TypeMeta: metav1.TypeMeta{APIVersion: "olm.operatorframework.io/v1alpha1", Kind: "ClusterExtensionRevisionList"},
				ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: f.revisions})
			return
		}
		w.(http.Flusher).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case changed := <-f.events:
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": changed})
				w.(http.Flusher).Flush()
			}
		}
	})
	refuse := func(code int, reason metav1.StatusReason) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code), Message: "said the cluster"})
		}
	}
	mux.HandleFunc("GET /apis/hco.kubevirt.io/v1alpha1/configurationplans", refuse(http.StatusForbidden, metav1.StatusReasonForbidden))
	mux.HandleFunc("GET /apis/olm.operatorframework.io/v1/clusterextensions", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case f.asked == nil:
			refuse(http.StatusNotFound, metav1.StatusReasonNotFound)(w, r)
		case r.URL.Query().Get("watch") == "":
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtensionList", "metadata": map[string]any{"resourceVersion": "7"}, "items": f.asked})
		default:
			w.Header().Set("Content-Type", "application/json")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	mux.HandleFunc("/", refuse(http.StatusNotFound, metav1.StatusReasonNotFound))
	f.Server = httptest.NewServer(mux)
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func testRevision(extension string, number int64, state v1alpha1.LifecycleState, conditions ...metav1.Condition) v1alpha1.ClusterExtensionRevision {
	return v1alpha1.ClusterExtensionRevision{
		TypeMeta:   metav1.TypeMeta{APIVersion: "olm.operatorframework.io/v1alpha1", Kind: "ClusterExtensionRevision"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", extension, number), UID: "u", Generation: 1, ResourceVersion: fmt.Sprint(number)},
		Spec:       v1alpha1.ClusterExtensionRevisionSpec{Revision: number, LifecycleState: state, Phases: []v1alpha1.RevisionPhase{{Name: "all", Objects: make([]v1alpha1.RevisionObject, 2)}}},
		Status:     v1alpha1.ClusterExtensionRevisionStatus{ObservedGeneration: 1, Conditions: conditions},
	}
}

func condition(of string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: of, Status: status, Reason: reason, Message: "because", LastTransitionTime: metav1.NewTime(time.Unix(1000, 0))}
}

func well() []metav1.Condition {
	return []metav1.Condition{condition(v1alpha1.ConditionSucceeded, metav1.ConditionTrue, "Succeeded"), condition(v1alpha1.ConditionReady, metav1.ConditionTrue, "RolledOut"),
		condition(v1alpha1.ConditionAvailable, metav1.ConditionTrue, "Available"),
		condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, "RolledOut")}
}

// streamOf opens a stream of the API, and returns a function that reads its next message, except
// beats.
func streamOf(t *testing.T, cluster *fakeCluster, path string) func() Message {
	t.Helper()
	api, err := New(Options{Config: &rest.Config{Host: cluster.URL}})
	if err != nil {
		t.Fatal(err)
	}
	console := httptest.NewServer(api.Handler())
	t.Cleanup(func() { console.CloseClientConnections(); console.Close() })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, console.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return func() Message {
		t.Helper()
		for lines.Scan() {
			var message Message
			if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
				t.Fatalf("%v: %s", err, lines.Text())
			}
			if message.Kind != kindBeat {
				return message
			}
		}
		t.Fatalf("the stream has ended: %v", lines.Err())
		return Message{}
	}
}

// TestWatchOverview: all rows come first, then only changed rows. The answer names the parts that
// the user cannot see, and shows the rest.
func TestWatchOverview(t *testing.T) {
	cluster := newFakeCluster(t,
		testRevision("well", 1, v1alpha1.LifecycleStateActive, well()...),
		testRevision("bad", 1, v1alpha1.LifecycleStateActive, condition(v1alpha1.ConditionFailing, metav1.ConditionTrue, "Collision")),
		testRevision("new", 1, v1alpha1.LifecycleStateActive, well()...), testRevision("new", 2, v1alpha1.LifecycleStatePaused),
		testRevision("cold", 1, v1alpha1.LifecycleStateActive, condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, reasonFrozen)),
		testRevision("moves", 1, v1alpha1.LifecycleStateActive, condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, "RollingOut")))
	next := streamOf(t, cluster, "/api/watch/overview")
	rows, refused := map[string]ExtensionRow{}, ""
	for synced := false; !synced; {
		switch message := next(); message.Kind {
		case "rows":
			for _, row := range message.Rows.Extensions {
				rows[row.Name] = row
			}
		case kindTrouble:
			refused += message.Part + ": " + message.Refusal.Message
		case kindSynced:
			synced = true
		default:
			t.Fatalf("%+v", message)
		}
	}
	for name, want := range map[string]Signal{"well": Healthy, "bad": NeedsAttention, "new": Review, "cold": NeedsAttention, "moves": InProgress} {
		if rows[name].Signal != want {
			t.Errorf("%s: %+v, want %s", name, rows[name], want)
		}
	}
	if row := rows["new"]; row.Revision != "new-1" || row.Proposed != "new-2" || row.ProposedDiff != "new-1..new-2" {
		t.Errorf("a proposal: %+v", row)
	}
	if rows["cold"].Frozen == "" || rows["bad"].State != "Collision" || rows["bad"].Do == "" || rows["moves"].Objects != 2 {
		t.Errorf("%+v", rows)
	}
	if refused != "plans: said the cluster" {
		t.Errorf("refused: %q", refused)
	}
	if raw, err := json.Marshal(rows["bad"]); err != nil || len(raw) > 400 {
		t.Errorf("a row has %d bytes: %v", len(raw), err)
	}

	cluster.events <- testRevision("bad", 1, v1alpha1.LifecycleStateActive, well()...)
	if message := next(); message.Kind != "rows" || len(message.Rows.Extensions) != 1 || message.Rows.Extensions[0].Name != "bad" || message.Rows.Extensions[0].Signal != Healthy {
		t.Errorf("a change: %+v", message)
	}
}

// asks returns a ClusterExtension with conditions of its spec.
func asks(name string, conditions ...metav1.Condition) map[string]any {
	for i := range conditions {
		conditions[i].ObservedGeneration = 1
	}
	return map[string]any{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": map[string]any{"name": name, "uid": "u", "generation": 1, "resourceVersion": "1"},
		"spec":   map[string]any{"namespace": "sea", "source": map[string]any{"sourceType": "Catalog", "catalog": map[string]any{"packageName": "lighthouse"}}},
		"status": map[string]any{"conditions": conditions}}
}

// TestUnmet: a ClusterExtension whose request is not met needs attention, even while its revisions
// are healthy, and while Penstock retries. A ClusterExtension does not hide the state of its
// revision.
func TestUnmet(t *testing.T) {
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	taken := []metav1.Condition{condition("Ready", no, "NameTaken"), condition("Stalled", yes, "NameTaken"), condition("Progressing", no, "Blocked")}
	cluster := newFakeCluster(t,
		testRevision("taken", 7, v1alpha1.LifecycleStateActive, well()...), testRevision("well", 1, v1alpha1.LifecycleStateActive, well()...),
		testRevision("bad", 1, v1alpha1.LifecycleStateActive, condition(v1alpha1.ConditionFailing, yes, "Collision")),
		testRevision("held", 1, v1alpha1.LifecycleStateActive, append(well(), condition(v1alpha1.ConditionHeld, yes, "IsRollback"))...))
	cluster.asked = []any{
		asks("taken", taken...), asks("bad", condition("Ready", no, "Elsewhere"), condition("Stalled", yes, "Elsewhere")), asks("held", condition("Ready", no, "Held"), condition("Stalled", yes, "Held")),
		asks("well", condition("Ready", yes, "Succeeded"), condition("Stalled", no, "NotStalled"), condition("Progressing", yes, "Retrying")),
		asks("pull", condition("Ready", no, "PullFailed"), condition("Progressing", yes, "Retrying")), asks("new"), asks("rolls", condition("Ready", no, "RollingOut"), condition("Progressing", yes, "Retrying")),
	}
	next := streamOf(t, cluster, "/api/watch/overview")
	rows := map[string]ExtensionRow{}
	for message := next(); message.Kind != kindSynced; message = next() {
		if message.Rows != nil {
			for _, row := range message.Rows.Extensions {
				rows[row.Name] = row
			}
		}
	}
	for name, want := range map[string]struct {
		signal  Signal
		state   string
		objects int
	}{
		"taken": {NeedsAttention, "NameTaken", 2}, "bad": {NeedsAttention, "Collision", 2}, "held": {NeedsAttention, "Held", 2}, "well": {Healthy, "RolledOut", 2}, "pull": {NeedsAttention, "PullFailed", 0}, "rolls": {InProgress, "RollingOut", 0}, "new": {InProgress, "Pending", 0},
	} {
		if row := rows[name]; row.Signal != want.signal || row.State != want.state || row.Objects != want.objects {
			t.Errorf("%s: %+v, want %+v", name, row, want)
		}
	}
	if rows["pull"].Do == "" || rows["taken"].Do == "" {
		t.Errorf("what is to do: %+v", rows)
	}
}

// TestOneExtension: the screen of an extension agrees with the overview, in any order of the
// events. Without a ClusterExtension it shows the state of the revisions.
func TestOneExtension(t *testing.T) {
	revision := testRevision("taken", 7, v1alpha1.LifecycleStateActive, well()...)
	asked := overview.Asked{Name: "taken", Reason: "NameTaken", Message: "because", Needs: true}
	var sent []Message
	known := &oneExtension{name: "taken", send: func(message Message) { sent = append(sent, message) }}
	if message := known.revised(nil); message.Extension != nil {
		t.Errorf("there is no revision: %+v", message.Extension)
	}
	if message := known.revised([]*v1alpha1.ClusterExtensionRevision{&revision}); message.Extension.Row.Signal != Healthy {
		t.Errorf("its revision is well: %+v", message.Extension)
	}
	known.asks(&asked)
	if len(sent) != 1 || sent[0].Extension.Row.State != "NameTaken" || sent[0].Extension.Advice[0].Signal != NeedsAttention {
		t.Errorf("it does not get what it asks for: %+v", sent)
	}
	if message := known.revised([]*v1alpha1.ClusterExtensionRevision{&revision}); message.Extension.Row.State != "NameTaken" {
		t.Errorf("a revision has changed: %+v", message.Extension)
	}
}

// TestWatchExtension: the stream has all revisions, and the fields that a write needs.
func TestWatchExtension(t *testing.T) {
	cluster := newFakeCluster(t, testRevision("shop", 1, v1alpha1.LifecycleStateActive, well()...), testRevision("shop", 2, v1alpha1.LifecycleStateArchived), testRevision("shop", 3, v1alpha1.LifecycleStatePaused))
	next := streamOf(t, cluster, "/api/watch/extensions/shop")
	message := next()
	if message.Kind != "extension" || message.Extension == nil || len(message.Extension.Revisions) != 3 {
		t.Fatalf("%+v", message)
	}
	newest := message.Extension.Revisions[0]
	if !newest.Proposed || newest.Diff != "shop-1..shop-3" || newest.UID != "u" || newest.Generation != 1 || len(newest.Phases) != 1 || newest.Phases[0].State != string(v1alpha1.PhaseStatePending) {
		t.Errorf("%+v", newest)
	}
	if message := next(); message.Kind != kindSynced {
		t.Errorf("%+v", message)
	}
	cluster.events <- testRevision("shop", 3, v1alpha1.LifecycleStateActive)
	if message := next(); message.Extension == nil || message.Extension.Revisions[0].Proposed {
		t.Errorf("%+v", message)
	}
}

// TestNames: a part of a path is a name, or two names.
func TestNames(t *testing.T) {
	for _, good := range []string{"a", "a-1", "a-1..a-2", "..a-2", "a-1..live", "a.b-1"} {
		if refusal := checkName(good); refusal != nil {
			t.Errorf("%q: %v", good, refusal)
		}
	}
	for _, bad := range []string{"", "..", "a..", "a/b", "A", "a..b/../c", "...", "a%2f", "a\n", "a?x", strings.Repeat("a", 300)} {
		if checkName(bad) == nil {
			t.Errorf("%q is taken for a name", bad)
		}
	}
}

// FuzzNames: any text that is accepted as a name stays within its part of a path.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"a-1..a-2", "..", "a/../b", "%2e%2e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if checkName(name) == nil && (strings.ContainsAny(name, "/?#%\\ \n") || strings.Trim(name, ".") == "") {
			t.Errorf("%q is taken for a name", name)
		}
	})
}
