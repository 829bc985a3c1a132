//go:build integration

package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/rollout"
)

// saysWhatToDoAboutImmutableFields: kube-apiserver refuses to change an immutable field. The
// message advises the user to delete the object, and the rollout continues after that.
func saysWhatToDoAboutImmutableFields(t *testing.T, c *chain) {
	ns := c.home()
	service := func(ip string) map[string]any {
		spec := map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
		if ip != "" {
			spec["clusterIP"] = ip
		}
		return map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": ns, "name": "s"}, "spec": spec}
	}
	job := func(image string) map[string]any {
		return map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"namespace": ns, "name": "j"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"restartPolicy": "Never",
				"containers": []any{map[string]any{"name": "main", "image": image}}}}}}
	}
	base := configMap(ns, "x", "1")
	one := rev(1).phase("base", base, service("10.96.11.77"), job("a:1"))
	c.become(one)
	c.until("applied", func(rollout.Report) bool { return c.get(id(service(""))) != nil && c.get(id(base)) != nil })
	two := rev(2).phase("base", configMap(ns, "x", "2"), service("10.96.11.78"), job("a:2"))
	c.become(two, one)
	report := c.until("refused", func(r rollout.Report) bool {
		return strings.HasPrefix(strings.Join(failures(r), "\n"), "2/base Service immutable/s: ApplyRejected\n2/base Job.batch immutable/j: ApplyRejected")
	})
	for _, f := range report.Layers[0].Phases[0].Failures {
		if !strings.Contains(f.Message, "delete the object, and it is created as the manifest says") || !f.NeedsPerson {
			t.Errorf("the message has no instruction: %+v", f)
		}
	}
	if text := messages(report); !strings.Contains(text, "clusterIP") || !strings.Contains(text, "template") {
		t.Errorf("the message does not name the fields: %s", text)
	}
	if got := c.value(base); got != "1" {
		t.Errorf("another object of the phase was written: %s", got)
	}
	// The user deletes the objects as the message says. No more is needed.
	c.remove(id(service("")))
	background := metav1.DeletePropagationBackground
	if err := c.at(id(job(""))).Delete(t.Context(), "j", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	c.until("made anew", func(rollout.Report) bool {
		j := c.get(id(job("")))
		return c.value(two.objects()[0]) == "2" && j != nil && strings.Contains(fmt.Sprint(j.Object["spec"]), "a:2")
	})
}
