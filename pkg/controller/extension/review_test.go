package extension

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/note"
)

const installer = "system:serviceaccount:lamps:installer"

// reviewed returns a plane with lamp-1 installed. Later versions are created as a ServiceAccount,
// unless a note holds them.
func reviewed(t *testing.T, notes ...string) *plane {
	t.Helper()
	p := newPlane(t)
	p.exact = true
	p.note(notes...)
	p.publish("1.0.0")
	p.impersonators["alice"] = true
	p.apply(func(object *unstructured.Unstructured) {
		annotate(object, extension.ApprovalAnnotation, extension.ApprovalReviewed)
		_ = unstructured.SetNestedField(object.Object, "installer", "spec", "serviceAccount", "name")
	})
	p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	p.await("it is installed", func() bool { return p.condition("Ready") == "True/Succeeded" })
	p.later()
	return p
}

func (p *plane) note(reasons ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = nil
	for _, reason := range reasons {
		p.notes = append(p.notes, olmv1alpha1.DiffNote{Severity: olmv1alpha1.NoteWarning, Reason: reason, Kind: "Role", Name: "lamp", Message: "gains get on secrets"})
	}
}

func (p *plane) annotation(revision, key string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.revisions[revision].Annotations[key]
}

// later moves the clock beyond the present second.
func (p *plane) later() { p.clock.Step(2 * time.Second) }

func (p *plane) set(key, value string) {
	p.Helper()
	p.apply(func(object *unstructured.Unstructured) { annotate(object, key, value) })
}

// settle waits until a pass has begun and ended after all earlier writes. Passes over one extension
// do not overlap.
func (p *plane) settle() {
	p.Helper()
	for i := range 2 {
		before := p.asked.n()
		p.writing.Lock()
		object, err := p.host.Resource(extension.Resource).Get(p.Context(), "lamp", metav1.GetOptions{})
		if err == nil {
			object.SetLabels(map[string]string{"nudged": fmt.Sprint(i, before)})
			_, err = p.host.Resource(extension.Resource).Update(p.Context(), object, metav1.UpdateOptions{})
		}
		p.writing.Unlock()
		if err != nil {
			p.Fatal(err)
		}
		p.await("a pass asks the catalogs", func() bool { return p.asked.n() > before })
	}
}

// TestReviewed: a version from a catalog is installed automatically if no note holds it. Otherwise
// it is proposed with its reasons. An installation is not reviewed.
func TestReviewed(t *testing.T) {
	p := reviewed(t, note.RightsGained)
	p.note(note.Restart)
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 " + installer)
	p.succeed("lamp-2")
	p.later()
	p.note(note.Restart, note.RightsGained, note.Deleted)
	p.publish("1.0.0", "1.1.0", "1.2.0")
	p.awaitRevisions("2 Active 1.1.0 " + installer + ", 3 Paused 1.2.0 penstock")
	p.mu.Lock()
	held := p.revisions["lamp-3"].Annotations
	p.mu.Unlock()
	if by, why := held[olmv1alpha1.HeldByAnnotation], held[olmv1alpha1.LifecycleReasonAnnotation]; by != "RightsGained,Deleted" ||
		why != "annotation penstock.dev/upgrade-approval is Reviewed, and its diff has notes that hold it: RightsGained: Role lamp: gains get on secrets; Deleted: Role lamp: gains get on secrets" {
		t.Errorf("it is held by %q: %q", by, why)
	}
	p.await("the status says why", func() bool {
		return strings.Contains(p.message("Ready"), "RightsGained: Role lamp: gains get on secrets")
	})
	if available := p.condition("UpgradeAvailable"); available != "True/Proposed" {
		t.Errorf("UpgradeAvailable is %s", available)
	}
	// A newer version without notes replaces it.
	p.later()
	p.note()
	p.publish("1.0.0", "1.1.0", "1.3.0")
	p.awaitRevisions("2 Active 1.1.0 " + installer + ", 4 Active 1.3.0 " + installer)
}

// TestReviewOnce: a held version is not pulled or compared again until the list of notes changes.
func TestReviewOnce(t *testing.T) {
	p := reviewed(t, note.RightsGained)
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
	p.await("the status says it", func() bool { return p.condition("UpgradeAvailable") == "True/Proposed" })
	pulls := p.pulls.n()
	p.set(extension.OnFailureAnnotation, "Rollback")
	p.settle()
	p.mu.Lock()
	compared := p.compared
	p.mu.Unlock()
	if p.pulls.n() != pulls || compared != 1 || p.shown() != "1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock" {
		t.Errorf("%d pulls, want %d; %d diffs: %s", p.pulls.n(), pulls, compared, p.shown())
	}
	p.later()
	p.note(note.RightsGained, note.Image)
	p.set(extension.HoldOnAnnotation, "Image")
	p.await("the proposal says what holds it now", func() bool { return p.revisions["lamp-2"].Annotations[olmv1alpha1.HeldByAnnotation] == note.Image })
	if reason := p.annotation("lamp-2", olmv1alpha1.LifecycleReasonAnnotation); !strings.Contains(reason, "Image: Role lamp") || strings.Contains(reason, note.RightsGained) {
		t.Errorf("it says %q", reason)
	}
	p.settle()
	p.mu.Lock()
	compared = p.compared
	p.mu.Unlock()
	pulls = p.pulls.n()
	p.settle()
	p.mu.Lock()
	again := p.compared
	p.mu.Unlock()
	if p.pulls.n() != pulls || again != compared || p.shown() != "1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock" {
		t.Errorf("%d pulls, want %d; %d diffs, want %d: %s", p.pulls.n(), pulls, again, compared, p.shown())
	}
	p.later()
	p.set(extension.HoldOnAnnotation, "Deleted")
	p.awaitRevisions("1 Active 1.0.0 alice, 3 Active 1.1.0 " + "alice")
}

// TestReviewWithoutIdentity: a held version keeps its reasons if no identity remains for revisions.
// It loses them if the policy changes.
func TestReviewWithoutIdentity(t *testing.T) {
	p := reviewed(t, note.RightsGained)
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
	reason := p.annotation("lamp-2", olmv1alpha1.LifecycleReasonAnnotation)
	p.mu.Lock()
	p.impersonators["alice"] = false
	p.mu.Unlock()
	p.settle()
	if by := p.annotation("lamp-2", olmv1alpha1.HeldByAnnotation); by != note.RightsGained || p.annotation("lamp-2", olmv1alpha1.LifecycleReasonAnnotation) != reason {
		t.Errorf("it is held by %q: %q", by, p.annotation("lamp-2", olmv1alpha1.LifecycleReasonAnnotation))
	}
	p.later()
	p.set(extension.ApprovalAnnotation, extension.ApprovalManual)
	p.await("no note holds it", func() bool { return p.revisions["lamp-2"].Annotations[olmv1alpha1.HeldByAnnotation] == "" })
	if shown := p.shown(); shown != "1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock" {
		t.Errorf("there is %s", shown)
	}
}

// TestReviewOfWritten: the review covers the written content, even if the rendering was dropped
// meanwhile and the tag has moved.
func TestReviewOfWritten(t *testing.T) {
	p := reviewed(t)
	p.mu.Lock()
	p.meanwhile = func() {
		p.note(note.RightsGained)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.images["r.example/lamp:v1.1.0"] = bundleOf("lamp", "1.1.0", "another content")
		p.meanwhile = nil
		p.running.rendered.forget("lamp")
	}
	p.mu.Unlock()
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
}

// TestChosen: only the version that a write of spec.source chose is exempt.
func TestChosen(t *testing.T) {
	const held = "1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock"
	for name, tc := range map[string]struct {
		reason string
		// before is written before the catalog has 1.1.0, after when it has it.
		before, after func(*plane)
		want          string
	}{
		"Catalog":      {"nobody wrote anything", nil, nil, held},
		"Pinned":       {"somebody asks for this version", nil, func(p *plane) { p.apply(version("1.1.0")) }, "1 Active 1.0.0 alice, 3 Active 1.1.0 alice"},
		"Widened":      {"somebody widens the range", func(p *plane) { p.apply(version("<1.1.0")) }, func(p *plane) { p.apply(version("<2.0.0")) }, "1 Active 1.0.0 alice, 2 Active 1.1.0 alice"},
		"PinnedBefore": {"the catalog had nothing when it was written", func(p *plane) { p.apply(version("1.1.0")) }, nil, held},
		"Renewed":      {"the same is written again", nil, func(p *plane) { p.apply(nil) }, held},
		"Annotated":    {"the source stays", nil, func(p *plane) { p.set(extension.OnFailureAnnotation, "Rollback") }, held},
		"RobotBefore":  {"the source stays", func(p *plane) { p.set(extension.OnFailureAnnotation, "Rollback") }, func(p *plane) { p.apply(nil) }, held},
		"Deadline": {"the spec changes, and its source stays", nil, func(p *plane) {
			p.apply(func(object *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(object.Object, int64(30), "spec", "progressDeadlineMinutes")
			})
		}, held},
	} {
		t.Run(name, func(t *testing.T) {
			p := reviewed(t, note.RightsGained)
			if tc.before != nil {
				tc.before(p)
				p.settle()
				p.later()
			}
			p.publish("1.0.0", "1.1.0")
			if name != "Widened" {
				p.awaitRevisions(held)
			}
			p.later()
			if tc.after != nil {
				tc.after(p)
				p.settle()
			}
			p.awaitRevisions(tc.want)
		})
	}
}

func anyVersion(object *unstructured.Unstructured) {
	unstructured.RemoveNestedField(object.Object, "spec", "source", "catalog", "version")
}

// TestReverted: a source that was changed and reverted chooses no held version, unless another
// version was installed meanwhile.
func TestReverted(t *testing.T) {
	p := reviewed(t, note.RightsGained)
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
	p.later()
	p.apply(version("1.0.0"))
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.later()
	p.apply(anyVersion)
	p.awaitRevisions("1 Active 1.0.0 alice, 3 Paused 1.1.0 penstock")
	p.later()
	p.apply(version("1.1.0"))
	p.awaitRevisions("1 Active 1.0.0 alice, 4 Active 1.1.0 alice")
	p.succeed("lamp-4")
	p.publish("1.0.0", "1.1.0", "1.2.0")
	p.settle()
	p.later()
	p.apply(anyVersion)
	p.awaitRevisions("4 Active 1.1.0 alice, 5 Active 1.2.0 alice")
}

// TestChosenOnce: a choice decides one version. A version that a catalog offers later is reviewed,
// and an unused stamp decides nothing by then.
func TestChosenOnce(t *testing.T) {
	p := reviewed(t, note.RightsGained)
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
	p.later()
	p.mu.Lock()
	p.denied["alice"] = true
	p.mu.Unlock()
	p.apply(version(">=1.1.0"))
	p.await("alice cannot", func() bool { return p.condition("Ready") == "False/Denied" })
	p.later()
	p.publish("1.0.0", "1.2.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 3 Paused 1.2.0 penstock")
}

// TestConfigured: a write that keeps the installed image is not reviewed, for any change.
func TestConfigured(t *testing.T) {
	p := reviewed(t, note.RightsGained)
	p.set(extension.CollisionProtectionAnnotation, "None")
	p.set(extension.YieldAnnotation, "[{selector: {groupKind: {group: apps, kind: Deployment}}, fields: [spec.replicas]}]")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.0.0 alice")
}

// TestReviewWindow: a version without held notes waits for the window. A held version is proposed
// while the window is closed.
func TestReviewWindow(t *testing.T) {
	p := reviewed(t)
	p.windows.set(always)
	p.publish("1.0.0", "1.1.0")
	p.await("the upgrade waits", func() bool { return p.condition("UpgradeAvailable") == "True/WaitingForWindow" })
	p.windows.set(nil)
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 " + installer)

	p = reviewed(t, note.RightsGained)
	p.windows.set(always)
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
}

// TestHoldOnUnreadable: an invalid list of notes lets nothing through.
func TestHoldOnUnreadable(t *testing.T) {
	p := reviewed(t)
	p.set(extension.HoldOnAnnotation, "Rights")
	p.publish("1.0.0", "1.1.0")
	p.await("it says so", func() bool {
		return strings.Contains(p.message("Ready"), `annotation penstock.dev/hold-on: "Rights" is no reason of a note`)
	})
	if shown := p.shown(); shown != "1 Active 1.0.0 alice" {
		t.Errorf("there is %s", shown)
	}
}
