package olm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (s *server) delete(name string, options any) response {
	s.t.Helper()
	return s.do(call{method: http.MethodDelete, path: revisions + "/" + name, body: options})
}

// TestDelete: the write that marks a revision as being deleted also records the delete request.
func TestDelete(t *testing.T) {
	shared := newServer(t, settings{})
	type outcome struct {
		policy      any
		generation  any
		finalizers  any
		beingDelete bool
	}
	ours := []any{"penstock.dev/teardown"}
	withOrphan := []any{"penstock.dev/teardown", "orphan"}

	for name, tc := range map[string]struct {
		reason string
		delete func(s *server, name string)
		want   outcome
	}{
		"Default": {
			reason: "the objects go",
			delete: func(s *server, name string) { s.delete(name, nil).want(t, http.StatusOK) },
			want:   outcome{policy: "Delete", generation: float64(2), finalizers: ours, beingDelete: true},
		},
		"Background": {
			reason: "kubectl's default",
			delete: func(s *server, name string) {
				s.delete(name, object{"propagationPolicy": "Background"}).want(t, http.StatusOK)
			},
			want: outcome{policy: "Delete", generation: float64(2), finalizers: ours, beingDelete: true},
		},
		"Orphan": {
			reason: "kubectl delete --cascade=orphan",
			delete: func(s *server, name string) {
				s.delete(name, object{"propagationPolicy": "Orphan"}).want(t, http.StatusOK)
			},
			want: outcome{policy: "Orphan", generation: float64(2), finalizers: withOrphan, beingDelete: true},
		},
		"OrphanDependents": {
			reason: "the deprecated way to say it",
			delete: func(s *server, name string) { s.delete(name, object{"orphanDependents": true}).want(t, http.StatusOK) },
			want:   outcome{policy: "Orphan", generation: float64(2), finalizers: withOrphan, beingDelete: true},
		},
		"OrphanFinalizer": {
			reason: "the finalizer says it when the request says nothing",
			delete: func(s *server, name string) {
				s.patch(name, mergePatch, object{"metadata": object{"finalizers": withOrphan}}).want(t, http.StatusOK)
				s.delete(name, nil).want(t, http.StatusOK)
			},
			want: outcome{policy: "Orphan", generation: float64(2), finalizers: withOrphan, beingDelete: true},
		},
		"OrphanFinalizerOverruled": {
			reason: "an explicit policy comes first",
			delete: func(s *server, name string) {
				s.patch(name, mergePatch, object{"metadata": object{"finalizers": withOrphan}}).want(t, http.StatusOK)
				s.delete(name, object{"propagationPolicy": "Background"}).want(t, http.StatusOK)
			},
			want: outcome{policy: "Delete", generation: float64(2), finalizers: ours, beingDelete: true},
		},
		"OrphanAsAfterthought": {
			reason: "a second delete may still save the objects, and is seen by its generation",
			delete: func(s *server, name string) {
				s.delete(name, nil).want(t, http.StatusOK)
				s.delete(name, object{"propagationPolicy": "Orphan"}).want(t, http.StatusOK)
				s.delete(name, object{"propagationPolicy": "Orphan"}).want(t, http.StatusOK)
			},
			want: outcome{policy: "Orphan", generation: float64(3), finalizers: withOrphan, beingDelete: true},
		},
		"OrphanStays": {
			reason: "a second delete cannot take it back unasked",
			delete: func(s *server, name string) {
				s.delete(name, object{"propagationPolicy": "Orphan"}).want(t, http.StatusOK)
				s.delete(name, nil).want(t, http.StatusOK)
			},
			want: outcome{policy: "Orphan", generation: float64(2), finalizers: withOrphan, beingDelete: true},
		},
		"Collection": {
			reason: "kubectl delete --all --cascade=orphan",
			delete: func(s *server, name string) {
				s.do(call{method: http.MethodDelete, path: revisions + "?fieldSelector=metadata.name%3D" + name, body: object{"propagationPolicy": "Orphan"}}).want(t, http.StatusOK)
			},
			want: outcome{policy: "Orphan", generation: float64(2), finalizers: withOrphan, beingDelete: true},
		},
		"DryRun": {
			reason: "only tried",
			delete: func(s *server, name string) {
				s.unchanged(func() {
					s.delete(name, object{"propagationPolicy": "Orphan", "dryRun": []any{"All"}}).want(t, http.StatusOK)
				})
			},
			want: outcome{policy: "Delete", generation: float64(1), finalizers: ours},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := shared.subtest(t)
			revision := strings.ToLower(name) + "-1"
			s.create(file(revision, inline(configMap("a", "1")))).want(t, http.StatusCreated)
			tc.delete(s, revision)
			live := s.get(revision)
			got := outcome{
				policy:      at(live, "spec", "teardownPolicy"),
				generation:  at(live, "metadata", "generation"),
				finalizers:  at(live, "metadata", "finalizers"),
				beingDelete: at(live, "metadata", "deletionTimestamp") != nil,
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFinalizer: a live revision always keeps the finalizer. It can be removed from a revision that
// is being deleted.
func TestFinalizer(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	none := object{"metadata": object{"finalizers": nil}}

	s.unchanged(func() { s.patch("e-1", mergePatch, none).want(t, http.StatusOK) })
	s.delete("e-1", nil).want(t, http.StatusOK)
	answer := s.patch("e-1", mergePatch, none).want(t, http.StatusOK)
	if got := strings.Join(answer.warnings, "; "); !strings.Contains(got, "penstock.dev/teardown") {
		t.Errorf("warnings %q, want one about the finalizer", got)
	}
	s.do(call{method: http.MethodGet, path: revisions + "/e-1"}).want(t, http.StatusNotFound)

	reused := s.create(file("e-1", nil)).want(t, http.StatusUnprocessableEntity)
	if diff := cmp.Diff([]string{"spec.revision"}, causes(reused)); diff != "" {
		t.Errorf("the number of a deleted revision (-want +got):\n%s", diff)
	}
}
