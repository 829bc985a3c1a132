package storeguard

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/penstock-project/penstock/pkg/store/identity"
)

// TestMarkCosts: raising the mark takes one request if no other writer has changed the witness. A
// changed witness is read again.
func TestMarkCosts(t *testing.T) {
	host := fake.NewClientset()
	compareAndSwap(host)
	configMaps := host.CoreV1().ConfigMaps("ours")
	mark := identity.Mark{StoreID: "store", HighWater: 5, Format: 1}
	w := &witness{configMaps: configMaps, namespace: "ours"}
	if _, err := w.create(t.Context(), mark); err != nil {
		t.Fatal(err)
	}
	k := newMarkKeeper(nil, w, mark)
	raise := func(to int64) string {
		t.Helper()
		host.ClearActions()
		if err := k.raise(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		var verbs []string
		for _, action := range host.Actions() {
			verbs = append(verbs, action.GetVerb())
		}
		if mark, err := w.read(t.Context()); err != nil || mark.HighWater != k.mark.HighWater {
			t.Errorf("the witness has %+v (%v), and the keeper %+v", mark, err, k.mark)
		}
		return strings.Join(verbs, " ")
	}
	for _, step := range []struct {
		to   int64
		want string
	}{{6, "get update"}, {7, "update"}, {7, ""}, {8, "update"}} {
		if got := raise(step.to); got != step.want {
			t.Errorf("to %d: %q, want %q", step.to, got, step.want)
		}
	}
	if err := configMaps.Delete(t.Context(), WitnessName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := raise(9); got != "update get create get update" {
		t.Errorf("after it was deleted: %q", got)
	}
	// Another store claims to be this cluster's: the witness does not exist any more.
	if err := configMaps.Delete(t.Context(), WitnessName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.create(t.Context(), identity.Mark{StoreID: "another", HighWater: 1, Format: 1}); err != nil {
		t.Fatal(err)
	}
	if err := k.raise(t.Context(), 10); err == nil || errors.Is(err, errChanged) || !strings.Contains(err.Error(), "another") {
		t.Errorf("another store's mark was replaced: %v", err)
	}
}

// compareAndSwap makes the fake host refuse writes of changed objects, as a real host does.
func compareAndSwap(host *fake.Clientset) {
	version := 0
	host.PrependReactor("*", "configmaps", func(action kubetesting.Action) (bool, runtime.Object, error) {
		write, is := action.(kubetesting.CreateAction) // an update action also implements this interface
		if !is {
			return false, nil, nil
		}
		object := write.GetObject().(*corev1.ConfigMap)
		if action.GetVerb() == "update" {
			present, err := host.Tracker().Get(action.GetResource(), action.GetNamespace(), object.Name)
			if err == nil && present.(*corev1.ConfigMap).ResourceVersion != object.ResourceVersion {
				return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), object.Name, errors.New("it was changed"))
			}
		}
		version++
		object.ResourceVersion = strconv.Itoa(version)
		return false, nil, nil
	})
}

func TestMarkIsRaisedWhenTheStoreRests(t *testing.T) {
	begin := time.Unix(0, 0)
	type look struct {
		second    int
		highWater int64
		due       bool
	}
	cases := map[string]struct {
		reason string
		fails  bool
		looks  []look
	}{
		"idle":         {"nothing was written", false, []look{{1, 5, false}, {100, 5, false}}},
		"a burst":      {"once, two seconds after the last write", false, []look{{1, 6, false}, {2, 9, false}, {3, 9, false}, {4, 9, true}, {5, 9, false}, {90, 9, false}}},
		"writes go on": {"every minute at the latest", false, []look{{1, 6, false}, {30, 7, false}, {59, 8, false}, {60, 9, true}, {61, 10, false}, {119, 11, false}, {120, 12, true}}},
		"deletion":     {"the newest record went: the mark stays", false, []look{{1, 4, false}, {100, 4, false}}},
		"host is down": {"tried again after a minute, not every second", true, []look{{1, 6, false}, {3, 6, true}, {4, 6, false}, {30, 6, false}, {63, 6, true}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := pace{raised: 5, at: begin}
			for _, look := range tc.looks {
				now := begin.Add(time.Duration(look.second) * time.Second)
				got := p.due(look.highWater, now)
				if got != look.due {
					t.Fatalf("%s: at second %d with the store at %d due is %t", tc.reason, look.second, look.highWater, got)
				}
				if got {
					p.done(look.highWater, now, !tc.fails)
				}
			}
		})
	}
}
