package extension

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
)

// proposed returns a plane with an installed package, whose next version waits for approval.
func proposed(t *testing.T) *plane {
	p := installed(t)
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
	return p
}

func (p *plane) deny(who string, denied bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denied[who] = denied
}

// TestDeniedReplacement: a proposal stays until another revision has replaced it. A denied revision
// does not replace it.
func TestDeniedReplacement(t *testing.T) {
	p := proposed(t)
	p.deny("alice", true)
	p.clock.Step(time.Second) // a new stamp
	p.apply(version("1.1.0"))
	p.await("it is denied", func() bool { return p.condition("Progressing") == "False/Blocked" })
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
	p.deny("alice", false)
	p.awaitRevisions("1 Active 1.0.0 alice, 3 Active 1.1.0 alice")
}

// TestRefusedProposal: if a policy refuses a newer proposal, the older one stays.
func TestRefusedProposal(t *testing.T) {
	p := proposed(t)
	p.deny("penstock", true)
	p.publish("1.0.0", "1.2.0")
	p.await("it is refused", func() bool { return strings.Contains(p.message("Progressing"), "lamp-3") })
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
	p.deny("penstock", false)
	p.awaitRevisions("1 Active 1.0.0 alice, 3 Paused 1.2.0 penstock")
}

// TestTwoProposals: if a process died between the creation of a newer proposal and the end of the
// older one, the newer one stays.
func TestTwoProposals(t *testing.T) {
	p := proposed(t)
	p.mu.Lock()
	older := p.revisions["lamp-2"].DeepCopy()
	p.mu.Unlock()
	p.publish("1.0.0", "1.2.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 3 Paused 1.2.0 penstock")
	p.put(older)
	p.awaitRevisions("1 Active 1.0.0 alice, 3 Paused 1.2.0 penstock")
}

// TestEditedProposal: a user who changes the deadline of a proposal has not approved it. It was
// never rolled out, and is replaced like other proposals.
func TestEditedProposal(t *testing.T) {
	p := proposed(t)
	p.change("lamp-2", func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Spec.ProgressDeadlineMinutes, r.Generation = 5, 2
	})
	p.publish("1.0.0", "1.2.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 3 Paused 1.2.0 penstock")
}

// TestDeclined: a user who archives a proposal declines it. It is not created again until the
// extension is written, and the installed content does not change.
func TestDeclined(t *testing.T) {
	p := proposed(t)
	p.change("lamp-2", func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Spec.LifecycleState, r.Generation = olmv1alpha1.LifecycleStateArchived, 2
	})
	p.await("what is installed is well", func() bool {
		return p.condition("Ready") == "True/Succeeded" && p.condition("UpgradeAvailable") != "True/Proposed"
	})
	// The same version, with another note: a pass starts and ends.
	p.inventory.Remove("hub")
	p.await("it is told", func() bool { return strings.Contains(p.message("Ready"), "NoCatalog") })
	p.publish("1.0.0", "1.1.0")
	p.await("it is told", func() bool { return !strings.Contains(p.message("Ready"), "NoCatalog") })
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.mu.Lock()
	highest := p.head.Highest
	p.mu.Unlock()
	if highest != 2 {
		t.Errorf("%d revisions were made", highest)
	}
	p.clock.Step(time.Second) // a new stamp
	p.apply(version("1.1.0"))
	p.awaitRevisions("1 Active 1.0.0 alice, 3 Active 1.1.0 alice")
}

// TestAskedBeforeThePull: no image is pulled for a user who cannot create revisions. A version from
// a catalog is still proposed.
func TestAskedBeforeThePull(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.mu.Lock()
	p.lacks["create"] = true
	p.mu.Unlock()
	p.apply(nil)
	p.process()
	p.await("it is denied", func() bool {
		return p.condition("Progressing") == "False/Blocked" && strings.Contains(p.message("Progressing"), "alice cannot create clusterextensionrevisions.olm.operatorframework.io") &&
			strings.Contains(p.message("Ready"), `"kind":"ClusterRoleBinding","metadata":{"name":"install-lamp"}`)
	})
	p.mu.Lock()
	pulls := p.pulls.n()
	clear(p.lacks)
	p.mu.Unlock()
	if pulls != 0 {
		t.Errorf("%d images were pulled", pulls)
	}
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	p.mu.Lock()
	p.lacks["create"] = true
	p.mu.Unlock()
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
}

// TestMayPull checks the rights that are needed before an image is pulled for a proposal.
func TestMayPull(t *testing.T) {
	p := newPlane(t)
	p.lacks["create"] = true
	alice := maker.Identity{Author: &user.DefaultInfo{Name: "alice"}}
	for source, want := range map[string]bool{extension.SourceCatalog: true, extension.SourceImage: false, extension.SourceChart: false} {
		s := &scope{Controller: p.controller(), extension: &extension.Extension{Spec: extension.Spec{Source: extension.Source{SourceType: source}}}}
		if stopped := s.mayPull(t.Context(), alice); (stopped == nil) != want {
			t.Errorf("a proposal from a %s: %+v", source, stopped)
		}
		if stopped := s.mayPull(t.Context(), maker.Identity{Author: &user.DefaultInfo{Name: "alice"}, As: &user.DefaultInfo{Name: "alice"}}); stopped == nil {
			t.Errorf("a revision from a %s: an image is pulled", source)
		}
	}
}

// TestWarnings: a warning of rendering is on the proposal, and in one event.
func TestWarnings(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.mu.Lock()
	files := p.images["r.example/lamp:v1.0.0"].(fstest.MapFS)
	for name, file := range files {
		if strings.Contains(string(file.Data), "kind: ClusterServiceVersion") {
			files[name] = &fstest.MapFile{Data: []byte(strings.Replace(string(file.Data), "\nspec:", "\nspec:\n  minKubeVersion: 1.99.0", 1))}
		}
	}
	p.mu.Unlock()
	p.apply(func(e *unstructured.Unstructured) {
		e.SetAnnotations(map[string]string{extension.ApprovalAnnotation: "Manual"})
	})
	p.process()
	p.awaitRevisions("1 Paused 1.0.0 penstock")
	const want = "spec.minKubeVersion: the operator needs Kubernetes 1.99.0 or later, and the cluster has v1.36.3"
	p.mu.Lock()
	got := p.revisions["lamp-1"].Annotations[extension.WarningsAnnotation]
	p.mu.Unlock()
	if !strings.HasSuffix(got, want) {
		t.Errorf("the annotation is %q", got)
	}
	p.await("the condition has it", func() bool { return strings.Contains(p.message("Ready"), want) })
}

// TestYield: the annotation sets spec.yield of revisions. A change creates a revision with the same
// content. An invalid value creates none.
func TestYield(t *testing.T) {
	p := installed(t)
	yields := func(value string) {
		p.clock.Step(time.Second) // a new stamp
		p.apply(func(e *unstructured.Unstructured) {
			if value == "" {
				e.SetAnnotations(nil)
				return
			}
			e.SetAnnotations(map[string]string{extension.YieldAnnotation: value})
		})
	}
	of := func(name string) []olmv1alpha1.YieldRule {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.revisions[name].Spec.Yield
	}
	yields("[{selector: {groupKind: {group: apps, kind: Deployment}}, fields: [spec.replicas]}]")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.0.0 alice")
	want := []olmv1alpha1.YieldRule{{Selector: olmv1alpha1.YieldSelector{GroupKind: metav1.GroupKind{Group: "apps", Kind: "Deployment"}}, Fields: []string{"spec.replicas"}}}
	if got := of("lamp-2"); !cmp.Equal(got, want) || of("lamp-1") != nil {
		t.Errorf("spec.yield is %s", cmp.Diff(want, got))
	}
	p.succeed("lamp-2")
	yields("spec.replicas")
	p.await("it is refused", func() bool { return strings.Contains(p.message("Progressing"), extension.YieldAnnotation) })
	p.awaitRevisions("2 Active 1.0.0 alice")
	yields("")
	p.awaitRevisions("2 Active 1.0.0 alice, 3 Active 1.0.0 alice")
	if got := of("lamp-3"); got != nil {
		t.Errorf("spec.yield stays: %v", got)
	}
}

// TestDigestWithoutYield: existing extensions keep their digest, so that an upgrade of Penstock
// creates no revision.
func TestDigestWithoutYield(t *testing.T) {
	const before = `{"Version":1,"Ref":"r","Name":"n","Namespace":"s","Target":"","Collision":"Prevent","Config":null,"Certificates":""}`
	sum := sha256.Sum256([]byte(before))
	w := desired{ref: "r", Name: "n", Namespace: "s", Collision: olmv1alpha1.CollisionProtectionPrevent}
	if got, want := w.digest(), "sha256:"+hex.EncodeToString(sum[:]); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w.Yield = []olmv1alpha1.YieldRule{{Fields: []string{"spec.replicas"}}}
	if w.digest() == "sha256:"+hex.EncodeToString(sum[:]) {
		t.Error("the rules are not part of it")
	}
}
