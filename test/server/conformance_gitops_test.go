//go:build integration

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func gitopsManners() map[string]manner {
	return map[string]manner{
		"ArgoCD": {do: argoCD},
		"Flux": {do: flux, deviations: []deviation{{
			what: "new and ready", ours: "Unknown", why: "it waits with kstatus, which takes what has no conditions for ready, as an Ingress is",
		}}},
	}
}

// withoutNoise returns an object as GitOps tools compare it, without values that the server sets.
func withoutNoise(object map[string]any) string {
	for _, path := range [][]string{
		{"status"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "uid"}, {"metadata", "creationTimestamp"},
	} {
		object = with(object, nil, path...)
	}
	return describe(object)
}

// drift compares as Argo CD with ServerSideDiff and Flux do: the result of a dry-run apply with the
// tool's field manager, and the live object.
func (s *subject) drift(letter, manager string, knob int) string {
	s.t.Helper()
	return s.driftOf(s.name(letter), manager, s.desired(letter, knob))
}

// driftOf is like drift, for any file.
func (s *subject) driftOf(name, manager string, desired map[string]any) string {
	s.t.Helper()
	live := s.ask(call{method: http.MethodGet, name: name})
	tried := s.sync(name, "dryRun=All&force=true&fieldManager="+manager, desired)
	switch {
	case tried.code >= 300:
		return "refused " + tried.short()
	case live.code == http.StatusNotFound:
		return "missing"
	case withoutNoise(tried.body) == withoutNoise(live.body):
		return "in sync"
	default:
		return fmt.Sprintf("out of sync, knob %t", describe(at(tried.body, s.knob...)) != describe(at(live.body, s.knob...)))
	}
}

// desired returns the content in Git: with the tool's label, and without finalizers.
func (s *subject) desired(letter string, knob int) map[string]any {
	return with(with(s.applied(letter, knob), nil, "metadata", "finalizers"), map[string]any{"scenario": s.base}, "metadata", "labels")
}

// argoCD: get, compare, apply, compare. Changes by other users are drift. Fields that they add are
// not.
func argoCD(s *subject) {
	const manager = "argocd-controller"
	sync := func(letter string, knob int) string {
		return s.apply(letter, "force=true&fieldManager="+manager, s.desired(letter, knob)).short()
	}
	s.note("at first", "%s", s.drift("a", manager, 1))
	s.note("sync", "%s", sync("a", 1))
	before := s.get("a").version()
	s.note("then", "%s", s.drift("a", manager, 1))
	s.note("a dry run changes", "%t", s.get("a").version() != before)
	s.note("sync again", "%s", sync("a", 1))
	s.note("sync again changes", "%t", s.get("a").version() != before)
	s.note("a commit", "%s", s.drift("a", manager, 2))
	s.note("its sync", "%s, %s", sync("a", 2), s.drift("a", manager, 2))
	s.turn("a", 3)
	s.note("somebody's change", "%s", s.drift("a", manager, 2))
	s.note("self-healing", "%s, %s", sync("a", 2), s.drift("a", manager, 2))
	s.patch("a", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"somebody": "was here"}}})
	s.judge("a", 1)
	s.note("somebody's addition, and status", "%s", s.drift("a", manager, 2))
	// Argo CD marks its objects with an annotation or a label.
	tracked := with(s.desired("a", 2), map[string]any{"argocd.argoproj.io/tracking-id": "app:x"}, "metadata", "annotations")
	s.note("tracking", "%s", s.apply("a", "force=true&fieldManager="+manager, tracked).short())
	// Without server-side apply Argo CD sends three-way patches, as kubectl does.
	s.note("client-side", "%s", said(s.KubectlInput(describe(s.desired("b", 1)), "apply", "-f", "-")))
	s.note("client-side, compared", "%s", s.drift("b", "kubectl", 1))
	s.note("replace", "%s", said(s.KubectlInput(describe(s.desired("b", 2)), "replace", "-f", "-")))
	s.note("prune", "%s", s.ask(call{method: http.MethodDelete, name: s.name("b"), body: map[string]any{"propagationPolicy": "Foreground"}}).short())
}

// flux: a dry-run detects drift. Flux understands the error if a change is impossible, and waits
// for the rollout.
func flux(s *subject) {
	const manager = "kustomize-controller"
	s.note("at first", "%s", s.drift("a", manager, 1))
	made := s.apply("a", "force=true&fieldManager="+manager, s.desired("a", 1))
	s.note("apply", "%s", made.short())
	conditions, _ := at(made.body, "status", "conditions").([]any)
	for _, c := range conditions {
		if condition := c.(map[string]any); condition["type"] == "Ready" {
			s.note("new and ready", "%v", condition["status"])
		}
	}
	s.note("then", "%s", s.drift("a", manager, 1))
	// Flux takes over objects that kubectl applied, by replacing kubectl's entry in managedFields.
	s.MustKubectlInput(s.file("b", 1), "apply", "-f", "-")
	entries, _ := at(s.get("b").body, "metadata", "managedFields").([]any)
	for _, entry := range entries {
		if e := entry.(map[string]any); strings.HasPrefix(fmt.Sprint(e["manager"]), "kubectl") {
			e["manager"], e["operation"] = manager, "Apply"
		}
	}
	s.answered("take over", call{method: http.MethodPatch, name: s.name("b"), contentType: jsonPatch, body: []any{
		map[string]any{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": s.get("b").version()},
	}})
	s.note("managers", "%s", s.managers("b"))
	s.note("taken over", "%s", s.drift("b", manager, 1))
	// An impossible change gets 422 Invalid, which lets Flux recreate the object if the user wants
	// that.
	name := s.desired("b", 1)
	s.note("another name", "%s", s.ask(call{method: http.MethodPatch, name: s.name("a"), query: "fieldManager=" + manager, contentType: applyPatch, body: name}).short())
	s.must(call{method: http.MethodDelete, name: s.name("b")})
	s.note("while it is being deleted", "%s", s.drift("b", manager, 2))
	// Flux waits until the applied generation is observed.
	applied := s.apply("a", "force=true&fieldManager="+manager, s.desired("a", 2))
	s.note("generation", "%v", at(applied.body, "metadata", "generation"))
	// Flux prunes by label, in the background, and only objects that it applied.
	s.note("prune", "%s", s.ask(call{method: http.MethodDelete, name: s.name("a"), body: map[string]any{
		"propagationPolicy": "Background", "preconditions": map[string]any{"uid": applied.uid()}}}).short())
}

// sync applies a file.
func (s *subject) sync(name, query string, desired map[string]any) reply {
	s.t.Helper()
	return s.ask(call{method: http.MethodPatch, name: name, query: query, contentType: applyPatch, body: desired})
}

// supersededInGit: files of superseded revisions stay in the repository and say Active. The host
// has no similar type to compare with.
func supersededInGit(t *testing.T, w servedHost) {
	for name, manager := range map[string]string{"ArgoCD": "argocd-controller", "Flux": "kustomize-controller"} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, w, revisionBreed(), strings.ToLower(name)+"git")
			number := func(n int, state string) (string, map[string]any) {
				name := fmt.Sprintf("%s-a-%d", s.base, n)
				file := with(with(with(s.desired("a", 1), name, "metadata", "name"), int64(n), "spec", "revision"), state, "spec", "lifecycleState")
				return name, file
			}
			ask := "force=true&fieldManager=" + manager
			one, older := number(1, "Active")
			two, newer := number(2, "Active")
			for i, file := range []map[string]any{older, newer} {
				if made := s.sync([]string{one, two}[i], ask, file); made.code != http.StatusCreated {
					t.Fatalf("applying revision %d: %s", i+1, made.raw)
				}
			}
			s.must(call{method: http.MethodPatch, name: one, contentType: mergePatch, body: map[string]any{"spec": map[string]any{"lifecycleState": "Archived"}}})
			before := s.must(call{method: http.MethodGet, name: one}).version()
			if got := s.driftOf(one, manager, older); got != "in sync" {
				t.Errorf("a superseded revision is %s", got)
			}
			again := s.sync(one, ask, older)
			if again.code != http.StatusOK || again.version() != before || len(again.warnings) != 1 || !strings.Contains(again.warnings[0], "stays Archived") {
				t.Errorf("applied again: %d, version %s after %s, warnings %q", again.code, again.version(), before, again.warnings)
			}
			// Both tools do this without server-side apply.
			if out := s.KubectlInput(describe(older), "apply", "-f", "-"); out.ExitCode != 0 || !strings.Contains(out.Stderr, "stays Archived") {
				t.Errorf("kubectl apply: %s", out)
			}
			// A revision that is paused in the repository is resumed there.
			_, paused := number(2, "Paused")
			s.sync(two, ask, paused)
			s.must(call{method: http.MethodPatch, name: two, query: "fieldManager=kubectl-patch", contentType: mergePatch, body: map[string]any{"spec": map[string]any{"lifecycleState": "Active"}}})
			if again := s.sync(two, ask, paused); len(again.warnings) != 1 || !strings.Contains(again.warnings[0], "is paused again, although kubectl-patch had resumed it") {
				t.Errorf("paused again: %d, warnings %q", again.code, again.warnings)
			}
			resumed := s.sync(two, ask, with(paused, nil, "spec", "lifecycleState"))
			if state := at(resumed.body, "spec", "lifecycleState"); state != "Active" || s.driftOf(two, manager, with(paused, nil, "spec", "lifecycleState")) != "in sync" {
				t.Errorf("lifecycleState without the line: %v", state)
			}
		})
	}
}
