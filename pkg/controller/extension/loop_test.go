package extension

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/signer"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// TestStampAge: a stamp decides for one day. A later write decides again.
func TestStampAge(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.apply(nil)
	p.clock.Step(author.Lifetime)
	p.process()
	p.awaitRevisions("1 Paused 1.0.0 penstock")
	p.apply(nil)
	p.awaitRevisions("2 Active 1.0.0 alice")
}

// TestLater: later versions are created as the ServiceAccount that the author may impersonate.
// Without that right they are proposed.
func TestLater(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.apply(func(object *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(object.Object, "installer", "spec", "serviceAccount", "name")
	})
	p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
	p.mu.Lock()
	if why := p.revisions["lamp-2"].Annotations[olmv1alpha1.LifecycleReasonAnnotation]; why != "alice, who wrote the extension, cannot impersonate ServiceAccount lamps/installer" {
		t.Errorf("it is proposed because of %q", why)
	}
	p.impersonators["alice"] = true
	p.mu.Unlock()
	p.succeed("lamp-1") // another pass
	const account = "system:serviceaccount:lamps:installer"
	p.awaitRevisions("1 Active 1.0.0 alice, 3 Active 1.1.0 " + account)
	p.succeed("lamp-3")
	p.publish("1.0.0", "1.1.0", "1.2.0")
	p.awaitRevisions("3 Active 1.1.0 " + account + ", 4 Active 1.2.0 " + account)
}

// TestUnsigned: without a valid stamp of an author, nothing happens, not even a proposal.
func TestUnsigned(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.key = author.NewKey([]byte("of another store"))
	p.apply(nil)
	p.key = author.NewKey([]byte("secret"))
	p.process()
	p.await("status says so", func() bool {
		return p.condition("Ready") == "False/AuthorUnknown"
	})
	if shown := p.shown(); shown != "" {
		t.Errorf("there is %s", shown)
	}
}

// TestStuck: a new version in a catalog does not interrupt a rollout for this generation. An edit
// does.
func TestStuck(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.apply(nil)
	p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.apply(version("1.1.0"))
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 alice")
	p.succeed("lamp-2")
	p.apply(version("1.2.0"))
	p.publish("1.0.0", "1.1.0", "1.2.0", "1.3.0")
	p.awaitRevisions("2 Active 1.1.0 alice, 3 Active 1.2.0 alice")
	p.apply(func(object *unstructured.Unstructured) {
		version("1.3.0")(object)
		_ = unstructured.SetNestedField(object.Object, extension.SelfCertified, "spec", "source", "catalog", "upgradeConstraintPolicy")
	})
	p.awaitRevisions("2 Active 1.1.0 alice, 3 Active 1.2.0 alice, 4 Active 1.3.0 alice")
}

// TestVerified: a new revision records who signed its image, and keeps that record. A later record,
// or another image with the same content, does not change it. The record names its image. Otherwise
// a user who signs an image with the same content first could hide a change of the signer in the
// next diff.
func TestVerified(t *testing.T) {
	p := newPlane(t)
	by := func(name string) *signer.Record { return &signer.Record{Rule: "default", Signers: []string{name}} }
	first := by("key a").Of("r.example/lamp:v1.1.0@sha256:" + strings.Repeat("a", 64)).String()
	recorded := func(name, want string) {
		t.Helper()
		p.mu.Lock()
		defer p.mu.Unlock()
		if found := p.revisions[name].Annotations[olmv1alpha1.VerifiedAnnotation]; found != want {
			t.Errorf("%s records %q, want %q", name, found, want)
		}
	}
	p.publish("1.0.0")
	p.apply(nil)
	p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	recorded("lamp-1", "")
	p.mu.Lock()
	p.signed = map[string]*signer.Record{"r.example/lamp:v1.0.0": by("key a"), "r.example/lamp:v1.1.0": by("key a"), "r.example/lamp:v1.2.0": by("key b")}
	p.mu.Unlock()
	p.apply(version("1.1.0"))
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 alice")
	p.succeed("lamp-2")
	recorded("lamp-1", "")
	recorded("lamp-2", first)
	p.apply(version("1.2.0"))
	p.publish("1.0.0", "1.1.0", "1.2.0=1.1.0")
	p.await("lamp-2 is of the other image", func() bool {
		return strings.HasPrefix(p.revisions["lamp-2"].Annotations[olmv1alpha1.ReferenceAnnotation], "r.example/lamp:v1.2.0")
	})
	recorded("lamp-2", first)
}

// TestRestart: a new process writes and pulls nothing if everything is up to date.
func TestRestart(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.apply(nil)
	stop := p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	p.await("it is installed", func() bool { return p.condition("Progressing") == "True/Succeeded" })
	stop()
	p.mu.Lock()
	before, pulls := p.version, p.pulls.n()
	p.left = 0 // any write would kill the next process
	p.mu.Unlock()
	p.process()
	// A catalog of another package is added last. When that was handled, the pass over lamp is
	// done.
	p.apply(nil) // the new stamp is recorded: the only write
	p.mu.Lock()
	p.left = -1
	p.mu.Unlock()
	p.await("the stamp is noted", func() bool {
		return p.revisions["lamp-1"].Annotations[extension.GenerationAnnotation] == "2"
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.version != before+1 || p.pulls.n() != pulls {
		t.Errorf("%d writes and %d pulls", p.version-before, p.pulls.n()-pulls)
	}
}

// TestOutage: a pass that needs an unavailable registry waits, and is retried.
func TestOutage(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.pullErr = errors.New("the registry is down")
	p.apply(nil)
	p.process()
	p.await("status says so", func() bool { return p.condition("Ready") == "False/PullFailed" && p.pulls.n() > 2 })
	p.mu.Lock()
	p.pullErr = nil
	p.mu.Unlock()
	p.awaitRevisions("1 Active 1.0.0 alice")
}

// TestUnverified: an image that the signature policy refuses is retried, because it may be signed
// later. Any other refusal needs another image.
func TestUnverified(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.pullErr = &image.Refused{Image: "r.example/lamp", Reason: "no signature", Unverified: true}
	p.apply(nil)
	p.process()
	p.await("status says so", func() bool {
		return p.condition("Ready") == "False/SignatureVerificationFailed" && p.pulls.n() > 2
	})
	p.mu.Lock()
	p.pullErr = nil
	p.mu.Unlock()
	p.awaitRevisions("1 Active 1.0.0 alice")
}

// TestFlapping: a catalog that disappears and returns causes no revision twice.
func TestFlapping(t *testing.T) {
	p := installed(t)
	for range 20 {
		p.inventory.Remove("hub")
		p.publish("1.0.0")
	}
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
}

// TestOwner: a chain of another owner gets neither a revision nor a proposal.
func TestOwner(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	other := &olmv1alpha1.ClusterExtensionRevision{}
	other.Name, other.UID, other.Spec.Revision, other.Spec.LifecycleState = "lamp-1", "x", 1, olmv1alpha1.LifecycleStateActive
	other.Labels = map[string]string{olmv1alpha1.ChainLabel: "lamp"}
	p.head.Highest, p.head.Confirmed = 1, true
	p.put(other)
	p.apply(func(object *unstructured.Unstructured) { annotate(object, extension.ApprovalAnnotation, "Manual") })
	p.process()
	p.await("status says so", func() bool { return p.condition("Ready") == "False/NameTaken" })
	p.apply(func(object *unstructured.Unstructured) { annotate(object, extension.ApprovalAnnotation, "Automatic") })
	p.awaitRevisions("1 Active  , 2 Active 1.0.0 alice")
}

// TestCrash: a process dies after each of its writes, and the next process reaches the same end.
func TestCrash(t *testing.T) {
	for name, scenario := range map[string]func(p *plane, run func()){
		"Upgrade": func(p *plane, run func()) {
			p.publish("1.0.0")
			p.apply(nil)
			run()
			p.awaitRevisions("1 Active 1.0.0 alice")
			p.succeed("lamp-1")
			p.await("it is installed", func() bool { return p.condition("Progressing") == "True/Succeeded" })
			p.publish("1.0.0", "1.1.0")
			p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
			p.apply(version("1.1.0"))
			p.await("it is rolled out", func() bool { return p.shown() != "" && p.newest() == "Active 1.1.0 alice" })
		},
		"SameContent": func(p *plane, run func()) {
			p.publish("1.0.0=same")
			p.apply(nil)
			run()
			p.awaitRevisions("1 Active 1.0.0 alice")
			p.succeed("lamp-1")
			p.publish("1.0.0=same", "1.0.1=same")
			p.awaitRevisions("1 Active 1.0.1 alice")
			p.apply(func(object *unstructured.Unstructured) {
				annotate(object, extension.TeardownPolicyAnnotation, "Orphan")
			})
			p.await("the settings are there", func() bool {
				r := p.revisions["lamp-1"]
				return r.Spec.TeardownPolicy == olmv1alpha1.TeardownPolicyOrphan && r.Annotations[extension.GenerationAnnotation] == "2"
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for left := 1; ; left++ {
				died := false
				t.Run(fmt.Sprint(left), func(t *testing.T) {
					p := newPlane(t)
					p.left = left
					scenario(p, func() { died = p.survive() })
				})
				if !died || t.Failed() {
					break
				}
				if left > 40 {
					t.Fatal("there is no end of writes")
				}
			}
		})
	}
}

// TestHold: a rollback holds from the creation of its revision until the generation increases.
func TestHold(t *testing.T) {
	p := installed(t)
	p.apply(version("1.1.0"))
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 alice")
	p.succeed("lamp-2")
	p.mu.Lock()
	back := p.revisions["lamp-1"].DeepCopy()
	back.Name, back.UID, back.Spec.Revision, back.Spec.LifecycleState = "lamp-3", "lamp-3", 3, olmv1alpha1.LifecycleStateActive
	back.Annotations[olmv1alpha1.RollbackOfAnnotation] = "lamp-1"
	p.head.Highest, p.head.PendingHold = 3, &chain.Hold{Revision: 3, UID: "lamp-3", OwnerGeneration: 2}
	p.mu.Unlock()
	p.put(back)
	p.await("the rollback holds", func() bool { return p.condition("Ready") == "False/Held" })
	p.mu.Lock()
	p.head.Hold, p.head.PendingHold = p.head.PendingHold, nil
	p.mu.Unlock()
	p.succeed("lamp-3")
	p.await("the rollback holds", func() bool { return p.condition("Installed") != "" && p.shown() == "3 Active 1.0.0 " })
	p.apply(version("1.1.0"))
	p.awaitRevisions("3 Active 1.0.0 , 4 Active 1.1.0 alice")
}

// TestTakenOver: a new extension adopts the revisions that a deletion with --cascade=orphan left,
// even within the same second. It creates no revision if the content is equal.
func TestTakenOver(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.apply(nil)
	stop := p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	stop()
	if err := p.host.Resource(extension.Resource).Delete(t.Context(), "lamp", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.change("lamp-1", func(r *olmv1alpha1.ClusterExtensionRevision) { r.OwnerReferences = nil })
	p.clock.SetTime(began)
	p.apply(nil)
	p.process()
	p.await("it has an owner", func() bool { return len(p.revisions["lamp-1"].OwnerReferences) == 1 })
	p.await("it is installed", func() bool {
		return p.condition("Progressing") == "True/Succeeded" && p.shown() == "1 Active 1.0.0 alice"
	})
}
