//go:build integration

package rollout_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// survivesDeletedDefinitions: another user deletes a definition, which deletes our objects of that
// kind. The report names the wanted objects. When the definition returns, the engine creates the
// objects again. A teardown does not wait for them.
func survivesDeletedDefinitions(t *testing.T, c *chain) {
	ns := c.home()
	watches := &freezer{}
	c.run(interference{observer: func(o rollout.Observer) rollout.Observer {
		watches.Observer = o
		return watches
	}})
	group := "deleted.example.com"
	definition, w, x := widgets(group, "Lost", "losts"), widget(group, "Lost", ns, "w", "1"), configMap(ns, "x", "1")
	c.create(definition)
	one := rev(1).phase("base", w, x)
	c.become(one)
	c.until("complete", complete)

	c.remove(id(definition))
	c.until("missed", func(r rollout.Report) bool {
		return strings.Contains(strings.Join(failures(r), "\n"), "Lost.deleted.example.com crd-deleted/w") && c.value(x) == "1"
	})
	poll.Eventually(t, "the definition to be gone", func() (bool, string) { return c.get(id(definition)) == nil, "it is there" })
	c.create(definition)
	c.until("complete", complete)
	c.settled(t, w, x)

	watches.freeze(id(w)) // the watch misses the deletion; the engine's delete request reveals it
	c.remove(id(definition))
	poll.Eventually(t, "the kind to be no longer served", func() (bool, string) { return !c.serves(id(w)), "it is" })
	c.become()
	c.until("gone", complete)
	watches.freeze()
	c.settled(t)
	if said := strings.Join(c.events, "\n"); !strings.Contains(said, "was deleted with the definition of its kind") {
		t.Errorf("events: %s", said)
	}
}

// cleanup is the finalizer of an operator.
const cleanup = `{"metadata":{"finalizers":["example.com/cleanup"]}}`

// operatesUntilInstancesAreGone: an operator removes the finalizers of its custom resources while
// its Deployment exists. So the engine deletes all instances, also those of users, before the
// Deployment.
func operatesUntilInstancesAreGone(t *testing.T, c *chain) {
	ns := c.home()
	group := "operated.example.com"
	definition, operator, x := widgets(group, "Operated", "operateds"), deployment(ns, "operator", "1"), configMap(ns, "x", "1")
	mine, theirs := widget(group, "Operated", ns, "mine", "1"), widget(group, "Operated", ns, "theirs", "1")
	c.roll(rev(1).phase("base", definition, x).phase("deploy", operator, mine))
	c.create(theirs)
	for _, instance := range []map[string]any{mine, theirs} {
		c.patch(id(instance), "operator", cleanup)
	}
	c.follow(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "operateds"}, func(live *unstructured.Unstructured) error {
		if live.GetDeletionTimestamp() != nil && len(live.GetFinalizers()) > 0 && c.get(id(operator)) != nil {
			c.patch(idOf(live), "operator", `{"metadata":{"finalizers":null}}`)
		}
		return nil
	})
	c.become()
	c.stuck("leaving CustomResourceDefinition.apiextensions.k8s.io operateds.operated.example.com: InstancesExist")
	if got := []string{c.value(mine), c.value(theirs), c.value(operator), c.value(x)}; !slices.Equal(got, []string{"1", "1", "example.com/app:1", "1"}) {
		t.Errorf("objects were deleted without an acknowledgement: %v", got)
	}
	if live := c.get(id(mine)); live.GetDeletionTimestamp() != nil {
		t.Error("the custom resource was deleted without an acknowledgement")
	}
	c.allow["operateds.operated.example.com"] = true
	c.process.wake()
	c.until("gone", complete)
	c.settled(t)
}

// namesWhatHoldsInstances: without an operator, the status names the instance and its finalizer.
// Everything that the operator may need stays until a user removes the finalizer.
func namesWhatHoldsInstances(t *testing.T, c *chain) {
	ns := c.home()
	group := "unoperated.example.com"
	definition, operator := widgets(group, "Unoperated", "unoperateds"), deployment(ns, "operator", "1")
	mine, theirs := widget(group, "Unoperated", ns, "mine", "1"), widget(group, "Unoperated", ns, "theirs", "1")
	c.roll(rev(1).phase("base", definition).phase("deploy", operator, mine))
	c.create(theirs)
	for _, instance := range []map[string]any{mine, theirs} {
		c.patch(id(instance), "operator", cleanup)
	}
	c.allow["unoperateds.unoperated.example.com"] = true
	c.become()
	const instance, crd = "leaving Unoperated.unoperated.example.com crd-operator-gone/mine: Terminating", "leaving CustomResourceDefinition.apiextensions.k8s.io unoperateds.unoperated.example.com: "
	says := func(what string) func(rollout.Report) bool {
		return func(r rollout.Report) bool {
			if c.get(id(operator)) == nil {
				t.Fatalf("the operator was deleted before the instances: %v", failures(r))
			}
			return strings.Contains(messages(r), what)
		}
	}
	report := c.until("held by the instance of the revision", says("is being deleted; it waits for its finalizer example.com/cleanup"))
	if got := failures(report); len(got) != 3 || got[0] != instance || got[1] != crd+"Waiting" {
		t.Errorf("got %v", got)
	}
	c.patch(id(mine), "somebody", `{"metadata":{"finalizers":null}}`)
	report = c.until("held by the instance of a user", says("Unoperated.unoperated.example.com crd-operator-gone/theirs waits for its finalizer example.com/cleanup"))
	if got := failures(report); len(got) != 2 || got[0] != crd+"Terminating" {
		t.Errorf("got %v", got)
	}
	c.patch(id(theirs), "somebody", `{"metadata":{"finalizers":null}}`)
	c.until("gone", complete)
	c.settled(t)
}
