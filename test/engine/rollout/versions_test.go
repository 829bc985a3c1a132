//go:build integration

package rollout_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// versioned returns the definition of a kind with these versions. The last version is stored.
func versioned(group, kind, plural string, versions ...string) map[string]any {
	definition := widgets(group, kind, plural)
	spec := definition["spec"].(map[string]any)
	one := spec["versions"].([]any)[0].(map[string]any)
	var all []any
	for i, name := range versions {
		version := map[string]any{"name": name, "served": true, "storage": i == len(versions)-1, "subresources": one["subresources"], "schema": one["schema"]}
		all = append(all, version)
	}
	spec["versions"] = all
	return definition
}

// in changes the version of a custom resource.
func in(version string, object map[string]any) map[string]any {
	group, _, _ := strings.Cut(object["apiVersion"].(string), "/")
	object["apiVersion"] = group + "/" + version
	return object
}

// redefine changes the spec of a definition as another user.
func (c *chain) redefine(definition map[string]any) {
	c.t.Helper()
	raw, err := json.Marshal(map[string]any{"spec": definition["spec"]})
	if err != nil {
		c.t.Fatal(err)
	}
	c.patch(id(definition), "somebody", string(raw))
}

// tearsDownWhatWasWrittenInAGoneVersion: identity has no version. If an object's version is no
// longer served, the engine reads and deletes it in another version, and observes its deletion
// there.
func tearsDownWhatWasWrittenInAGoneVersion(t *testing.T, c *chain) {
	ns := c.home()
	group := "teardown.example.com"
	both, newer := versioned(group, "Aging", "agings", "v1alpha1", "v1"), versioned(group, "Aging", "agings", "v1")
	w, held := in("v1alpha1", widget(group, "Aging", ns, "w", "1")), in("v1alpha1", widget(group, "Aging", ns, "held", "1"))
	one := rev(1).phase("base", both, w, held)
	c.roll(one)
	c.patch(id(held), "somebody", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	two := rev(2).phase("base", newer)
	c.become(two, one)
	c.until("upgraded", func(r rollout.Report) bool { return r.Layers[0].Complete })

	began := time.Now()
	c.become(two)
	report := c.stuck("leaving Aging.teardown.example.com version-teardown/held: Terminating")
	if got := c.value(w); got != "absent" {
		t.Errorf("the object still exists: %s: %s", got, messages(report))
	}
	c.patch(id(held), "somebody", `{"metadata":{"finalizers":null}}`)
	c.until("gone", complete)
	t.Logf("torn down within %s", time.Since(began).Round(10*time.Millisecond))
	c.settled(t, newer)
	c.quiet()

	// The same with a new process, while no version of the kind is served. The engine does not
	// assume that the object is deleted until a version is served again.
	late := in("v1", widget(group, "Aging", ns, "late", "1"))
	c.roll(rev(3).phase("base", newer, late))
	c.create(versioned(group, "Other", "others", "v2")) // keeps the group served
	unserved := versioned(group, "Aging", "agings", "v1")
	unserved["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["served"] = false
	watches := &freezer{}
	c.run(interference{observer: func(o rollout.Observer) rollout.Observer {
		watches.Observer = o
		return watches
	}})
	c.until("complete", complete)
	watches.freeze(id(newer)) // so that the engine does not repair the definition
	c.redefine(unserved)
	c.until("not served", func(r rollout.Report) bool {
		return strings.Contains(strings.Join(failures(r), "\n"), "late: KindNotServed")
	})
	c.become(rev(4).phase("base", newer))
	c.stuck("leaving Aging.teardown.example.com version-teardown/late: KindNotServed")
	again := versioned(group, "Aging", "agings", "v2", "v1")
	again["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)["served"] = false
	c.redefine(again) // in another version than before
	c.until("gone", func(r rollout.Report) bool { return len(r.Leaving) == 0 })
	watches.freeze()
}

// upgradesBehindAGoneVersion: kube-apiserver refuses to apply a custom resource if any entry of its
// managedFields has a version that the definition lacks. The upgrade moves such entries to a served
// version and reports that. No manager loses a field.
func upgradesBehindAGoneVersion(t *testing.T, c *chain) {
	ns := c.home()
	group, kind, plural := "moving.example.com", "Moving", "movings"
	definition := versioned(group, kind, plural, "v1alpha1", "v1")
	c.create(definition)
	one := rev(1).phase("base", in("v1alpha1", widget(group, kind, ns, "w", "1")))
	c.roll(one)
	old := c.outsider.Resource(schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: plural}).Namespace(ns)
	edit := func(by, patch string, subresources ...string) {
		t.Helper()
		if _, err := old.Patch(t.Context(), "w", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: by}, subresources...); err != nil {
			t.Fatal(err)
		}
	}
	edit("somebody", `{"metadata":{"labels":{"team":"blue"}},"spec":{"theirs":"1"}}`)
	edit("operator", `{"status":{"phase":"Ready"}}`, "status")
	c.redefine(versioned(group, kind, plural, "v1"))
	poll.Eventually(t, "v1alpha1 to be gone", func() (bool, string) {
		_, err := old.Get(t.Context(), "w", metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})

	w := widget(group, kind, ns, "w", "2")
	two := rev(2).phase("base", w)
	began := time.Now()
	c.roll(two, one)
	c.roll(two)
	t.Logf("upgraded within %s", time.Since(began).Round(10*time.Millisecond))
	c.settled(t, w)
	c.quiet()
	live := c.get(id(w))
	var managers []string
	for _, entry := range live.GetManagedFields() {
		managers = append(managers, entry.Manager+" "+entry.APIVersion)
	}
	slices.Sort(managers)
	if diff := cmp.Diff([]string{"operator " + group + "/v1", "penstock/" + c.name + " " + group + "/v1", "somebody " + group + "/v1"}, managers); diff != "" {
		t.Errorf("managers (-want +got):\n%s", diff)
	}
	if live.GetLabels()["team"] != "blue" || live.Object["spec"].(map[string]any)["theirs"] != "1" || live.Object["status"] == nil {
		t.Errorf("fields of other managers were lost: %v", live.Object)
	}
	said := strings.Join(c.events, "\n")
	for _, manager := range []string{"somebody", "operator", "penstock/" + c.name} {
		if !strings.Contains(said, manager+" from "+group+"/v1alpha1") {
			t.Errorf("no event reports that the entry of %s was moved: %s", manager, said)
		}
	}
	c.roll()
}

// upgradesWithItsDefinition: a revision drops a version from its definition, and contains the
// custom resource in the next version.
func upgradesWithItsDefinition(t *testing.T, c *chain) {
	ns := c.home()
	group, kind, plural := "together.example.com", "Together", "togethers"
	one := rev(1).phase("base", versioned(group, kind, plural, "v1alpha1", "v1"), in("v1alpha1", widget(group, kind, ns, "w", "1")))
	c.roll(one)
	newer, w := versioned(group, kind, plural, "v1"), widget(group, kind, ns, "w", "2")
	two := rev(2).phase("all", newer, w)
	c.roll(two, one)
	c.roll(two)
	c.settled(t, newer, w)
	// Another user deletes managedFields. The old manifest cannot be applied any more.
	c.patch(id(w), "somebody", `{"metadata":{"managedFields":[{}]}}`)
	last := widget(group, kind, ns, "w", "3")
	three := rev(3).phase("definitions", newer).phase("objects", last)
	c.roll(three, two)
	c.roll(three)
	c.settled(t, newer, last)
	c.roll()
}

// tellsOfRefusalsThatLast: while a conversion webhook is down, kube-apiserver answers each request
// for its objects with 500. The engine reports an object as stuck after StuckAfter, and not before.
// Other objects do not wait. After the outage no object is stuck.
func tellsOfRefusalsThatLast(t *testing.T, c *chain) {
	ns := c.home()
	now := clocktesting.NewFakePassiveClock(time.Now())
	c.clock = now
	group, kind := "away.example.com", "Converted"
	definition := versioned(group, kind, "converteds", "v1alpha1", "v1")
	c.create(definition)
	w, x := in("v1alpha1", widget(group, kind, ns, "w", "1")), configMap(ns, "x", "1")
	c.roll(rev(1).phase("base", x, w))

	away := httptest.NewTLSServer(http.NotFoundHandler())
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: away.Certificate().Raw})
	away.Close()
	broken := versioned(group, kind, "converteds", "v1alpha1", "v1")
	broken["spec"].(map[string]any)["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": away.URL, "caBundle": authority}}}
	c.redefine(broken)
	two := rev(2).phase("base", configMap(ns, "x", "2"), in("v1alpha1", widget(group, kind, ns, "w", "2")))
	one := rev(1).phase("base", x, w)
	c.become(two, one)
	const refused = "Converted.away.example.com conversion-away/w: TargetUnreachable"
	report := c.until("refused", func(r rollout.Report) bool { return strings.Contains(strings.Join(failures(r), "\n"), refused) })
	stuck := func(r rollout.Report) *rollout.Failure {
		for _, layer := range r.Layers {
			for _, phase := range layer.Phases {
				for _, f := range phase.Failures {
					if f.Stuck {
						return &f
					}
				}
			}
		}
		return nil
	}
	if f := stuck(report); f != nil {
		t.Errorf("the failure was reported at once: %+v", f)
	}
	now.SetTime(now.Now().Add(rollout.StuckAfter))
	report = c.until("stuck", func(r rollout.Report) bool { return stuck(r) != nil })
	if f := stuck(report); f.Name != "w" || !strings.Contains(f.Message, "onversion webhook") || f.NeedsPerson {
		t.Errorf("the failure is %+v", f)
	}
	other := c.targetCluster.chain("beside-a-dead-webhook")
	other.roll(rev(1).phase("base", configMap(ns, "z", "1")))
	other.roll()

	spec := definition["spec"].(map[string]any)
	spec["conversion"] = map[string]any{"strategy": "None", "webhook": nil}
	c.redefine(definition)
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go func() { // time passes, so that retries become due
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				now.SetTime(now.Now().Add(time.Second))
			}
		}
	}()
	c.until("complete", func(r rollout.Report) bool { return complete(r) && stuck(r) == nil })
	c.settled(t, two.objects()...)
	c.roll()
}
