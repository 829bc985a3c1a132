package chartkind

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/text"
)

// accepted waits until the condition Accepted of a ChartKind has a status and a reason.
func (p *plane) accepted(name, status string, reason maker.Reason) {
	p.Helper()
	p.until(name+" is "+string(reason), func() bool {
		found, err := p.host.Tracker().Get(chartkind.Resource, "", name)
		return err == nil && says(chartkind.ConditionAccepted, status, string(reason))(found.(*unstructured.Unstructured))
	}, func() any {
		found, err := p.host.Tracker().Get(chartkind.Resource, "", name)
		if err != nil {
			return err
		}
		return found.(*unstructured.Unstructured).Object
	})
}

// TestKindTaken: two ChartKinds of one kind would both install each custom resource. Only the older
// one does. When it is deleted, the other ChartKind takes over the existing installations.
func TestKindTaken(t *testing.T) {
	p := newPlane(t)
	p.kindOf("b-first", time.Now().Add(-time.Hour), nil)
	p.kindOf("a-second", time.Now(), func(spec map[string]any) { spec["extension"] = "'second-' + object.metadata.name" })
	p.lamp("hall", 1)
	p.run()
	p.accepted("b-first", "True", reasonAccepted)
	p.accepted("a-second", "False", reasonTaken)
	p.await("hall", "its revision is rolled out", says(report.Deployed, "Unknown", report.ReasonReconciling))
	p.deployment("hall", "True")
	p.roll("lamp-house-hall-1", olmv1alpha1.ConditionSucceeded, "RolledOut")
	p.settled("hall")
	if made, _, _ := p.counts(); made != 1 {
		t.Errorf("%d revisions of one Lamp: %v", made, p.made)
	}
	p.mu.Lock()
	err := p.host.Tracker().Delete(chartkind.Resource, "", "b-first")
	p.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	p.accepted("a-second", "True", reasonAccepted)
}

// TestKindKept: if two ChartKinds were created in the same second, the accepted ChartKind keeps the
// kind, also after a change of the leader.
func TestKindKept(t *testing.T) {
	p, at := newPlane(t), time.Now()
	p.kindOf("b-first", at, nil)
	stop := p.run()
	p.accepted("b-first", "True", reasonAccepted)
	p.kindOf("a-second", at, nil)
	p.accepted("a-second", "False", reasonTaken)
	stop()
	p.run()
	p.lamp("hall", 1)
	p.until("its revision is made", func() bool { return len(p.made) == 1 }, func() any { return p.made })
	p.accepted("b-first", "True", reasonAccepted)
	p.accepted("a-second", "False", reasonTaken)
}

// renamed makes the name of the extension depend on a label of the Lamp.
func renamed(spec map[string]any) {
	spec["extension"] = "'lamp-house-' + object.metadata.labels.room"
}

func (p *plane) label(name, room string) {
	p.store(lamps, "Lamp", name, func(object *unstructured.Unstructured) {
		object.SetLabels(map[string]string{"room": room})
		if room == "" {
			object.SetLabels(nil)
		}
	})
}

// installedAs returns a plane with a Lamp that is installed under another extension name.
func installedAs(t *testing.T) *plane {
	p := newPlane(t)
	p.kind(renamed)
	p.lamp("hall", 1)
	p.label("hall", "hall")
	p.stop = p.run()
	p.await("hall", "its revision is rolled out", says(report.Deployed, "Unknown", report.ReasonReconciling))
	p.deployment("hall", "True")
	p.roll("lamp-house-hall-1", olmv1alpha1.ConditionSucceeded, "RolledOut")
	p.settled("hall")
	return p
}

// TestFormerName: an extension that was installed when names had no digest keeps its name, also
// after a restart. No revision with the new name is created.
func TestFormerName(t *testing.T) {
	p := installed(t, nil)
	p.stop()
	if err := p.host.Tracker().Delete(chartkind.Resource, "", "lamp"); err != nil {
		t.Fatal(err)
	}
	p.kind(func(spec map[string]any) { delete(spec, "extension") })
	p.stop = p.run()
	p.deployment("hall", "False")
	p.await("hall", "its workload is not ready", says(report.Ready, "False", report.ReasonWorkloadsNotReady))
	p.deployment("hall", "True")
	p.lamp("hall", 2)
	p.until("its next revision has the same name", func() bool { return p.revisions["lamp-house-hall-2"] != nil }, func() any { return p.made })
	p.roll("lamp-house-hall-2", olmv1alpha1.ConditionSucceeded, "RolledOut")
	p.settled("hall")
	p.lamp("other", 1)
	p.until("a new one has a digest", func() bool {
		return p.revisions[text.Name(52, "lamp-house-other", lamps.Group, "Lamp", "house", "other")+"-3"] != nil
	}, func() any { return slices.Collect(maps.Keys(p.revisions)) })
}

// TestRenamed: a custom resource whose extension would have a new name is not installed a second
// time. Otherwise the first installation would be left behind. Its status is still updated.
func TestRenamed(t *testing.T) {
	p := installedAs(t)
	for _, restarted := range []bool{false, true} {
		if restarted {
			p.stop()
			p.stop = p.run()
		}
		p.label("hall", "kitchen")
		found := p.await("hall", "it is said", says(report.Irreconcilable, "True", report.ReasonReconcileError))
		const want = "it is installed as extension lamp-house-hall, but its extension would be lamp-house-kitchen now"
		if i := slices.IndexFunc(report.StatusOf(found).Conditions, func(one metav1.Condition) bool { return strings.HasPrefix(one.Message, want) }); i < 0 {
			t.Errorf("want %q in %+v", want, report.StatusOf(found).Conditions)
		}
		p.deployment("hall", "False")
		p.await("hall", "its workload is not ready", says(report.Ready, "False", report.ReasonWorkloadsNotReady))
		p.deployment("hall", "True")
		p.await("hall", "its workload is ready", says(report.Ready, "True", report.ReasonWorkloadsReady))
		p.label("hall", "hall")
		p.settled("hall")
		if made, _, _ := p.counts(); made != 1 {
			t.Errorf("%d revisions: %v", made, p.made)
		}
	}
}

// TestDeletionOfRenamed: the deletion of a custom resource deletes its installation, even if the
// name is unknown or has changed.
func TestDeletionOfRenamed(t *testing.T) {
	for _, room := range []string{"", "kitchen"} {
		p := installedAs(t)
		p.label("hall", room)
		p.await("hall", "it is said", says(report.Irreconcilable, "True", report.ReasonReconcileError))
		p.store(lamps, "Lamp", "hall", func(object *unstructured.Unstructured) {
			object.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
		})
		p.await("hall", "it is gone", func(object *unstructured.Unstructured) bool { return object == nil })
		p.mu.Lock()
		if len(p.revisions) != 0 {
			t.Errorf("with the label %q: left behind: %v", room, p.revisions)
		}
		p.mu.Unlock()
	}
}

// TestTogether: after a gap of the watch, a change of spec and Penstock's own condition can arrive
// in one event. It still causes a pass.
func TestTogether(t *testing.T) {
	p := installed(t, nil)
	p.store(lamps, "Lamp", "hall", func(object *unstructured.Unstructured) {
		object.SetGeneration(object.GetGeneration() + 1)
		object.Object["spec"] = map[string]any{"size": int64(2)}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, one := range conditions {
			if fields := one.(map[string]any); fields["type"] == report.Ready {
				fields["status"], fields["reason"] = "False", report.ReasonWorkloadsNotReady
			}
		}
		_ = unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions")
	})
	p.until("the next revision is made", func() bool { return len(p.made) == 2 }, func() any { return p.made })
	p.roll("lamp-house-hall-2", olmv1alpha1.ConditionSucceeded, "RolledOut")
	p.settled("hall")
}

// TestComesBack: a custom resource that was deleted by force or restored from a backup has a new
// uid. It finds the existing installation, because no other object can have its name.
func TestComesBack(t *testing.T) {
	p := installed(t, nil)
	p.mu.Lock()
	err := p.host.Tracker().Delete(lamps, "house", "hall")
	p.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	p.store(lamps, "Lamp", "hall", func(object *unstructured.Unstructured) {
		object.SetUID("another")
		object.Object["spec"] = map[string]any{"size": int64(1)}
	})
	p.settled("hall")
	p.lamp("hall", 2)
	p.until("it makes the next revision", func() bool { return len(p.made) == 2 }, func() any { return p.made })
	p.roll("lamp-house-hall-2", olmv1alpha1.ConditionSucceeded, "RolledOut")
	p.settled("hall")
	p.store(lamps, "Lamp", "hall", func(object *unstructured.Unstructured) {
		object.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	})
	p.await("hall", "it is gone", func(object *unstructured.Unstructured) bool { return object == nil })
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.revisions) != 0 {
		t.Errorf("left behind: %v", p.revisions)
	}
}

// TestRightsLost: the ChartKind names the rights that a ServiceAccount has lost, and continues when
// it has them again.
func TestRightsLost(t *testing.T) {
	p := installed(t, nil)
	lose := func(lost bool) {
		p.mu.Lock()
		p.lacks["system:serviceaccount:lights:operator"], p.forbidden = lost, lost
		p.mu.Unlock()
	}
	p.accepted("lamp", "True", reasonAccepted)
	lose(true)
	p.deployment("hall", "False")
	p.accepted("lamp", "False", reasonDenied)
	lose(false)
	p.accepted("lamp", "True", reasonAccepted)
	p.await("hall", "it is told again", says(report.Ready, "False", report.ReasonWorkloadsNotReady))
}

// TestWholeNumbers: a chart gets large integers as integers. Otherwise a template would print a
// million as 1e+06, which consumers would refuse.
func TestWholeNumbers(t *testing.T) {
	p := newPlane(t)
	p.kind(nil)
	p.lamp("hall", 104857600)
	p.run()
	p.until("its revision is made", func() bool { return len(p.made) == 1 }, func() any { return p.made })
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, objects := range p.packs {
		if got := string(objects[0].JSON); !strings.Contains(got, `"size":"104857600"`) {
			t.Error(got)
		}
	}
}

// TestAccountGone: a ChartKind whose ServiceAccount was deleted reports that, with the name of the
// account. It can be deleted, because the engine releases its custom resources.
func TestAccountGone(t *testing.T) {
	for name, since := range map[string]time.Duration{"served": 0, "just deleted": time.Second, "deleted": leaveAfter + time.Minute} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			account := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{lamps: "LampList"})
			p.account = account
			p.lamp("hall", 1)
			hall := func() *unstructured.Unstructured {
				found, err := p.host.Tracker().Get(lamps, "house", "hall")
				if err != nil {
					t.Fatal(err)
				}
				return found.(*unstructured.Unstructured)
			}
			served := hall().DeepCopy()
			served.SetFinalizers([]string{chartkind.Finalizer})
			if err := p.host.Tracker().Update(lamps, served, "house"); err != nil {
				t.Fatal(err)
			}
			account.PrependReactor("list", lamps.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewServiceUnavailable("there is no ServiceAccount lights/operator")
			})
			p.kindOf("lamps", time.Now().Add(-time.Hour), nil)
			if since > 0 {
				found, err := p.host.Tracker().Get(chartkind.Resource, "", "lamps")
				if err != nil {
					t.Fatal(err)
				}
				object, deleted := found.(*unstructured.Unstructured).DeepCopy(), metav1.NewTime(time.Now().Add(-since))
				object.SetDeletionTimestamp(&deleted)
				object.SetFinalizers([]string{chartkind.Finalizer})
				if err := p.host.Tracker().Update(chartkind.Resource, object, ""); err != nil {
					t.Fatal(err)
				}
			}
			p.run()
			stored := func() *unstructured.Unstructured {
				found, err := p.host.Tracker().Get(chartkind.Resource, "", "lamps")
				if err != nil {
					t.Fatal(err)
				}
				return found.(*unstructured.Unstructured)
			}
			message := func() string {
				conditions, _, _ := unstructured.NestedSlice(stored().Object, "status", "conditions")
				if len(conditions) == 0 {
					return ""
				}
				said, _ := conditions[0].(map[string]any)["message"].(string)
				return said
			}
			want := map[string]string{"served": "nobody serves lamps.lights.example.com", "just deleted": "removing the finalizer " + chartkind.Finalizer}[name]
			p.until(name, func() bool {
				if name == "deleted" {
					return len(stored().GetFinalizers()) == 0 && len(hall().GetFinalizers()) == 0
				}
				return strings.Contains(message(), want) && strings.Contains(message(), "ServiceAccount lights/operator")
			}, func() any { return stored().Object })
		})
	}
}
