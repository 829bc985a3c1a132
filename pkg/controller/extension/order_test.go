package extension

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/extension"
)

// other writes an extension other than lamp, with an installed version, empty for none, and a
// requires annotation.
func (p *plane) other(name, version, requires string) {
	p.Helper()
	p.writing.Lock()
	defer p.writing.Unlock()
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"namespace": "others", "source": map[string]any{"sourceType": "Catalog", "catalog": map[string]any{"packageName": name}}},
	}}
	object.SetGroupVersionKind(extension.Kind)
	object.SetName(name)
	if requires != "" {
		annotate(object, extension.RequiresAnnotation, requires)
	}
	if version != "" {
		object.Object["status"] = map[string]any{
			"install":    map[string]any{"bundle": map[string]any{"name": name, "version": version}},
			"conditions": []any{map[string]any{"type": "Installed", "status": "True"}, map[string]any{"type": "Available", "status": "True"}},
		}
	}
	objects := p.host.Resource(extension.Resource)
	_, err := objects.Create(p.Context(), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = objects.Update(p.Context(), object, metav1.UpdateOptions{})
	}
	if err != nil {
		p.Fatal(err)
	}
}

func requires(value string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) { annotate(object, extension.RequiresAnnotation, value) }
}

// TestRequires: a required extension is installed first, in an allowed version. An installed
// version stays if the required extension is deleted. The next version waits.
func TestRequires(t *testing.T) {
	p := newPlane(t)
	p.publish("1.0.0")
	p.apply(requires("power>=2"))
	p.process()
	waits := func(why string) {
		t.Helper()
		p.await(why, func() bool {
			return p.condition("Ready") == "False/RequirementsUnmet" && strings.Contains(p.message("Ready"), why)
		})
		if shown := p.shown(); shown != "" {
			t.Fatalf("there is %s", shown)
		}
	}
	waits("there is no ClusterExtension power")
	p.other("power", "", "")
	waits("ClusterExtension power is not installed yet")
	p.other("power", "1.0.0", "")
	waits("ClusterExtension power has 1.0.0")
	p.other("power", "2.0.0", "")
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	p.await("it is installed", func() bool { return p.condition("Ready") == "True/Succeeded" })

	p.other("power", "1.0.0", "")
	p.apply(version("1.1.0"))
	p.publish("1.0.0", "1.1.0")
	p.await("the next version waits", func() bool { return p.condition("Ready") == "False/RequirementsUnmet" })
	p.other("power", "2.1.0", "")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 alice")
}

// TestRequiredByOthers: a version that an installed extension does not allow waits. It continues
// after a user acknowledges exactly that, or after the requirement ends.
func TestRequiredByOthers(t *testing.T) {
	held := func(t *testing.T) *plane {
		t.Helper()
		p := newPlane(t)
		p.publish("1.0.0")
		p.other("house", "7.0.0", "lamp<1.1.0")
		p.apply(nil)
		p.process()
		p.awaitRevisions("1 Active 1.0.0 alice")
		p.succeed("lamp-1")
		p.apply(version("1.1.0"))
		p.publish("1.0.0", "1.1.0")
		p.await("it is held", func() bool {
			return p.condition("Ready") == "False/RequiredByOthers" && p.condition("Stalled") == "True/RequiredByOthers"
		})
		return p
	}
	const done = "1 Active 1.0.0 alice, 2 Active 1.1.0 alice"
	t.Run("Acknowledged", func(t *testing.T) {
		p := held(t)
		message := p.message("Ready")
		_, id, found := strings.Cut(message, extension.AcknowledgeDependentsAnnotation+"=")
		if !found || !strings.Contains(message, "1 installed extensions do not allow 1.1.0, such as house (requires lamp<1.1.0)") {
			t.Fatalf("it says %q", message)
		}
		p.apply(func(object *unstructured.Unstructured) {
			annotate(object, extension.AcknowledgeDependentsAnnotation, id)
		})
		p.awaitRevisions(done)
	})
	t.Run("NotRequired", func(t *testing.T) {
		p := held(t)
		p.other("house", "7.0.0", "lamp")
		p.awaitRevisions(done)
	})
	t.Run("NotInstalled", func(t *testing.T) {
		p := held(t)
		p.other("house", "", "lamp<1.1.0")
		p.awaitRevisions(done)
	})
	t.Run("Deleted", func(t *testing.T) {
		p := held(t)
		if err := p.host.Resource(extension.Resource).Delete(t.Context(), "house", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		p.awaitRevisions(done)
	})
}

// TestBundleRequires: a bundle that requires a package waits, and the message has the command that
// installs the package. It continues once an extension has the package, or a user accepts that it
// is provided by other means.
func TestBundleRequires(t *testing.T) {
	waiting := func(t *testing.T, requires string) *plane {
		t.Helper()
		p := newPlane(t)
		p.publish("1.0.0")
		p.mu.Lock()
		p.images["r.example/lamp:v1.0.0"].(fstest.MapFS)["metadata/dependencies.yaml"] = &fstest.MapFile{Data: []byte("dependencies: [" + requires + "]\n")}
		p.mu.Unlock()
		p.apply(nil)
		p.process()
		p.await("it waits", func() bool {
			return p.condition("Ready") == "False/RequirementsUnmet" && strings.Contains(p.message("Ready"), extension.AcceptRequirementsAnnotation+"=true")
		})
		return p
	}
	const done = "1 Active 1.0.0 alice"
	const power = "{type: olm.package, value: {packageName: power, version: '>=2.0.0'}}"
	t.Run("Installed", func(t *testing.T) {
		p := waiting(t, power)
		p.other("power", "1.0.0", "")
		p.await("another version does not do", func() bool { return strings.Contains(p.message("Ready"), "ClusterExtension power has 1.0.0") })
		p.other("power", "2.1.0", "")
		p.awaitRevisions(done)
	})
	t.Run("Accepted", func(t *testing.T) {
		p := waiting(t, power)
		p.apply(func(object *unstructured.Unstructured) {
			annotate(object, extension.AcceptRequirementsAnnotation, "true")
		})
		p.awaitRevisions(done)
	})
	t.Run("Kind", func(t *testing.T) {
		p := waiting(t, "{type: olm.gvk, value: {group: p.io, version: v1, kind: Plug}}")
		p.mu.Lock()
		p.served = []string{"p.io/v1/Plug"}
		p.mu.Unlock()
		p.clock.Step(10 * time.Minute)
		p.awaitRevisions(done)
	})
	t.Run("Kept", func(t *testing.T) {
		p := waiting(t, power)
		p.other("power", "2.1.0", "")
		p.awaitRevisions(done)
		p.succeed("lamp-1")
		p.await("it is installed", func() bool { return p.condition("Ready") == "True/Succeeded" })
		p.other("power", "1.0.0", "")
		before := p.annotation("lamp-1", extension.MadeOfAnnotation)
		p.set(extension.CollisionProtectionAnnotation, "IfNoController")
		p.await("what is installed stays", func() bool {
			return p.condition("Ready") == "True/Succeeded" && p.revisions["lamp-1"].Annotations[extension.MadeOfAnnotation] != before
		})
		// A patched revision has the same requirements as the installed revision.
		p.set(extension.PatchesAnnotation, "[{target: {kind: ConfigMap, name: lamp}, type: Merge, patch: {data: {text: mended}}}]")
		p.awaitRevisions(done + ", 2 Active 1.0.0 alice")
	})
}
