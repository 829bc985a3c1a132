//go:build integration

package soak

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/rule"
)

// settle activates paused chains, acknowledges deletions, and waits until all chains match the
// rule. After a timeout it fails the test.
func (w *soakPlane) settle() {
	w.t.Helper()
	w.say("settling: %s", w.tally.String())
	deadline := time.Now().Add(patience)
	for {
		for _, c := range w.chains {
			w.author.set(c, olmv1alpha1.LifecycleStateActive)
			w.author.acknowledge(c)
		}
		wrong := w.rule().Wrong(w.t.Context())
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("after %s it is not as the rule says:\n%s\n%s", patience, strings.Join(wrong[:min(20, len(wrong))], "\n"), w.Kubectl("get", "cer", "-o", "wide"))
		}
		pause(w.t.Context(), 2*time.Second)
	}
}

// rule returns the parts of the cluster that are compared.
func (w *soakPlane) rule() rule.Cluster {
	kinds := []schema.GroupVersionResource{resource("ConfigMap"), resource("Secret"), resource("ServiceAccount"), resource("CustomResourceDefinition")}
	for _, c := range w.chains {
		if c.defines {
			kinds = append(kinds, schema.GroupVersionResource{Group: c.group(), Version: "v1", Resource: "things"})
		}
	}
	return rule.Cluster{Revisions: w.author.revisions, Objects: w.meddler, Resources: kinds}
}

// witness checks in the audit log that a revision named every object that the engine wrote.
func (w *soakPlane) witness() {
	w.t.Helper()
	writes := w.Audit().Since(0, plane.ByAgent("penstock/"), plane.Writes(), func(r plane.Request) bool {
		return strings.HasSuffix(r.UserAgent, " rollout") && !strings.Contains(r.URI, "dryRun=")
	})
	strangers := 0
	for _, r := range writes {
		if !w.author.named[rule.Key(r.Resource, r.Namespace, r.Name)] {
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
