package olm_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/store/archive"
)

// inTheNameOf returns a client that sends requests as the ClusterExtension controller: from this
// process, impersonating an author.
func (s *server) inTheNameOf(who string) *server {
	s.t.Helper()
	const token = "own"
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Impersonate-User", who)
		r.Header.Set("Test-User", who)
		request.MarkInternal(s.handler, token).ServeHTTP(w, r)
	}))
	s.t.Cleanup(front.Close)
	loop := *s
	loop.url = front.URL
	return &loop
}

// notesOf returns all annotations that Penstock writes on a revision, with values that end in a
// text.
func notesOf(text string) object {
	out := object{}
	for _, key := range []string{"penstock.dev/made-of", "penstock.dev/author-stamp", "penstock.dev/extension-generation", "penstock.dev/channel", "penstock.dev/catalog"} {
		out[key] = key + text
	}
	maps.Copy(out, bundleNotesOf(text))
	return out
}

// bundleNotesOf returns the annotations that users also write on their own revisions.
func bundleNotesOf(text string) object {
	out := object{}
	for _, key := range []string{"bundle-version", "bundle-name", "package-name", "bundle-reference", "bundle-release"} {
		out["olm.operatorframework.io/"+key] = key + text
	}
	return out
}

// noted returns Penstock's annotations of a revision.
func (s *server) noted(name string) object {
	s.t.Helper()
	all, _ := at(s.get(name), "metadata", "annotations").(object)
	out := object{}
	for key := range notesOf("") {
		if value, has := all[key]; has {
			out[key] = value
		}
	}
	return out
}

// TestNotes: only Penstock changes its notes about a ClusterExtension, even if users may write
// revisions. These users can still write their own revisions.
func TestNotes(t *testing.T) {
	s := newServer(t, settings{})
	check := func(reason, name string, want object) {
		t.Helper()
		if diff := cmp.Diff(want, s.noted(name)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", reason, name, diff)
		}
	}
	annotated := func(revision, annotations object) object {
		return with(revision, annotations, "metadata", "annotations")
	}
	patch := func(annotations object) object { return object{"metadata": object{"annotations": annotations}} }
	made := annotated(file("e-1", inline(configMap("a", "1"))), notesOf("-1"))
	s.inTheNameOf("alice").create(made).want(t, http.StatusCreated)
	check("the loop notes in the name of an author", "e-1", notesOf("-1"))

	// No user can change or remove a note, by any kind of write. This includes the user for whom
	// the revision was created.
	nothing := object{}
	for key := range notesOf("") {
		nothing[key] = nil
	}
	for reason, answer := range map[string]response{
		"merge patch": s.patch("e-1", mergePatch, patch(notesOf("-forged"))),
		"removal":     s.patch("e-1", mergePatch, patch(nothing)),
		"author":      s.inTheNameOf("alice").patch("e-1", mergePatch, patch(notesOf("-forged"))),
		"json patch": s.do(call{method: http.MethodPatch, path: revisions + "/e-1", contentType: "application/json-patch+json",
			body: []any{object{"op": "replace", "path": "/metadata/annotations/penstock.dev~1made-of", "value": "forged"}}}),
		"apply": s.do(call{method: http.MethodPatch, path: revisions + "/e-1?fieldManager=kubectl&force=true", contentType: "application/apply-patch+yaml",
			body: annotated(made, notesOf("-forged"))}),
		"update": s.do(call{method: http.MethodPut, path: revisions + "/e-1", body: annotated(made, notesOf("-forged"))}),
		"status": s.patch("e-1/status", mergePatch, patch(notesOf("-forged"))),
		"plain":  s.do(call{method: http.MethodPut, path: revisions + "/e-1", body: file("e-1", inline(configMap("a", "1")))}),
	} {
		if answer.code != http.StatusOK {
			t.Errorf("%s: answered %d %s", reason, answer.code, answer.raw)
		}
		check(reason, "e-1", notesOf("-1"))
	}
	s.patch("e-1", mergePatch, patch(object{"team": "lamps"})).want(t, http.StatusOK)
	if got := at(s.get("e-1"), "metadata", "annotations", "team"); got != "lamps" {
		t.Errorf("another annotation is %v", got)
	}
	s.asPenstock().patch("e-1", mergePatch, patch(notesOf("-2"))).want(t, http.StatusOK)
	check("Penstock does", "e-1", notesOf("-2"))

	// A user's own revision can name its version, but not Penstock as its creator.
	s.create(annotated(file("e-2", inline(configMap("a", "2"))), notesOf("-own"))).want(t, http.StatusCreated)
	check("what was exported is created by somebody", "e-2", bundleNotesOf("-own"))
	s.patch("e-2", mergePatch, patch(notesOf("-changed"))).want(t, http.StatusOK)
	check("and changed", "e-2", bundleNotesOf("-changed"))
	s.do(call{method: http.MethodPatch, path: revisions + "/e-3?fieldManager=kubectl", contentType: "application/apply-patch+yaml",
		body: annotated(file("e-3", inline(configMap("a", "3"))), notesOf("-applied"))}).want(t, http.StatusCreated)
	check("and applied", "e-3", bundleNotesOf("-applied"))

	// A rollback has the notes of the restored content.
	s.rollback("e-1", "", "", nil).want(t, http.StatusCreated)
	check("a rollback", "e-4", notesOf("-2"))
	s.patch("e-4", mergePatch, patch(notesOf("-forged"))).want(t, http.StatusOK)
	check("a rollback that is patched", "e-4", notesOf("-2"))
}

// TestImportedNotes: notes in an archive are dropped, because the importer may have written them.
func TestImportedNotes(t *testing.T) {
	s := newServer(t, settings{})
	a := newArchived(t).revision(1, "Active", func(r *archive.Revision) {
		r.Annotations = map[string]string{}
		for key, value := range notesOf("-1") {
			r.Annotations[key] = value.(string)
		}
	}, configMap("a", "1"))
	s.imported("e", "", a).want(t, http.StatusCreated)
	if diff := cmp.Diff(bundleNotesOf("-1"), s.noted("e-1")); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}
