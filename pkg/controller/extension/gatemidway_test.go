package extension

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// installedByEngine returns a plane with lamp-1, which has succeeded, and without a process.
func installedByEngine(t *testing.T) *plane {
	t.Helper()
	p := withHelm(t)
	p.publish("1.0.0")
	p.apply(nil)
	stop := p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	p.await("it is installed", func() bool { return p.condition("Progressing") == "True/Succeeded" })
	stop()
	return p
}

func (p *plane) settledByHelm() bool {
	return p.isHelms() && p.condition("Installed") == "True/Succeeded" && p.condition("Progressing") == "True/Succeeded"
}

// rollBack creates the revision of a rollback, like Penstock's API.
func (p *plane) rollBack(to string) (name string) {
	p.mu.Lock()
	number := p.head.Highest + 1
	name = fmt.Sprintf("lamp-%d", number)
	back := p.revisions[to].DeepCopy()
	back.Name, back.UID, back.Spec.Revision, back.Spec.LifecycleState = name, "uid-of-"+back.UID, number, olmv1alpha1.LifecycleStateActive
	back.Status = olmv1alpha1.ClusterExtensionRevisionStatus{}
	delete(back.Annotations, olmv1alpha1.HandedToHelmAnnotation)
	back.Annotations[olmv1alpha1.RollbackOfAnnotation] = to
	p.head.Highest, p.head.Hold = number, &chain.Hold{Revision: number, UID: back.UID, OwnerGeneration: 9}
	p.mu.Unlock()
	p.releases.copies(name, to)
	p.put(back)
	return name
}

func (r *releases) object(revision, name string) {
	r.keep(revision, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"lamps"}}`, name))
}

// has reports whether the deployed revision of the release has an object.
func (r *releases) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if one.Status == "deployed" {
			return strings.Contains(one.Manifest, fmt.Sprintf(`"name":%q`, name))
		}
	}
	return false
}

// TestBackMidway: a revision that came back from Helm returns to Helm before it has succeeded. Its
// release still has its objects, and is not stored again.
func TestBackMidway(t *testing.T) {
	p := installedByEngine(t)
	p.leads(true, -1, p.isHelms)
	p.leads(false, -1, func() bool { return p.revisions["lamp-2"] != nil })
	p.leads(true, -1, p.settledByHelm)
	if got := p.releases.deployed(); got != "1 1.0.0" || p.releases.applied.n() > 0 {
		t.Errorf("the release is %q, and Helm applied %d", got, p.releases.applied.n())
	}
}

// TestFirstByHelm: the gate is switched off during the rollout of the first revision. Helm finishes
// the rollout. Until then nothing is installed.
func TestFirstByHelm(t *testing.T) {
	p := withHelm(t)
	p.publish("1.0.0")
	p.apply(nil)
	stop := p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	stop()
	p.releases.mu.Lock()
	p.releases.failing = fmt.Errorf("no quota")
	p.releases.mu.Unlock()
	p.leads(true, -1, func() bool { return p.isHanded("lamp-1") && strings.Contains(p.message("Ready"), "no quota") })
	if got := p.condition("Installed"); strings.HasPrefix(got, "True") {
		t.Errorf("Helm has applied nothing yet, and Installed is %s", got)
	}
	p.releases.mu.Lock()
	p.releases.failing = nil
	p.releases.mu.Unlock()
	p.leads(true, -1, p.settledByHelm)
	if got := p.releases.deployed(); got != "2 1.0.0" || p.releases.applied.n() != 1 {
		t.Errorf("the release is %q, and Helm applied %d", got, p.releases.applied.n())
	}
}

// TestUnfinishedEdited: Helm does not finish a rollout whose content is no longer desired.
func TestUnfinishedEdited(t *testing.T) {
	p := installedByEngine(t)
	p.apply(version("1.1.0"))
	p.publish("1.0.0", "1.1.0")
	p.leads(false, -1, func() bool { return p.revisions["lamp-2"] != nil })
	p.releases.object("lamp-2", "begun")
	p.apply(version("1.0.0"))
	p.leads(true, -1, p.settledByHelm)
	if got := p.releases.deployed(); got != "2 1.0.0" || p.releases.applied.n() != 1 || p.releases.has("begun") {
		t.Errorf("the release is %q, and Helm applied %d", got, p.releases.applied.n())
	}
}

// TestRollbackWhileByHelm: a rollback by a user while Helm has the objects is applied by Helm, and
// holds. Helm deletes the objects that the older content lacks.
func TestRollbackWhileByHelm(t *testing.T) {
	p := installedByEngine(t)
	p.leads(true, -1, p.isHelms)
	p.apply(version("1.1.0"))
	p.publish("1.0.0", "1.1.0")
	p.leads(true, -1, func() bool {
		return p.releases.deployed() == "2 1.1.0" && p.condition("Progressing") == "True/Succeeded"
	})
	p.releases.mu.Lock()
	p.releases.all[0].Manifest += `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"newer","namespace":"lamps"}}` + "\n"
	p.releases.mu.Unlock()
	back := p.rollBack("lamp-1")
	p.leads(true, -1, func() bool {
		return p.isHanded(back) && p.condition("Ready") == "False/Held" && p.releases.applied.n() == 2
	})
	if got := p.releases.deployed(); !strings.HasSuffix(got, " 1.0.0") || p.releases.has("newer") {
		t.Errorf("after the rollback the release is %q", got)
	}
	p.releases.mu.Lock()
	before := p.releases.all[1]
	p.releases.mu.Unlock()
	if !strings.Contains(before.Manifest, `"newer"`) {
		t.Errorf("Helm does not know of what it has brought, and would never delete it: %+v", before)
	}
}

// TestPausedByHelm: Helm does not continue a paused rollout until it is resumed.
func TestPausedByHelm(t *testing.T) {
	p := installedByEngine(t)
	p.apply(version("1.1.0"))
	p.publish("1.0.0", "1.1.0")
	p.leads(false, -1, func() bool { return p.revisions["lamp-2"] != nil })
	state := func(to olmv1alpha1.LifecycleState) {
		p.change("lamp-2", func(r *olmv1alpha1.ClusterExtensionRevision) { r.Spec.LifecycleState = to; r.Generation++ })
	}
	state(olmv1alpha1.LifecycleStatePaused)
	p.leads(true, -1, func() bool {
		return p.isHanded("lamp-2") && p.condition("Ready") == "False/Held" && strings.Contains(p.message("Ready"), "lamp-2 is paused")
	})
	if p.releases.applied.n() > 0 {
		t.Error("Helm went on with it")
	}
	state(olmv1alpha1.LifecycleStateActive)
	p.leads(true, -1, p.settledByHelm)
	if got := p.releases.deployed(); !strings.HasSuffix(got, " 1.1.0") || p.releases.applied.n() != 1 {
		t.Errorf("the release is %q, and Helm applied %d", got, p.releases.applied.n())
	}
}

// TestOrphanByHelm: the teardown policy can be changed while Helm has the objects.
func TestOrphanByHelm(t *testing.T) {
	p := installedByEngine(t)
	p.leads(true, -1, p.settledByHelm)
	for i, policy := range []string{"Orphan", "Delete"} {
		p.apply(func(object *unstructured.Unstructured) { annotate(object, extension.TeardownPolicyAnnotation, policy) })
		if policy == "Delete" {
			// The right to write the extension does not include the right to delete objects that
			// must be kept.
			p.lacks["delete"], p.lacks["bypass"] = true, true
			p.leads(true, -1, func() bool {
				return p.condition("Ready") == "False/Denied" && strings.Contains(p.message("Ready"), "alice cannot delete")
			})
			p.lacks["delete"], p.lacks["bypass"] = false, false
		}
		p.leads(true, -1, func() bool { return p.settledByHelm() && p.releases.applied.n() == i+1 })
		if p.releases.last.Keep != (policy == "Orphan") || !strings.HasSuffix(p.releases.deployed(), " 1.0.0") {
			t.Errorf("with %s Helm was asked for %+v", policy, p.releases.last)
		}
	}
	p.leads(true, -1, p.settledByHelm)
	if p.releases.applied.n() != 2 {
		t.Errorf("Helm applied %d times", p.releases.applied.n())
	}
}

// TestReleaseLeft: the process dies between the record of a release and the first mark, and then
// the gate is on. The release is removed, or labelled if releases are kept. Its content is never
// adopted.
func TestReleaseLeft(t *testing.T) {
	for name, keep := range map[string]bool{"removed": false, "kept": true} {
		t.Run(name, func(t *testing.T) {
			p := installedByEngine(t)
			p.keepReleases = keep
			p.leads(true, 1, func() bool { return false })
			if got := p.releases.deployed(); got != "1 1.0.0" || p.isHanded("lamp-1") {
				t.Fatalf("the release is %q: the process did not die where it should", got)
			}
			p.apply(version("1.1.0"))
			p.publish("1.0.0", "1.1.0")
			p.leads(false, -1, func() bool { return p.revisions["lamp-2"] != nil })
			p.succeed("lamp-2")
			p.leads(false, -1, func() bool {
				return p.condition("Progressing") == "True/Succeeded" && (len(p.releases.all) == 0 || keep && p.releases.superseded.n() > 0)
			})
			// A user deletes all revisions: the present desired content is installed, not the
			// earlier content.
			p.mu.Lock()
			clear(p.revisions)
			p.mu.Unlock()
			p.apply(version(">=1.1.0"))
			p.leads(false, -1, func() bool { return p.revisions["lamp-3"] != nil })
			if got := p.shown(); got != "3 Active 1.1.0 alice" {
				t.Errorf("the revisions are %s", got)
			}
		})
	}
}

// TestReleaseLeftAgain: a release that was recorded, labelled and never handed over is not used
// again. The next move has a new release, and its content comes back.
func TestReleaseLeftAgain(t *testing.T) {
	p := installedByEngine(t)
	p.keepReleases = true
	p.leads(true, 1, func() bool { return false })
	p.leads(false, -1, func() bool { return p.releases.superseded.n() == 1 })
	p.leads(true, -1, p.settledByHelm)
	p.leads(false, -1, func() bool { return p.revisions["lamp-2"] != nil })
	p.succeed("lamp-2")
	p.leads(false, -1, func() bool {
		return p.condition("Ready") == "True/Succeeded" && p.revisions["lamp-2"].Annotations[olmv1alpha1.ReleaseSecretsAnnotation] == "kept"
	})
	if got := p.releases.deployed(); got != "2 1.0.0" || p.releases.applied.n() > 0 {
		t.Errorf("the release is %q, and Helm applied %d", got, p.releases.applied.n())
	}
}

// TestReleaseOfOthers: a release that another program stored for the extension is not touched.
func TestReleaseOfOthers(t *testing.T) {
	p := installedByEngine(t)
	p.leads(true, 1, func() bool { return false })
	p.releases.mu.Lock()
	p.releases.all[0].Labels = map[string]string{olmv1alpha1.VersionAnnotation: "1.0.0"}
	p.releases.mu.Unlock()
	p.apply(version("1.1.0"))
	p.publish("1.0.0", "1.1.0")
	p.leads(false, -1, func() bool { return p.revisions["lamp-2"] != nil })
	p.succeed("lamp-2")
	p.leads(false, -1, func() bool { return p.condition("Progressing") == "True/Succeeded" })
	if got := p.releases.deployed(); got != "1 1.0.0" {
		t.Errorf("the release is %q", got)
	}
}

// TestNoReleases: Penstock does not read the release of an extension without a release.
func TestNoReleases(t *testing.T) {
	p := withHelm(t)
	p.publish("1.0.0")
	p.apply(nil)
	p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.releases.mu.Lock()
	defer p.releases.mu.Unlock()
	if p.releases.asked > 0 {
		t.Errorf("the release was asked for %d times", p.releases.asked)
	}
}

// isHanded reports whether a revision was handed to Helm, and the engine has released its objects.
func (p *plane) isHanded(name string) bool {
	r := p.revisions[name]
	return r != nil && rev.IsHanded(r) && metav1.GetControllerOf(r) != nil
}

// TestFrozenHandover: no handover happens in a frozen cluster. It happens after the freeze.
func TestFrozenHandover(t *testing.T) {
	p := installedByEngine(t)
	p.releases.frozen = &rollout.Freeze{Author: "alice", Reason: "the year ends"}
	p.leads(true, -1, func() bool { return strings.Contains(p.message("Ready"), "Frozen") })
	if p.releases.deployed() != "" || p.isHanded("lamp-1") {
		t.Error("it was handed over")
	}
	p.releases.frozen = nil
	p.leads(true, -1, p.settledByHelm)
}
