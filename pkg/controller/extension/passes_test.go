package extension

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
)

// watching returns a controller that watches extensions and leases, and runs no pass by itself.
func (p *plane) watching() *Controller {
	p.Helper()
	c := p.controller()
	c.measured = p
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{}, 2)
	go func() { c.watchLeases(ctx); ended <- struct{}{} }()
	p.await("it is known that there is no operator-controller", func() bool { return c.other() == otherAbsent })
	go func() { c.watchExtensions(ctx); ended <- struct{}{} }()
	p.Cleanup(func() { cancel(); <-ended; <-ended; c.queue.ShutDown() })
	return c
}

// pass runs a pass over the extension lamp, and reports whether another pass was requested
// meanwhile.
func (p *plane) pass(c *Controller) bool {
	p.Helper()
	p.await("a pass is asked for", func() bool { return c.queue.Len() > 0 })
	name, _ := c.queue.Get()
	err := c.reconcile(p.Context(), name)
	for errors.Is(err, maker.ErrRendering) {
		c.queue.Done(name)
		p.await("it is rendered", func() bool { return c.queue.Len() > 0 })
		name, _ = c.queue.Get()
		err = c.reconcile(p.Context(), name)
	}
	if err != nil && !errors.Is(err, maker.ErrAgain) {
		p.Error(err)
	}
	c.queue.Done(name)
	return c.queue.Len() > 0
}

// TestBegin: each extension that exists at the start of a process gets a pass after all extensions
// are known.
func TestBegin(t *testing.T) {
	const count = 500
	p := newPlane(t)
	for i := range count {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetGroupVersionKind(extension.Kind)
		object.SetName(fmt.Sprintf("lamp-%d", i))
		if _, err := p.host.Resource(extension.Resource).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c := p.watching()
	limit := time.AfterFunc(20*time.Second, c.queue.ShutDown)
	defer limit.Stop()
	looked := map[string]bool{}
	for len(looked) < count {
		name, down := c.queue.Get()
		if down {
			t.Fatalf("%d of %d got a pass", len(looked), count)
		}
		if object, known := c.find(name); known && object != nil {
			looked[name] = true
		}
		c.queue.Done(name)
	}
}

// TestOvertaken: a change of catalogs during a pass that waits for them causes another pass.
func TestOvertaken(t *testing.T) {
	p := newPlane(t)
	p.inventory.Put(inventory.Catalog{Name: "other", Err: errors.New("it is not read yet")})
	p.publish("1.0.0")
	p.apply(nil)
	first := p.watching()
	p.pass(first) // it writes status, which causes another pass
	p.pass(first)
	c := p.watching()
	p.resolved = func() { p.inventory.Remove("other") }
	if !p.pass(c) {
		t.Fatal("no other pass was asked for")
	}
	p.resolved = nil
	p.pass(c)
	p.awaitRevisions("1 Active 1.0.0 alice")
}

// TestOtherError: an error with an ever-changing text is retried after its delay, and not because
// of the status write that shows it.
func TestOtherError(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.pullErr = &numbered{}
	p.apply(nil)
	c := p.watching()
	create := func(name string) {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"source": map[string]any{"sourceType": "None"}}}}
		object.SetGroupVersionKind(extension.Kind)
		object.SetName(name)
		if _, err := p.host.Resource(extension.Resource).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// Lamp gets a pass once the extensions are known, maybe after other extensions.
	for p.pulls.n() == 0 {
		p.await("a pass is asked for", func() bool { return c.queue.Len() > 0 })
		maker.Next(t.Context(), c.queue, c.reconcile, "")
	}
	for i := range 6 {
		// Events arrive in order, so the events of lamp were handled before this one.
		marker := fmt.Sprintf("marker-%d", i)
		create(marker)
		for told := false; !told; {
			p.await("a pass is asked for", func() bool { return c.queue.Len() > 0 })
			maker.Next(t.Context(), c.queue, c.reconcile, "")
			object, err := p.host.Resource(extension.Resource).Get(t.Context(), marker, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, told = object.Object["status"]
		}
	}
	if p.pulls.n() > 2 {
		t.Errorf("%d attempts, and no time has passed", p.pulls.n())
	}
	p.apply(version("1.0.0"))
	before := p.pulls.n()
	for p.pulls.n() == before || c.queue.Len() > 0 {
		p.await("a pass is asked for", func() bool { return c.queue.Len() > 0 })
		maker.Next(t.Context(), c.queue, c.reconcile, "")
	}
	if p.pulls.n() != before+1 {
		t.Errorf("an edit brings %d attempts, want 1 at once", p.pulls.n()-before)
	}
}

type numbered struct{ count int }

func (n *numbered) Error() string { n.count++; return fmt.Sprintf("request %d failed", n.count) }

// TestAtRest: a pass over an installed or proposed extension sends no request and pulls nothing.
func TestAtRest(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.apply(nil)
	stop := p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	p.await("it is installed", func() bool { return p.condition("Ready") == "True/Succeeded" })
	for _, state := range []string{"1 Active 1.0.0 alice", "1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock"} {
		if strings.Contains(state, "Paused") {
			stop = p.process()
			p.publish("1.0.0", "1.1.0")
			p.awaitRevisions(state)
			p.await("it is told", func() bool { return p.condition("UpgradeAvailable") == "True/Proposed" })
		}
		stop()
		c := p.watching()
		p.await("a pass is asked for", func() bool { return c.queue.Len() > 0 })
		p.host.ClearActions()
		p.mu.Lock()
		version, pulls, reviews := p.version, p.pulls.n(), p.reviews
		p.pullErr = errors.New("the registry is down")
		p.mu.Unlock()
		for range 3 {
			c.queue.Add("lamp")
			p.pass(c)
		}
		var actions []string
		for _, action := range p.host.Actions() {
			if verb := action.GetVerb(); verb != "list" && verb != "watch" { // requests of the informer
				actions = append(actions, verb)
			}
		}
		if len(actions) > 0 || p.version != version || p.pulls.n() != pulls || p.reviews != reviews || len(c.rendered.kept) > 0 {
			t.Errorf("%s: requests %v, %d writes of revisions, %d pulls, %d questions, %d renderings kept", state, actions, p.version-version, p.pulls.n()-pulls, p.reviews-reviews, len(c.rendered.kept))
		}
		p.mu.Lock()
		p.pullErr = nil
		p.mu.Unlock()
	}
}

// TestDeleting: the status of a deleted extension shows the remaining revisions, and nothing is
// created.
func TestDeleting(t *testing.T) {
	p := installed(t)
	p.await("it is installed", func() bool { return p.condition("Ready") == "True/Succeeded" })
	p.apply(func(object *unstructured.Unstructured) {
		now := metav1.Now()
		object.SetDeletionTimestamp(&now)
		object.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
	})
	p.await("it is being deleted", func() bool { return p.condition("Ready") == "False/Deleting" })
	p.change("lamp-1", func(r *olmv1alpha1.ClusterExtensionRevision) {
		now := metav1.Now()
		r.DeletionTimestamp = &now
	})
	p.await("status says what is left", func() bool {
		return strings.Contains(p.message("Ready"), "1 revision with objects are left") && p.condition("Installed") == "False/Absent" &&
			p.condition("Progressing") == "True/Deleting"
	})
	p.mu.Lock()
	highest := p.head.Highest
	p.mu.Unlock()
	if highest != 1 {
		t.Errorf("%d revisions were made", highest)
	}
}

// TestOrphaning: a user deletes an extension and orphans its revisions. The revisions stay,
// although the host's collector does not know revisions yet and lets the deletion finish at once.
// Owners of other objects do not change.
func TestOrphaning(t *testing.T) {
	for name, gone := range map[string]bool{"Going": false, "Gone": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			p.publish("1.0.0")
			p.apply(nil)
			stop := p.process()
			p.awaitRevisions("1 Active 1.0.0 alice")
			p.succeed("lamp-1")
			p.await("it is installed", func() bool { return p.condition("Ready") == "True/Succeeded" })
			other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"}
			p.change("lamp-1", func(r *olmv1alpha1.ClusterExtensionRevision) { r.OwnerReferences = append(r.OwnerReferences, other) })
			stop()
			c := p.watching()
			p.await("a pass is asked for", func() bool { return c.queue.Len() > 0 })
			p.apply(func(object *unstructured.Unstructured) {
				now := metav1.Now()
				object.SetDeletionTimestamp(&now)
				object.SetFinalizers([]string{metav1.FinalizerOrphanDependents})
			})
			if gone {
				if err := p.host.Resource(extension.Resource).Delete(t.Context(), "lamp", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			p.await("the deletion is known", func() bool {
				object, _ := c.find("lamp")
				return gone && object == nil || object != nil && object.GetDeletionTimestamp() != nil
			})
			c.queue.Add("lamp")
			p.pass(c)
			p.await("it has no owner", func() bool {
				owners := p.revisions["lamp-1"].OwnerReferences
				return len(owners) == 1 && owners[0].UID == other.UID
			})
			// Each change of an existing extension records it again.
			c.mu.Lock()
			defer c.mu.Unlock()
			if gone && len(c.orphaning) > 0 {
				t.Errorf("%v are to be left once more", c.orphaning)
			}
		})
	}
}

// TestNoCatalog: without a catalog, an edit that the installed version satisfies is applied with
// its settings. Any other edit is reported.
func TestNoCatalog(t *testing.T) {
	p := installed(t)
	p.await("it is installed", func() bool { return p.condition("Ready") == "True/Succeeded" })
	p.inventory.Remove("hub")
	p.await("it is told", func() bool { return strings.Contains(p.message("Ready"), "NoCatalog") })
	for _, wanted := range []string{">=1.0.0 <2.0.0", "1.0.0", "1.0.x"} {
		p.clock.Step(time.Second) // a new stamp
		p.apply(func(object *unstructured.Unstructured) {
			version(wanted)(object)
			annotate(object, extension.SuccessDelayAnnotation, fmt.Sprint(len(wanted)))
			annotate(object, extension.MetricChecksAnnotation, fmt.Sprintf("errors, latency-%d", len(wanted)))
		})
		p.await(wanted+" is installed", func() bool {
			return p.condition("Ready") == "True/Succeeded" && p.condition("Progressing") == "True/Succeeded" &&
				p.revisions["lamp-1"].Spec.SuccessDelaySeconds == int32(len(wanted)) && slices.Equal(p.revisions["lamp-1"].Spec.MetricChecks, []string{"errors", fmt.Sprintf("latency-%d", len(wanted))})
		})
	}
	p.clock.Step(time.Second)
	p.apply(version(">=2.0.0"))
	p.await("it cannot come", func() bool {
		return p.condition("Ready") == "False/NoCatalog" && p.condition("Progressing") == "True/Retrying" && strings.Contains(p.message("Ready"), `unable to upgrade to version ">=2.0.0"`)
	})
	p.awaitRevisions("1 Active 1.0.0 alice")
}
