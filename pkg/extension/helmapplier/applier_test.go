package helmapplier

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/source/helm/chunked"
)

// inHand keeps Secrets in memory. It has no cluster to apply to.
type inHand struct {
	*Applier
	*testing.T
	client *fake.Clientset
}

func newInHand(t *testing.T) inHand {
	client := fake.NewClientset()
	return inHand{&Applier{secrets: client.CoreV1().Secrets("system"), namespace: "system", clock: testclock.NewFakeClock(time.Unix(1795353079, 0))}, t, client}
}

func wanted(text string) Wanted {
	return Wanted{
		Name: "lamp", Namespace: "lamps", Owner: metav1.OwnerReference{APIVersion: "olm.operatorframework.io/v1", Kind: "ClusterExtension", Name: "lamp", UID: "u"},
		Objects: [][]byte{fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lamp","namespace":"lamps"},"data":{"text":%q}}`, text)},
		Labels:  map[string]string{"olm.operatorframework.io/bundle-version": "1.0.0"},
	}
}

func (w inHand) record(text string) int {
	w.Helper()
	version, err := w.Record(w.Context(), wanted(text), "why")
	if err != nil {
		w.Fatal(err)
	}
	return version
}

// shown formats the history, newest first.
func (w inHand) shown() []string {
	w.Helper()
	history, err := w.History(w.Context(), "lamp")
	if err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, one := range history {
		words := fmt.Sprintf("%d %s", one.Version, one.Status)
		if one.Err != nil {
			words += " unreadable"
		}
		out = append(out, words)
	}
	return out
}

func (w inHand) isShown(want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.shown()); diff != "" {
		w.Errorf("history (-want +got):\n%s", diff)
	}
}

// TestRecord: a recorded revision is deployed and the previous one superseded. Ten revisions are
// kept. Stored releases can be read again.
func TestRecord(t *testing.T) {
	w := newInHand(t)
	for range 11 {
		w.record("x")
	}
	if got := w.shown(); len(got) != 10 || got[0] != "11 deployed" || got[1] != "10 superseded" || got[9] != "2 superseded" {
		t.Errorf("history is %v", got)
	}
	history, err := w.History(t.Context(), "lamp")
	if err != nil {
		t.Fatal(err)
	}
	newest := history[0]
	if newest.Namespace != "lamps" || newest.Description != "why" || newest.Labels["olm.operatorframework.io/bundle-version"] != "1.0.0" || newest.Manifest != string(wanted("x").Objects[0])+"\n" {
		t.Errorf("the newest revision is %+v", newest)
	}
	secret, err := w.client.CoreV1().Secrets("system").Get(t.Context(), "sh.helm.release.v1.lamp.v11", metav1.GetOptions{})
	if err != nil || secret.OwnerReferences[0].UID != "u" {
		t.Errorf("its Secret is %v, %v", secret, err)
	}
	// OLM's reader decodes the same.
	read, err := chunked.Decode(secret, nil)
	if err != nil || read.Manifest != newest.Manifest || read.Info.Status != "deployed" || read.Labels["olm.operatorframework.io/bundle-version"] != "1.0.0" {
		t.Errorf("OLM's reader has %+v, %v", read, err)
	}
	if err := w.Supersede(t.Context(), "lamp"); err != nil {
		t.Fatal(err)
	}
	labelled, err := w.client.CoreV1().Secrets("system").List(t.Context(), metav1.ListOptions{LabelSelector: "penstock.dev/superseded-by=lamp"})
	if err != nil || len(labelled.Items) != 10 {
		t.Errorf("%d Secrets are labelled, want 10: %v", len(labelled.Items), err)
	}
	if got := w.shown(); len(got) != 10 || got[0] != "11 deployed" {
		t.Errorf("labelled, history is %v", got)
	}
	if err := w.Delete(t.Context(), "lamp"); err != nil {
		t.Fatal(err)
	}
	w.isShown()
}

// large returns text that compresses badly.
func large(bytes int) string {
	var out strings.Builder
	sum := sha256.Sum256(nil)
	for out.Len() < bytes {
		sum = sha256.Sum256(sum[:])
		out.WriteString(hex.EncodeToString(sum[:]))
	}
	return out.String()
}

// TestElevenSecrets: a revision can have eleven Secrets. If one of them is missing, the revision is
// unreadable, and not absent. A revision of twelve Secrets is refused before anything is stored.
func TestElevenSecrets(t *testing.T) {
	w := newInHand(t)
	store := w.store(nil)
	one := w.next(wanted("x"), nil)
	one.Chart = nil // which has the objects a second time
	one.Manifest = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"x":%q}}`, large(20<<20))
	if err := store.create(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	list, err := w.client.CoreV1().Secrets("system").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 11 {
		t.Fatalf("it takes %d Secrets, %v", len(list.Items), err)
	}
	history, err := w.History(t.Context(), "lamp")
	if err != nil || len(history) != 1 || history[0].Manifest != one.Manifest {
		t.Fatalf("it is not read again: %v", err)
	}
	for _, secret := range list.Items {
		if secret.Type == chunked.ChunkType {
			if err := w.client.CoreV1().Secrets("system").Delete(t.Context(), secret.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	w.isShown("1 pending-install unreadable")
	one.Version, one.Manifest = 2, large(30<<20)
	if err := store.create(t.Context(), one); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("more than eleven: %v", err)
	}
	w.isShown("1 pending-install unreadable")
}

// TestInterrupted: after a crash at any write of an update, the revision has the old or the new
// content. A revision left pending is marked as failed when the next revision is created.
func TestInterrupted(t *testing.T) {
	for dies := range 8 {
		w := newInHand(t)
		w.record("before")
		left := dies
		w.client.PrependReactor("*", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.GetVerb() == "get" || action.GetVerb() == "list" {
				return false, nil, nil
			}
			if left--; left < 0 {
				return true, nil, errors.New("killed")
			}
			return false, nil, nil
		})
		_, err := w.Record(w.Context(), wanted("after"), "again")
		left = 1000
		history := w.shown()
		switch {
		case err == nil && cmp.Equal(history, []string{"2 deployed", "1 superseded"}):
		case err != nil && cmp.Equal(history, []string{"1 deployed"}):
		case err != nil && cmp.Equal(history, []string{"2 deployed", "1 deployed"}):
		default:
			t.Errorf("killed after %d writes, %v: history is %v", dies, err, history)
		}
		w.record("after")
		if got := w.shown(); got[0] != fmt.Sprintf("%d deployed", len(got)) || strings.Count(strings.Join(got, ","), "deployed") != 1 {
			t.Errorf("killed after %d writes: afterwards history is %v", dies, got)
		}
	}
	w := newInHand(t)
	w.record("x")
	pending := w.next(wanted("y"), []stored{{Version: 1}})
	if err := w.store(nil).create(t.Context(), pending); err != nil {
		t.Fatal(err)
	}
	w.isShown("2 pending-upgrade", "1 deployed")
	w.record("z")
	w.isShown("3 deployed", "2 failed", "1 superseded")
}

// TestForeign: Secrets that only look like releases are ignored.
func TestForeign(t *testing.T) {
	w := newInHand(t)
	w.record("x")
	labels := func(version string) map[string]string {
		return map[string]string{"owner": "operator-controller", "type": "index", "name": "lamp", "version": version, "status": "deployed"}
	}
	names, _ := json.Marshal([]string{})
	for name, secret := range map[string]*corev1.Secret{
		"other":    {Type: corev1.SecretTypeOpaque, ObjectMeta: metav1.ObjectMeta{Labels: labels("7")}},
		"numbered": {Type: chunked.IndexType, ObjectMeta: metav1.ObjectMeta{Labels: labels("x")}, Data: map[string][]byte{"chunk": []byte("x"), "extraChunks": names}},
		"packed":   {Type: chunked.IndexType, ObjectMeta: metav1.ObjectMeta{Labels: labels("9")}, Data: map[string][]byte{"chunk": []byte("x"), "extraChunks": names}},
	} {
		secret.Name = name
		if _, err := w.client.CoreV1().Secrets("system").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.isShown("9 deployed unreadable", "1 deployed", "0 deployed unreadable")
}
