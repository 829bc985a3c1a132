//go:build integration

package e2e_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/await"
	"github.com/penstock-project/penstock/test/framework/poll"
)

func revisionsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "olm.operatorframework.io", Version: "v1alpha1", Resource: "clusterextensionrevisions"}
}

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func namespaces() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

func deployments() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

// roll creates a revision and returns when it has succeeded.
func (w sharedPlane) roll(d draft) {
	w.t.Helper()
	w.MustKubectlInput(d.String(), "create", "-f", "-")
	w.succeeded(d.Name)
}

// succeeded waits with kubectl until a revision has succeeded.
func (w sharedPlane) succeeded(name string) {
	w.t.Helper()
	out := w.Kubectl("wait", "--for=condition=Succeeded", "cer/"+name, poll.TimeoutFlag)
	if out.ExitCode != 0 {
		w.t.Fatalf("%s\n%s", out, w.Kubectl("describe", "cer", name))
	}
}

// namespace creates a namespace for the scenario.
func (w sharedPlane) namespace(name string) string {
	w.t.Helper()
	w.MustKubectl("create", "namespace", name)
	return name
}

// gone waits until objects do not exist.
func (w sharedPlane) gone(args ...string) {
	w.t.Helper()
	w.MustKubectl(append([]string{"wait", "--for=delete", poll.TimeoutFlag}, args...)...)
}

// absent fails if an object exists.
func (w sharedPlane) absent(args ...string) {
	w.t.Helper()
	out := w.Kubectl(append([]string{"get", "--output=name"}, args...)...)
	if out.ExitCode == 0 || !strings.Contains(out.Stderr, "NotFound") {
		w.t.Errorf("the object still exists: %s", out)
	}
}

// value waits until a field of each object has a value.
func (w sharedPlane) value(want, path string, args ...string) {
	w.t.Helper()
	w.MustKubectl(append([]string{"wait", poll.TimeoutFlag, "--for=jsonpath={" + path + "}=" + want}, args...)...)
}

// read returns a field of an object, or "".
func (w sharedPlane) read(path string, args ...string) string {
	w.t.Helper()
	return w.MustKubectl(append([]string{"get", "--output=jsonpath={" + path + "}"}, args...)...)
}

// until watches an object until check returns nil, for states that kubectl cannot wait for.
func (w sharedPlane) until(resource schema.GroupVersionResource, namespace, name string, check func(*unstructured.Unstructured) error) {
	w.t.Helper()
	last := fmt.Errorf("it does not exist")
	err := w.watch(w.client.Resource(resource).Namespace(namespace), fields.OneTermEqualSelector("metadata.name", name), func(o *unstructured.Unstructured) bool {
		last = check(o)
		return last == nil
	})
	if err != nil {
		w.t.Fatalf("%s %s/%s: %v (%v)\n%s", resource.Resource, namespace, name, last, err, w.Kubectl("get", "cer", "-o", "wide"))
	}
}

// watch returns when an object passes.
func (w sharedPlane) watch(client dynamic.ResourceInterface, selector fields.Selector, passes func(*unstructured.Unstructured) bool) error {
	return await.Selected(w.t.Context(), client, selector, func(found *unstructured.Unstructured) (bool, error) {
		return found != nil && passes(found), nil
	})
}

// condition waits until a condition of a revision has a status and a message with all texts.
func (w sharedPlane) condition(revision, kind, status string, texts ...string) {
	w.t.Helper()
	w.until(revisionsResource(), "", revision, func(o *unstructured.Unstructured) error {
		c, err := conditionOf(o, kind)
		if err != nil {
			return err
		}
		if string(c.Status) != status {
			return fmt.Errorf("condition %s is %s (%s: %s), want %s", kind, c.Status, c.Reason, c.Message, status)
		}
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				return fmt.Errorf("the message of %s does not say %q: %s", kind, text, c.Message)
			}
		}
		return nil
	})
}

func conditionOf(o *unstructured.Unstructured, kind string) (metav1.Condition, error) {
	var revision v1alpha1.ClusterExtensionRevision
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &revision); err != nil {
		return metav1.Condition{}, err
	}
	c := meta.FindStatusCondition(revision.Status.Conditions, kind)
	if c == nil {
		return metav1.Condition{}, fmt.Errorf("there is no condition %s", kind)
	}
	if c.ObservedGeneration != o.GetGeneration() {
		return metav1.Condition{}, fmt.Errorf("condition %s is of generation %d, not of %d", kind, c.ObservedGeneration, o.GetGeneration())
	}
	return *c, nil
}

// event waits for an event of a revision that contains all texts.
func (w sharedPlane) event(revision, reason string, texts ...string) {
	w.t.Helper()
	events := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace("default")
	selector := fields.SelectorFromSet(fields.Set{"involvedObject.name": revision, "reason": reason})
	var seen []string
	err := w.watch(events, selector, func(o *unstructured.Unstructured) bool {
		note, _, _ := unstructured.NestedString(o.Object, "message")
		seen = append(seen, note)
		return containsAll(note, texts)
	})
	if err != nil {
		w.t.Errorf("no event %s about %s says %q (%v); seen:\n%s", reason, revision, texts, err, strings.Join(seen, "\n"))
	}
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// says fails if the output lacks one of the texts.
func (w sharedPlane) says(output string, texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		if !strings.Contains(output, text) {
			w.t.Errorf("%q is not in:\n%s", text, output)
		}
	}
}

// refused runs kubectl with an input that must be refused with a message that contains all texts.
func (w sharedPlane) refused(input string, args []string, texts ...string) {
	w.t.Helper()
	out := w.KubectlInput(input, args...)
	if out.ExitCode == 0 {
		w.t.Errorf("the request was not refused: %s", out)
	}
	w.says(out.Stderr, texts...)
}
