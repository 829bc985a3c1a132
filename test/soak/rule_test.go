package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/cluster/plane"
)

// settle lets every chain go on that is paused, and waits until all are as the rule
// says. It fails the test when that does not come.
func (w *world) settle() {
	w.t.Helper()
	w.say("settling: %s", w.tally.String())
	deadline := time.Now().Add(patience)
	for {
		for _, c := range w.chains {
			w.author.set(c, olmv1alpha1.LifecycleStateActive)
		}
		wrong := w.wrong()
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("after %s it is not as the rule says:\n%s\n%s", patience, strings.Join(wrong[:min(20, len(wrong))], "\n"), w.Kubectl("get", "cer", "-o", "wide"))
		}
		pause(w.t.Context(), 2*time.Second)
	}
}

// wrong compares the cluster with the revisions: of each chain the newest one that
// is not archived is there, whole, and nothing else has the chain's label.
func (w *world) wrong() []string {
	list, err := w.author.revisions.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	newest := map[string]olmv1alpha1.ClusterExtensionRevision{}
	var wrong []string
	for _, revision := range list.Items {
		if revision.DeletionTimestamp != nil {
			wrong = append(wrong, revision.Name+" is being deleted")
		}
		if revision.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived {
			continue
		}
		chain := revision.Labels[olmv1alpha1.ChainLabel]
		if before, more := newest[chain]; more {
			wrong = append(wrong, fmt.Sprintf("%s and %s are both active", before.Name, revision.Name))
		}
		newest[chain] = revision
	}
	want := map[string]string{}
	for chain, revision := range newest {
		wrong = append(wrong, unfinished(revision)...)
		for _, phase := range revision.Spec.Phases {
			for _, o := range phase.Objects {
				want[key(resource(o.Kind).Resource, o.Namespace, o.Name)] = chain + " " + o.Digest
			}
		}
	}
	got, err := w.labelled()
	if err != nil {
		return append(wrong, err.Error())
	}
	for _, object := range slices.Sorted(maps.Keys(want)) {
		if got[object] != want[object] {
			wrong = append(wrong, fmt.Sprintf("%s is %q, want %q", object, got[object], want[object]))
		}
	}
	for _, object := range slices.Sorted(maps.Keys(got)) {
		if want[object] == "" {
			wrong = append(wrong, fmt.Sprintf("%s (%s) is there and nobody wants it", object, got[object]))
		}
	}
	return wrong
}

// unfinished says what a revision is not content with.
func unfinished(revision olmv1alpha1.ClusterExtensionRevision) []string {
	var wrong []string
	for _, kind := range []string{olmv1alpha1.ConditionSucceeded, olmv1alpha1.ConditionAvailable} {
		if c := meta.FindStatusCondition(revision.Status.Conditions, kind); c == nil || c.Status != metav1.ConditionTrue {
			wrong = append(wrong, fmt.Sprintf("%s is not %s: %+v", revision.Name, kind, c))
		}
	}
	return wrong
}

// labelled are all objects with the label of a chain, and which chain and digest
// they are of.
func (w *world) labelled() (map[string]string, error) {
	kinds := []schema.GroupVersionResource{resource("ConfigMap"), resource("Secret"), resource("ServiceAccount"), resource("CustomResourceDefinition")}
	for _, c := range w.chains {
		if c.defines {
			kinds = append(kinds, schema.GroupVersionResource{Group: c.group(), Version: "v1", Resource: "things"})
		}
	}
	found := map[string]string{}
	for _, kind := range kinds {
		list, err := w.meddler.Resource(kind).List(context.Background(), metav1.ListOptions{LabelSelector: olmv1alpha1.ChainLabel})
		if kind.Resource == "things" && err != nil {
			continue // its definition is not there
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.Resource, err)
		}
		for _, o := range list.Items {
			found[key(kind.Resource, o.GetNamespace(), o.GetName())] = o.GetLabels()[olmv1alpha1.ChainLabel] + " " + o.GetAnnotations()[olmv1alpha1.AppliedAnnotation]
		}
	}
	return found, nil
}

// witness asks the audit log: everything that was written for a rollout was named
// by a revision.
func (w *world) witness() {
	w.t.Helper()
	writes := w.Audit().Since(0, plane.ByAgent("penstock/"), plane.Writes(), func(r plane.Request) bool {
		return strings.HasSuffix(r.UserAgent, " rollout") && !strings.Contains(r.URI, "dryRun=")
	})
	strangers := 0
	for _, r := range writes {
		if !w.author.named[key(r.Resource, r.Namespace, r.Name)] {
			strangers++
			w.t.Errorf("no revision named what was written: %s", r)
		}
	}
	others := w.Audit().Since(0, plane.ByAgent("penstock/"), plane.Writes(), func(r plane.Request) bool {
		return strings.HasPrefix(r.Namespace, "soak-") && !strings.HasSuffix(r.UserAgent, " rollout")
	})
	for _, r := range others {
		w.t.Errorf("another part than the engine wrote where extensions are: %s", r)
	}
	if len(writes) == 0 {
		w.t.Error("the audit log has no write of the engine: the test sees nothing")
	}
	w.say("the audit log has %d writes of the engine, %d to objects that no revision named", len(writes), strangers)
	for i := range namespaces {
		for _, name := range []string{"bystander", "ext000-a", "ext001-z"} {
			live, err := w.meddler.Resource(resource("ConfigMap")).Namespace(fmt.Sprint("soak-", i)).Get(context.Background(), name+"-bystander", metav1.GetOptions{})
			if err != nil || live.GetGeneration() != 0 || len(live.GetManagedFields()) != 1 {
				w.t.Errorf("a bystander was touched: %v %v", live, err)
			}
		}
	}
}
