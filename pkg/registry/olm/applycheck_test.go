package olm_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/penstock-project/penstock/pkg/applycheck"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// applyCheck is the real check, without a cluster. It can be switched off.
type applyCheck struct {
	builtin *applycheck.BuiltinTypes
	off     atomic.Bool
}

func newApplyCheck(t *testing.T) *applyCheck {
	t.Helper()
	builtin, err := applycheck.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return &applyCheck{builtin: builtin}
}

func (c *applyCheck) Check(ctx context.Context, _ string, objects []manifest.Object) ([]applycheck.Refusal, error) {
	if c.off.Load() {
		return nil, nil
	}
	return applycheck.Check(ctx, c.builtin, nil, objects)
}

func (c *applyCheck) Foresee(ctx context.Context, _ string, objects []manifest.Object) []applycheck.Note {
	if c.off.Load() {
		return nil
	}
	return applycheck.Foresee(ctx, c.builtin, nil, objects)
}

// podTwice returns a Pod with a duplicate environment variable.
func podTwice(name, second string) object {
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "namespace": "default"}, "spec": object{"containers": []any{
		object{"name": "main", "image": "x", "env": []any{object{"name": "A", "value": "hush-one"}, object{"name": "B"}, object{"name": "A", "value": second}}}}}}
}

// TestApplyCheck: manifests that server-side apply cannot take are refused before anything is
// stored. Manifests of an existing revision of the extension are accepted.
func TestApplyCheck(t *testing.T) {
	check := newApplyCheck(t)
	s := newServer(t, settings{applyCheck: check})
	const path = "spec.phases[0].objects[1].object.spec.containers[0].env[2]"
	says := func(t *testing.T, text string, words ...string) {
		t.Helper()
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("%q is not in: %s", word, text)
			}
		}
		if strings.Contains(text, "hush") {
			t.Errorf("it has a value: %s", text)
		}
	}
	twice := file("e-1", inline(configMap("a", "1"), podTwice("p", "hush-two")))
	for _, query := range []string{"", "?dryRun=All"} {
		s.unchanged(func() {
			got := s.do(call{method: http.MethodPost, path: revisions + query, body: twice}).want(t, http.StatusUnprocessableEntity)
			says(t, got.raw, path, "Pod default/p", `items 0 and 2`, `A`, "server-side apply accepts each only once")
		})
	}
	s.unchanged(func() {
		says(t, s.apply("tester", twice).want(t, http.StatusUnprocessableEntity).raw, path)
	})
	// Without a cluster, Penstock cannot know whether a newer version has the field.
	misspelt := object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s", "namespace": "default"}, "stringDate": object{"password": "hush"}}
	got := s.create(file("e-1", inline(misspelt))).want(t, http.StatusCreated)
	says(t, strings.Join(got.warnings, "\n"), "Secret default/s: stringDate: is not a field of this type", "could not be read")

	// The extension has objects from before the check.
	check.off.Store(true)
	s.create(file("e-2", inline(configMap("a", "1"), podTwice("p", "hush-two")))).want(t, http.StatusCreated)
	s.create(file("e-3", inline(configMap("a", "2")))).want(t, http.StatusCreated)
	check.off.Store(false)
	warned := func(t *testing.T, got response) {
		t.Helper()
		says(t, strings.Join(got.warnings, "\n"), "Pod default/p: spec.containers[0].env[2]", "items 0 and 2", "a rollout stops at it")
	}
	t.Run("Rollback", func(t *testing.T) {
		warned(t, s.rollback("e-2", "", "", nil).want(t, http.StatusCreated))
	})
	t.Run("SameContent", func(t *testing.T) {
		warned(t, s.create(file("e-5", inline(configMap("a", "3"), podTwice("p", "hush-two")))).want(t, http.StatusCreated))
	})
	t.Run("OtherContent", func(t *testing.T) {
		s.create(file("e-6", inline(configMap("a", "3"), podTwice("p", "hush-three")))).want(t, http.StatusUnprocessableEntity)
		// Another extension does not have these objects.
		s.create(file("f-1", inline(configMap("a", "3"), podTwice("p", "hush-two")))).want(t, http.StatusUnprocessableEntity)
	})
	t.Run("Foreseen", func(t *testing.T) {
		role := func(name string) object {
			return object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": name}, "aggregationRule": object{"clusterRoleSelectors": []any{}}, "rules": []any{}}
		}
		aggregated := file("g-1", inline(role("r"), role("s")))
		for _, query := range []string{"?dryRun=All", ""} {
			got := s.do(call{method: http.MethodPost, path: revisions + query, body: aggregated}).want(t, http.StatusCreated)
			says(t, strings.Join(got.warnings, "\n"), "ClusterRole.rbac.authorization.k8s.io r: rules are left out: the control plane fills the rules of a ClusterRole with aggregationRule (and 1 object more)")
		}
		if got := s.apply("tester", aggregated).want(t, http.StatusOK); len(got.warnings) > 0 {
			t.Errorf("applied again: %q", got.warnings)
		}
	})
	t.Run("DefinedLater", func(t *testing.T) {
		early := file("h-1", inline(object{"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": object{"name": "x", "namespace": "a"}}))
		spec := early["spec"].(object)
		spec["phases"] = append(spec["phases"].([]any), object{"name": "two", "objects": inline(object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "lamps.example.com"},
			"spec": object{"group": "example.com", "scope": "Namespaced", "names": object{"kind": "Lamp", "plural": "lamps"}, "versions": []any{object{"name": "v1", "served": true, "storage": true,
				"schema": object{"openAPIV3Schema": object{"type": "object"}}}}}})})
		got := s.create(early).want(t, http.StatusCreated)
		says(t, strings.Join(got.warnings, "\n"), "Lamp.example.com a/x comes in an earlier phase than its definition, CustomResourceDefinition.apiextensions.k8s.io lamps.example.com")
	})
	t.Run("Import", func(t *testing.T) {
		other := newServer(t, settings{applyCheck: check})
		archive := newArchived(t).revision(1, "Active", nil, configMap("a", "1"), podTwice("p", "hush-two"))
		warned(t, other.imported("e", "", archive).want(t, http.StatusCreated))
	})
}
