package extension

import (
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/rollout"
)

type windows struct {
	mu     sync.Mutex
	closed func(labels map[string]string) bool
	told   []func()
}

func (w *windows) Decide(labels map[string]string) maintenancewindow.Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed == nil || !w.closed(labels) {
		return maintenancewindow.Decision{Open: true}
	}
	return maintenancewindow.Decision{By: "nights", Why: "MaintenanceWindow nights is closed", Opens: time.Date(2026, 11, 28, 21, 0, 0, 0, time.UTC)}
}

func (w *windows) OnChange(tell func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, tell)
}

func (w *windows) set(closed func(labels map[string]string) bool) {
	w.mu.Lock()
	w.closed = closed
	told := w.told
	w.mu.Unlock()
	for _, tell := range told {
		tell()
	}
}

func always(map[string]string) bool { return true }

// automatic returns a plane with lamp-1 installed. Later versions are created as a ServiceAccount.
func automatic(t *testing.T) *plane {
	p := newPlane(t)
	p.publish("1.0.0")
	p.impersonators["alice"] = true
	p.apply(func(object *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(object.Object, "installer", "spec", "serviceAccount", "name")
	})
	p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	p.await("it is installed", func() bool { return p.condition("Ready") == "True/Succeeded" })
	return p
}

// TestWaitsForWindow: a version from a catalog waits for the window, and the status of the
// installed version stays healthy. The version is installed when the window opens.
func TestWaitsForWindow(t *testing.T) {
	p := automatic(t)
	p.windows.set(always)
	p.publish("1.0.0", "1.1.0")
	p.await("the upgrade waits", func() bool { return p.condition("UpgradeAvailable") == "True/WaitingForWindow" })
	if ready, progressing := p.condition("Ready"), p.condition("Progressing"); ready != "True/Succeeded" || progressing != "True/Succeeded" {
		t.Errorf("Ready is %s and Progressing is %s", ready, progressing)
	}
	if message := p.message("Ready"); !strings.Contains(message, "an upgrade to 1.1.0 waits: MaintenanceWindow nights is closed; it may begin at 2026-11-28T21:00:00Z") {
		t.Errorf("it says %q", message)
	}
	p.windows.set(nil)
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 system:serviceaccount:lamps:installer")
}

// TestOwnWriteInWindow: a user's own write and a proposal do not wait for a window.
func TestOwnWriteInWindow(t *testing.T) {
	p := automatic(t)
	p.windows.set(always)
	p.apply(version("1.1.0"))
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 alice")
	p.succeed("lamp-2")
	p.apply(func(object *unstructured.Unstructured) {
		version(">=1.1.0")(object)
		object.SetAnnotations(map[string]string{extension.ApprovalAnnotation: extension.ApprovalManual})
	})
	p.publish("1.0.0", "1.1.0", "1.2.0")
	p.awaitRevisions("2 Active 1.1.0 alice, 3 Paused 1.2.0 penstock")
}

// TestWindowCloses: a window that closes during the rendering holds the write.
func TestWindowCloses(t *testing.T) {
	p := automatic(t)
	var asked sync.Once
	p.windows.set(func(map[string]string) bool {
		open := false
		asked.Do(func() { open = true })
		return !open
	})
	p.publish("1.0.0", "1.1.0")
	p.await("the upgrade waits", func() bool { return p.condition("UpgradeAvailable") == "True/WaitingForWindow" })
	if pulls := p.pulls.n(); pulls < 2 {
		t.Errorf("nothing was pulled: the first answer does not count")
	}
	if shown := p.shown(); shown != "1 Active 1.0.0 alice" {
		t.Errorf("there is %s", shown)
	}
	p.windows.set(nil)
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 system:serviceaccount:lamps:installer")
}

// TestWaitsForFreeze: the window of an upgrade opens during a freeze. The upgrade does not begin
// after the freeze if the window is closed again. A user's own write does not wait here: the engine
// holds its rollout.
func TestWaitsForFreeze(t *testing.T) {
	p := automatic(t)
	p.freezes.Store(&rollout.Freeze{Author: "carol", Reason: "the year ends"})
	p.publish("1.0.0", "1.1.0")
	p.await("the upgrade waits", func() bool {
		return p.condition("UpgradeAvailable") == "True/WaitingForWindow" && strings.Contains(p.message("Ready"), "frozen by carol: the year ends")
	})
	p.windows.set(always)
	p.freezes.Store(nil)
	p.settle()
	p.await("it waits for the window", func() bool { return strings.Contains(p.message("Ready"), "MaintenanceWindow nights is closed") })
	if shown := p.shown(); shown != "1 Active 1.0.0 alice" {
		t.Errorf("there is %s", shown)
	}
	p.freezes.Store(&rollout.Freeze{Author: "carol", Reason: "the year ends"})
	p.apply(version("1.1.0"))
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 alice")
}
