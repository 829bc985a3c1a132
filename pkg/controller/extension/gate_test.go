package extension

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension/helmapplier"
	"github.com/penstock-project/penstock/pkg/manifest"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// releases is a fake of Helm's releases and applied objects.
type releases struct {
	*plane
	mu sync.Mutex
	// all holds the revisions of the release of lamp, newest first.
	all      []helmapplier.Revision
	contents map[string][][]byte
	// live holds the existing objects by name. unserved holds kinds that the cluster does not
	// serve.
	live     map[string]*metav1.PartialObjectMetadata
	unserved map[string]bool
	// applied counts Helm's writes. last is its last request. superseded counts the revisions that
	// were last labelled. asked counts reads of the release.
	applied, superseded counter
	asked               int
	last                helmapplier.Wanted
	err                 error
	failing             error
	frozen              *rollout.Freeze
}

func withHelm(t *testing.T) *plane {
	p := newPlane(t)
	p.releases = &releases{plane: p, contents: map[string][][]byte{}, live: map[string]*metav1.PartialObjectMetadata{}, unserved: map[string]bool{}}
	return p
}

func (r *releases) keep(revision string, object []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.contents[revision] = append(r.contents[revision], object)
}

func (r *releases) copies(revision, of string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.contents[revision] = r.contents[of]
}

func (r *releases) manifests(_ context.Context, revision string) ([][]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.contents[revision], nil
}

func (r *releases) Namespace() string { return "system" }

func (r *releases) History(context.Context, string) ([]helmapplier.Revision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	all := append([]helmapplier.Revision(nil), r.all...)
	for i := range all {
		all[i].TakenOver = i >= len(all)-r.superseded.n()
	}
	return all, r.err
}

// Run implements Stored.
func (r *releases) Run(ctx context.Context, changed func()) {
	changed()
	<-ctx.Done()
}

// Releases implements Stored.
func (r *releases) Releases() (map[string]bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return nil, r.err
	}
	return map[string]bool{"lamp": r.superseded.n() < len(r.all)}, r.err
}

func (r *releases) add(wanted helmapplier.Wanted) int {
	manifest := ""
	for _, object := range wanted.Objects {
		manifest += string(object) + "\n"
	}
	for i := range r.all {
		if r.all[i].Status == "deployed" {
			r.all[i].Status = "superseded"
		}
	}
	one := helmapplier.Revision{Version: 1, Status: "deployed", Namespace: wanted.Namespace, Labels: wanted.Labels, Manifest: manifest, Owner: wanted.Owner.UID}
	if len(r.all) > 0 {
		one.Version = r.all[0].Version + 1
	}
	r.all = append([]helmapplier.Revision{one}, r.all...)
	return one.Version
}

func (r *releases) Apply(_ context.Context, wanted helmapplier.Wanted) error {
	if err := r.write(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing != nil {
		return r.failing
	}
	r.applied.Add(1)
	r.last = wanted
	r.add(wanted)
	return nil
}

func (r *releases) Record(_ context.Context, wanted helmapplier.Wanted, _ string) (int, error) {
	if err := r.write(); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.add(wanted), nil
}

func (r *releases) Relabel(_ context.Context, _ string, version int, labels map[string]string) error {
	if err := r.write(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.all {
		if r.all[i].Version == version {
			r.all[i].Labels = labels
		}
	}
	return nil
}

func (r *releases) Supersede(context.Context, string) error {
	if err := r.write(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.superseded.Store(int64(len(r.all)))
	return nil
}

func (r *releases) Delete(context.Context, string) error {
	if err := r.write(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = nil
	return nil
}

func (r *releases) Metadata(_ context.Context, ref manifest.Ref) (*metav1.PartialObjectMetadata, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[ref.Name], !r.unserved[ref.Kind], nil
}

func (r *releases) Resource(_ context.Context, kind schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	return kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s"), true, nil
}

// Frozen implements Freezes.
func (r *releases) Frozen() (*rollout.Freeze, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.frozen, nil
}

func (r *releases) Disown(context.Context, manifest.Ref, *metav1.PartialObjectMetadata, metav1.OwnerReference) error {
	return r.write()
}

// deployed returns the release as text: "2 1.0.0"; empty for none.
func (r *releases) deployed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if one.Status == "deployed" {
			return fmt.Sprintf("%d %s", one.Version, one.Labels[olmv1alpha1.VersionAnnotation])
		}
	}
	return ""
}

// turn switches the gate for the next process.
func (p *plane) turn(off bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byHelm, p.left = off, -1
}

// TestThereAndBack: an extension moves to Helm and back, with a kill after any write of the
// process. Each move creates one revision, and Helm applies nothing.
func TestThereAndBack(t *testing.T) {
	for dies := 1; ; dies++ {
		p := withHelm(t)
		p.publish("1.0.0")
		p.apply(nil)
		stop := p.process()
		p.awaitRevisions("1 Active 1.0.0 alice")
		p.succeed("lamp-1")
		p.await("it is installed", func() bool { return p.condition("Progressing") == "True/Succeeded" })
		stop()

		p.turn(true)
		p.mu.Lock()
		p.left = dies
		p.mu.Unlock()
		p.survive()
		p.await("Helm has it", func() bool {
			return p.condition("Installed") == "True/Succeeded" && strings.Contains(p.message("Ready"), "Helm release") && p.revisions["lamp-1"].Annotations[olmv1alpha1.HandedToHelmAnnotation] == "system/lamp:1"
		})
		p.mu.Lock()
		died := p.left < 0
		p.mu.Unlock()
		if got := p.releases.deployed(); got != "1 1.0.0" || p.releases.applied.n() > 0 {
			t.Errorf("killed after %d writes: the release is %q, and Helm applied %d", dies, got, p.releases.applied.n())
		}
		if !died {
			return
		}
	}
}

// TestBackAgain: the release that Helm applied becomes the next revision, exactly once. The Secrets
// are deleted after the first upgrade.
func TestBackAgain(t *testing.T) {
	for dies := 1; dies <= 12; dies++ {
		p := withHelm(t)
		p.publish("1.0.0")
		p.turn(true)
		p.apply(nil)
		stop := p.process()
		p.await("Helm has it", func() bool { return p.condition("Installed") == "True/Succeeded" })
		stop()
		if got := p.releases.deployed(); got != "1 1.0.0" || p.shown() != "" {
			t.Fatalf("the release is %q, and the revisions are %q", got, p.shown())
		}

		p.turn(false)
		p.mu.Lock()
		p.left = dies
		p.mu.Unlock()
		p.survive()
		p.awaitRevisions("1 Active 1.0.0 penstock")
		p.succeed("lamp-1")
		p.await("it is finished", func() bool {
			return p.condition("Progressing") == "True/Succeeded" && p.revisions["lamp-1"].Annotations[olmv1alpha1.ReleaseSecretsAnnotation] == "kept"
		})
		p.apply(version("1.1.0"))
		p.await("the spec is looked at", func() bool { return p.condition("Progressing") != "" })
		p.publish("1.0.0", "1.1.0")
		p.awaitRevisions("1 Active 1.0.0 penstock, 2 Active 1.1.0 alice")
		p.succeed("lamp-2")
		p.await("the Secrets are gone", func() bool {
			return p.revisions["lamp-1"].Annotations[olmv1alpha1.ReleaseSecretsAnnotation] == "removed"
		})
		if got := p.releases.deployed(); got != "" {
			t.Errorf("killed after %d writes: the release is %q", dies, got)
		}
	}
}

// TestSecretsKept: the Secrets of a release are labelled, and stay until an upgrade has succeeded,
// for any number of moves. With KeepReleases they stay for good.
func TestSecretsKept(t *testing.T) {
	for name, keep := range map[string]bool{"until an upgrade": false, "for ever": true} {
		t.Run(name, func(t *testing.T) {
			p := withHelm(t)
			p.keepReleases = keep
			p.publish("1.0.0")
			p.apply(nil)
			stop := p.process()
			p.awaitRevisions("1 Active 1.0.0 alice")
			p.succeed("lamp-1")
			p.await("it is installed", func() bool { return p.condition("Progressing") == "True/Succeeded" })
			last := "lamp-1"
			for _, next := range []string{"lamp-2", "lamp-3"} {
				stop()
				p.turn(true)
				stop = p.process()
				p.await("Helm has it", func() bool {
					return rev.IsHanded(p.revisions[last]) && strings.Contains(p.message("Ready"), "Helm release")
				})
				stop()
				p.turn(false)
				stop = p.process()
				p.await("it is taken back", func() bool { return p.revisions[next] != nil })
				p.succeed(next)
				p.await("it is finished", func() bool {
					return p.condition("Progressing") == "True/Succeeded" && p.revisions[next].Annotations[olmv1alpha1.ReleaseSecretsAnnotation] == "kept"
				})
				last = next
			}
			if got := p.releases.deployed(); got != "2 1.0.0" || p.releases.superseded.n() != 2 || p.releases.applied.n() > 0 {
				t.Errorf("after two trips the release is %q, of which %d are labelled; Helm applied %d", got, p.releases.superseded.n(), p.releases.applied.n())
			}
			p.apply(version("1.1.0"))
			p.publish("1.0.0", "1.1.0")
			p.await("an upgrade", func() bool { return p.revisions["lamp-4"] != nil })
			p.succeed("lamp-4")
			p.await("the upgrade is installed", func() bool {
				return p.condition("Progressing") == "True/Succeeded" && strings.Contains(p.message("Ready"), "1.1.0")
			})
			want := map[bool]string{false: "removed", true: "kept"}[keep]
			p.await("it is said what became of the Secrets", func() bool {
				return p.revisions["lamp-2"].Annotations[olmv1alpha1.ReleaseSecretsAnnotation] == want && p.revisions["lamp-3"].Annotations[olmv1alpha1.ReleaseSecretsAnnotation] == want
			})
			if got := p.releases.deployed(); (got != "") != keep {
				t.Errorf("after an upgrade the release is %q", got)
			}
		})
	}
}

// TestOtherGate: a leader with the gate off dies after any of its writes, then a leader with the
// gate on, then further leaders continue. Helm applies nothing, and the applier matches the gate of
// the last leader.
func TestOtherGate(t *testing.T) {
	for dies := 1; ; dies++ {
		p := withHelm(t)
		p.publish("1.0.0")
		p.apply(nil)
		stop := p.process()
		p.awaitRevisions("1 Active 1.0.0 alice")
		p.succeed("lamp-1")
		p.await("it is installed", func() bool { return p.condition("Progressing") == "True/Succeeded" })
		stop()

		died := p.leads(true, dies, p.isHelms)
		died = p.leads(false, dies, p.isEngines) || died
		p.leads(false, -1, p.isEngines)
		p.succeed(fmt.Sprintf("lamp-%d", p.head.Highest))
		p.leads(false, -1, func() bool {
			r := p.revisions[fmt.Sprintf("lamp-%d", p.head.Highest)]
			return p.isEngines() && p.condition("Progressing") == "True/Succeeded" && p.condition("Installed") == "True/Succeeded" &&
				(r.Name == "lamp-1" || r.Annotations[olmv1alpha1.ReleaseSecretsAnnotation] == "kept")
		})
		p.leads(true, -1, func() bool { return p.isHelms() && p.condition("Progressing") == "True/Succeeded" })
		if got := p.releases.deployed(); !strings.HasSuffix(got, " 1.0.0") || p.releases.applied.n() > 0 {
			t.Errorf("died behind %d writes: the release is %q, and Helm applied %d", dies, got, p.releases.applied.n())
		}
		if !died {
			return
		}
	}
}

// isHelms reports whether Helm has the objects of the newest revision. isEngines reports whether
// the engine has them, or will take them next.
func (p *plane) isHelms() bool {
	return rev.IsHanded(p.revisions[fmt.Sprintf("lamp-%d", p.head.Highest)]) && strings.Contains(p.message("Ready"), "Helm release")
}

func (p *plane) isEngines() bool {
	return !rev.IsHanded(p.revisions[fmt.Sprintf("lamp-%d", p.head.Highest)])
}

// leads runs a process with the gate on or off until the condition holds, or until it dies after a
// number of writes; negative means never. It reports whether the process died.
func (p *plane) leads(off bool, dies int, is func() bool) (died bool) {
	p.turn(off)
	p.mu.Lock()
	p.left = dies
	p.mu.Unlock()
	stop := p.process()
	p.await("a replica leads", func() bool { died = p.left == 0; return died || is() })
	stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = -1
	return died
}

// adopting runs a process on a release, and returns the resulting condition.
func adopting(t *testing.T, change func(*releases)) *plane {
	t.Helper()
	p := withHelm(t)
	p.publish("1.0.0")
	p.releases.all = []helmapplier.Revision{{Version: 3, Status: "deployed", Namespace: "lamps", Owner: "lamp-uid-1", Labels: map[string]string{olmv1alpha1.VersionAnnotation: "0.9.0"},
		Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lamp","namespace":"lamps","labels":{"olm.operatorframework.io/owner-name":"lamp","a":"b"}}}` + "\n" +
			`{"apiVersion":"light.example/v1","kind":"Beacon","metadata":{"name":"b","namespace":"lamps"}}` + "\n"}}
	if change != nil {
		change(p.releases)
	}
	p.apply(nil)
	p.process()
	return p
}

// TestAdoptOutcomes covers the states of a release that depend on objects: each has its outcome.
func TestAdoptOutcomes(t *testing.T) {
	yes := true
	object := func(change func(*metav1.PartialObjectMetadata)) func(*releases) {
		return func(r *releases) {
			live := &metav1.PartialObjectMetadata{}
			change(live)
			r.live["lamp"] = live
		}
	}
	for name, tc := range map[string]struct {
		change func(*releases)
		// says is the message of Ready. If it is empty, a revision with these objects is created.
		says    string
		objects string
	}{
		"there":   {change: object(func(*metav1.PartialObjectMetadata) {}), objects: "ConfigMap Beacon"},
		"deleted": {objects: "ConfigMap Beacon"},
		"ours": {change: object(func(o *metav1.PartialObjectMetadata) {
			o.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterExtension", Name: "lamp", UID: "lamp-uid-1", Controller: &yes}}
			o.Annotations = map[string]string{"meta.helm.sh/release-name": "lamp", "meta.helm.sh/release-namespace": "lamps"}
		}), objects: "ConfigMap Beacon"},
		"kind gone": {change: func(r *releases) { r.unserved["Beacon"] = true }, objects: "ConfigMap"},
		"of two releases": {change: object(func(o *metav1.PartialObjectMetadata) {
			o.Annotations = map[string]string{"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "lamps"}
		}), says: "ConfigMap lamps/lamp is in its Helm release, and belongs to the Helm release lamps/other"},
		"of another extension": {change: object(func(o *metav1.PartialObjectMetadata) {
			o.Labels = map[string]string{olmv1alpha1.ChainLabel: "other"}
		}), says: "belongs to the extension other"},
		"of a controller": {change: object(func(o *metav1.PartialObjectMetadata) {
			o.OwnerReferences = []metav1.OwnerReference{{Kind: "Boss", Name: "b", UID: "x", Controller: &yes}}
		}), says: "is controlled by Boss b"},
		"of a deleted extension": {change: func(r *releases) { r.all[0].Owner = "other" }, says: "its Secret has another owner"},
		"failed alone":           {change: func(r *releases) { r.all[0].Status = "failed" }, objects: "ConfigMap Beacon"},
		"superseded alone":       {change: func(r *releases) { r.all[0].Status = "superseded" }, objects: "ConfigMap Beacon"},
		"pending alone":          {change: func(r *releases) { r.all[0].Status = "pending-install" }, objects: "ConfigMap Beacon"},
		"uninstalling":           {change: func(r *releases) { r.all[0].Status = "uninstalling" }, says: "revision 3 of its Helm release is uninstalling"},
		"unreadable":             {change: func(r *releases) { r.all[0].Err = fmt.Errorf("a part is missing") }, says: "cannot be read: a part is missing"},
		"no objects":             {change: func(r *releases) { r.all[0].Manifest = "{]" }, says: "reading its manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			p := adopting(t, tc.change)
			if tc.says != "" {
				p.await("Ready says so", func() bool {
					return p.condition("Ready") == "False/ReleaseBlocked" && strings.Contains(p.message("Ready"), tc.says)
				})
				if shown := p.shown(); shown != "" {
					t.Errorf("there is %s", shown)
				}
				return
			}
			p.awaitRevisions("1 Active 0.9.0 penstock")
			p.mu.Lock()
			defer p.mu.Unlock()
			r := p.revisions["lamp-1"]
			var kinds []string
			for _, phase := range r.Spec.Phases {
				for _, entry := range phase.Objects {
					kinds = append(kinds, entry.Kind)
				}
			}
			if got := strings.Join(kinds, " "); got != tc.objects {
				t.Errorf("it has %s, want %s", got, tc.objects)
			}
			if r.Spec.CollisionProtection != olmv1alpha1.CollisionProtectionNone || r.Spec.AdoptedTeardownPolicy != olmv1alpha1.TeardownPolicyDelete || r.Annotations[olmv1alpha1.AdoptedReleaseAnnotation] != "system/lamp:3" {
				t.Errorf("it is %+v, with %v", r.Spec, r.Annotations)
			}
			if got := string(p.releases.contents["lamp-1"][0]); strings.Contains(got, "owner-name") || !strings.Contains(got, `"a":"b"`) {
				t.Errorf("an object is %s", got)
			}
		})
	}
}

// TestReleaseGone: if the release of handed revisions is deleted, the present state is unknown, and
// Penstock waits for a user.
func TestReleaseGone(t *testing.T) {
	p := withHelm(t)
	p.publish("1.0.0")
	p.apply(nil)
	stop := p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	stop()
	p.leads(true, -1, p.isHelms)
	p.releases.mu.Lock()
	p.releases.all = nil
	p.releases.mu.Unlock()
	p.leads(false, -1, func() bool {
		return p.condition("Ready") == "False/ReleaseBlocked" && p.condition("Progressing") == "False/Blocked" && strings.HasPrefix(p.condition("Stalled"), "True/") &&
			strings.Contains(p.message("Ready"), "lamp-1 was handed to the Helm release system/lamp:1, which is gone")
	})
	if shown := p.shown(); shown != "1 Active 1.0.0 alice" {
		t.Errorf("the revisions are %s", shown)
	}
}

// TestUnfinished: after an unfinished rollout, the release has the objects of the earlier and of
// the begun revision. Helm then applies the desired content.
func TestUnfinished(t *testing.T) {
	p := withHelm(t)
	p.publish("1.0.0")
	p.apply(nil)
	stop := p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	p.apply(version("1.1.0"))
	p.await("the spec is looked at", func() bool { return p.condition("Progressing") != "" })
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 alice")
	p.releases.keep("lamp-2", []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"more","namespace":"lamps"}}`))
	stop()
	p.turn(true)
	p.process()
	p.await("Helm has the newer one", func() bool { return p.releases.deployed() == "2 1.1.0" })
	recorded := p.releases.all[1]
	if recorded.Labels[olmv1alpha1.VersionAnnotation] != "1.0.0" || !strings.Contains(recorded.Manifest, `"name":"more"`) {
		t.Errorf("the release of the revision that succeeded is %+v", recorded)
	}
	p.await("all are handed", func() bool {
		return p.revisions["lamp-1"].Annotations[olmv1alpha1.HandedToHelmAnnotation] != "" && p.revisions["lamp-2"].Annotations[olmv1alpha1.HandedToHelmAnnotation] != ""
	})
}

// TestRollbackByHelm: a rollback holds while Helm has its objects, and afterwards, until the
// extension changes.
func TestRollbackByHelm(t *testing.T) {
	p := withHelm(t)
	p.publish("1.0.0")
	p.apply(nil)
	stop := p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	p.apply(version("1.1.0"))
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 alice")
	p.succeed("lamp-2")
	p.await("it is installed", func() bool { return p.condition("Progressing") == "True/Succeeded" })
	stop()
	p.mu.Lock()
	back := p.revisions["lamp-1"].DeepCopy()
	back.Name, back.UID, back.Spec.Revision, back.Spec.LifecycleState = "lamp-3", "lamp-3", 3, olmv1alpha1.LifecycleStateActive
	back.Annotations[olmv1alpha1.RollbackOfAnnotation] = "lamp-1"
	p.head.Highest, p.head.Hold = 3, &chain.Hold{Revision: 3, UID: "lamp-3", OwnerGeneration: 2}
	p.mu.Unlock()
	p.releases.copies("lamp-3", "lamp-1")
	p.put(back)
	p.succeed("lamp-3")
	p.turn(true)
	stop = p.process()
	holds := func() bool {
		return p.condition("Ready") == "False/Held" && p.condition("Progressing") == "False/Blocked" && strings.HasPrefix(p.message("Ready"), "lamp-3 is a rollback")
	}
	p.await("the rollback holds", func() bool { return holds() && rev.IsHanded(p.revisions["lamp-3"]) })
	stop()
	p.turn(false)
	p.process()
	p.await("it comes back", func() bool { return p.revisions["lamp-4"] != nil })
	p.succeed("lamp-4")
	p.await("the rollback still holds", func() bool {
		return holds() && p.revisions["lamp-4"].Annotations[olmv1alpha1.ReleaseSecretsAnnotation] == "kept"
	})
	if got := p.releases.deployed(); got != "1 1.0.0" || p.releases.applied.n() > 0 {
		t.Errorf("the release is %q, and Helm applied %d", got, p.releases.applied.n())
	}
	p.apply(version(">=1.1.0"))
	p.await("what is asked for comes", func() bool { return p.revisions["lamp-5"] != nil })
}

// TestDeniedByHelm: Helm applies only objects that the user may create.
func TestDeniedByHelm(t *testing.T) {
	p := withHelm(t)
	p.publish("1.0.0")
	p.denied["alice"] = true
	p.turn(true)
	p.apply(nil)
	p.process()
	p.await("status says so", func() bool { return p.condition("Ready") == "False/Denied" })
	if p.releases.applied.n() > 0 {
		t.Error("Helm applied it")
	}
}

// TestHelmLosesRights: the user must have the right to delete the objects that Helm would delete.
func TestHelmLosesRights(t *testing.T) {
	p := withHelm(t)
	p.publish("1.0.0")
	p.turn(true)
	p.apply(nil)
	stop := p.process()
	p.await("Helm has it", func() bool { return p.releases.deployed() == "1 1.0.0" })
	stop()
	p.mu.Lock()
	p.lacks["delete"], p.lacks["bypass"] = true, true
	p.mu.Unlock()
	p.releases.all[0].Manifest += `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"more","namespace":"lamps"}}` + "\n"
	p.apply(version("1.1.0"))
	p.publish("1.0.0", "1.1.0")
	p.process()
	p.await("status says so", func() bool {
		return p.condition("Ready") == "False/Denied" && strings.Contains(p.message("Ready"), "cannot delete ConfigMap lamps/more")
	})
	p.mu.Lock()
	p.lacks["delete"] = false
	p.mu.Unlock()
	p.await("Helm has the other one", func() bool { return p.releases.deployed() == "2 1.1.0" })
}

// TestFrozenForHelm: Helm does not write to a frozen cluster either.
func TestFrozenForHelm(t *testing.T) {
	p := withHelm(t)
	p.publish("1.0.0")
	p.turn(true)
	p.releases.frozen = &rollout.Freeze{Author: "alice", Reason: "the year ends"}
	p.apply(nil)
	p.process()
	p.await("status says so", func() bool { return p.condition("Ready") == "False/Frozen" })
	p.releases.mu.Lock()
	applied := p.releases.applied.n()
	p.releases.frozen = nil
	p.releases.mu.Unlock()
	if applied > 0 {
		t.Error("Helm applied it")
	}
	p.await("Helm has it", func() bool { return p.releases.deployed() == "1 1.0.0" })
}
