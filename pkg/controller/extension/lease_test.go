package extension

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/penstock-project/penstock/pkg/extension"
)

// TestLeases: a lease counts only in namespaces where operator-controller is installed. Users see
// one event about it on their extensions.
func TestLeases(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	c := p.watching()
	lease := func(namespace string) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: extension.OperatorControllerLease, Namespace: namespace}}
		if _, err := p.leases.CoordinationV1().Leases(namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	lease("team")
	p.await("it is seen", func() bool { return c.misplacedLease() == "team/"+extension.OperatorControllerLease })
	if c.other() != otherAbsent {
		t.Error("a lease of a team stops ClusterExtensions")
	}
	for _, namespace := range extension.OperatorControllerNamespaces() {
		lease(namespace)
		p.await("operator-controller is there", func() bool { return c.other() == otherThere })
		p.apply(nil)
		p.await("it is known", func() bool { object, _ := c.find("lamp"); return object != nil })
		for range 3 {
			c.queue.Add("lamp")
			p.pass(c)
		}
		if shown := p.shown(); shown != "" || p.condition("Progressing") != "" {
			t.Errorf("it was not left alone: %s, %s", shown, p.condition("Progressing"))
		}
		var events []string
		for told := c.Events.(*record.FakeRecorder).Events; len(told) > 0; {
			events = append(events, <-told)
		}
		if len(events) != 1 || !strings.Contains(events[0], "LeftAlone") || !strings.Contains(events[0], extension.OperatorControllerLease) {
			t.Errorf("told: %q", events)
		}
		if err := p.leases.CoordinationV1().Leases(namespace).Delete(t.Context(), extension.OperatorControllerLease, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		p.await("operator-controller has gone", func() bool { return c.other() == otherAbsent })
		c.forgetLeftAlone("lamp")
	}
	p.apply(nil)
	for p.shown() == "" {
		p.pass(c)
	}
	p.awaitRevisions("1 Active 1.0.0 alice")
}
