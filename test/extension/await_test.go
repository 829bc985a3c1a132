//go:build integration

package extension_test

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/await"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// present and absent are conditions for await.
func present(object *unstructured.Unstructured) (bool, error) { return object != nil, nil }
func absent(object *unstructured.Unstructured) (bool, error)  { return object == nil, nil }

// await waits for a state of an object and returns it. The function is gets nil for an object that
// does not exist. Objects of core and apps are in the scenario's namespace.
func (w shared) await(resource schema.GroupVersionResource, name, what string, is func(*unstructured.Unstructured) (bool, error)) *unstructured.Unstructured {
	w.t.Helper()
	var objects dynamic.ResourceInterface = w.host.Resource(resource)
	if resource.Group == "" || resource.Group == "apps" {
		objects = w.host.Resource(resource).Namespace(w.name)
	}
	return await.Object(w.t, objects, name, what, is)
}

// awaitExtension waits for a state of an extension and returns it.
func (w shared) awaitExtension(name, what string, is func(*extension.Extension) bool) *extension.Extension {
	w.t.Helper()
	var found *extension.Extension
	w.await(extension.Resource, name, what, func(object *unstructured.Unstructured) (bool, error) {
		if object == nil {
			return false, nil
		}
		var err error
		if found, err = extension.From(object); err != nil {
			return false, err
		}
		return is(found), nil
	})
	return found
}

// awaitRevision waits for a state of a revision and returns it.
func (w shared) awaitRevision(name, what string, is func(*olmv1alpha1.ClusterExtensionRevision) bool) *olmv1alpha1.ClusterExtensionRevision {
	w.t.Helper()
	found := &olmv1alpha1.ClusterExtensionRevision{}
	w.await(olmv1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"), name, what, func(object *unstructured.Unstructured) (bool, error) {
		if object == nil {
			return false, nil
		}
		found = &olmv1alpha1.ClusterExtensionRevision{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found); err != nil {
			return false, err
		}
		return is(found), nil
	})
	return found
}

// awaitGone waits until an object does not exist.
func (w shared) awaitGone(resource schema.GroupVersionResource, name, what string) {
	w.t.Helper()
	w.await(resource, name, what, absent)
}

func (w shared) awaitCatalog(name, what string, is func(*clustercatalog.Catalog) bool) {
	w.t.Helper()
	w.await(clustercatalog.Resource, name, what, func(object *unstructured.Unstructured) (bool, error) {
		if object == nil {
			return false, nil
		}
		found, err := clustercatalog.From(object)
		return err == nil && is(found), err
	})
}

// condition returns "status/reason" of a condition of the current generation, or "".
func condition(e *extension.Extension, kind string) string {
	found := meta.FindStatusCondition(e.Status.Conditions, kind)
	if found == nil || found.ObservedGeneration != e.Generation {
		return ""
	}
	return string(found.Status) + "/" + found.Reason
}

// message returns the message of a condition.
func message(e *extension.Extension, kind string) string {
	if found := meta.FindStatusCondition(e.Status.Conditions, kind); found != nil {
		return found.Message
	}
	return ""
}

// installed reports whether a version is installed and the rollout is complete.
func installed(version string) func(*extension.Extension) bool {
	return func(e *extension.Extension) bool {
		return e.Status.Install != nil && e.Status.Install.Bundle.Version == version &&
			condition(e, "Installed") == "True/Succeeded" && condition(e, "Progressing") == "True/Succeeded"
	}
}

// succeeded reports whether a revision has succeeded.
func succeeded(r *olmv1alpha1.ClusterExtensionRevision) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, olmv1alpha1.ConditionSucceeded)
}

// extend returns the manifest of a ClusterExtension of a package in the scenario's namespace. The
// parameter of lists additional fields of spec, such as "install: …", or of the catalog source,
// such as "version: …".
func (w shared) extend(name, pkg string, of ...string) string {
	catalog, more, annotations := "", "", ""
	for _, one := range of {
		switch key, _, _ := strings.Cut(one, ":"); {
		case strings.Contains(key, "/"):
			annotations += one + ", "
		case key == "version" || key == "channels" || key == "selector" || key == "upgradeConstraintPolicy":
			catalog += ", " + one
		default:
			more += ", " + one
		}
	}
	return fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: %s, annotations: {%s}}, spec: {namespace: %s, source: {sourceType: Catalog, catalog: {packageName: %s%s}}%s}}",
		name, annotations, w.name, pkg, catalog, more)
}

// apply writes a manifest as a user. The extension of that name is deleted when the scenario ends.
func (w shared) apply(as person, name, manifest string) {
	w.t.Helper()
	as.MustKubectlInput(manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
	w.t.Cleanup(func() { w.Kubectl("delete", "--ignore-not-found", "--wait=false", "clusterextension", name) })
}

// waitsForApproval reports whether a revision waits for an approval.
func waitsForApproval(r *olmv1alpha1.ClusterExtensionRevision) bool {
	return r.Annotations[extension.ProposedAnnotation] == "true" && r.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused && r.DeletionTimestamp == nil
}

// eventually polls for a state that no watch reports.
func (w shared) eventually(what string, is func() bool) {
	w.t.Helper()
	err := poll.Until(w.t.Context(), func(context.Context) bool { return is() })
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}
