package freeze

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// TestWatch: the watch notices the beginning and the end of a freeze. A missing answer does not
// count as unfrozen.
func TestWatch(t *testing.T) {
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: olmv1alpha1.FreezeConfigMap}})
	refuse := make(chan bool, 1)
	refuse <- true
	client.PrependReactor("list", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		select {
		case <-refuse:
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
		default:
			return false, nil, nil
		}
	})
	w := New(t.Context(), client, "penstock-system")
	until := func(what string, is func(*rollout.Freeze, error) bool) *rollout.Freeze {
		t.Helper()
		for {
			now, err := w.Frozen()
			if is(now, err) {
				return now
			}
			select {
			case <-w.Changed():
			case <-time.After(20 * time.Millisecond): // the first answer causes no event
			case <-t.Context().Done():
				t.Fatalf("waiting for %s: %v %v", what, now, err)
			}
		}
	}
	until("the answer", func(_ *rollout.Freeze, err error) bool { return err == nil })
	configMaps := client.CoreV1().ConfigMaps("penstock-system")
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: olmv1alpha1.FreezeConfigMap},
		Data: map[string]string{"author": "alice", "reason": "the year\nends " + strings.Repeat("x", 300)}}
	if _, err := configMaps.Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got := until("the freeze", func(now *rollout.Freeze, _ error) bool { return now != nil })
	if got.Author != "alice" || !strings.HasPrefix(got.Reason, "the year ends x") || len(got.Reason) > 210 {
		t.Errorf("frozen by %q because %q", got.Author, got.Reason)
	}
	made.Data = nil
	if _, err := configMaps.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until("one without a word", func(now *rollout.Freeze, _ error) bool { return now != nil && now.Author == "somebody" })
	if err := configMaps.Delete(t.Context(), made.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until("its end", func(now *rollout.Freeze, _ error) bool { return now == nil })
}
