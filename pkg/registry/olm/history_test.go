package olm_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/store/chain"
)

const (
	group     = "/apis/olm.operatorframework.io/v1alpha1"
	histories = group + "/revisionhistories"
)

func cellsOf(r response) [][]any {
	var all [][]any
	rows, _ := r.body["rows"].([]any)
	for _, row := range rows {
		all = append(all, at(row, "cells").([]any))
	}
	return all
}

func columnsOf(r response) []string {
	var all []string
	columns, _ := r.body["columnDefinitions"].([]any)
	for _, column := range columns {
		all = append(all, at(column, "name").(string))
	}
	return all
}

// TestHistory: an existing revision is shown with its current state. A deleted revision is shown
// from the head's history.
func TestHistory(t *testing.T) {
	s := newServer(t, settings{})
	annotated := with(file("e-1", inline(configMap("a", "1"), configMap("b", "1"))), object{
		"olm.operatorframework.io/bundle-version": "v1.0.0", "kubernetes.io/change-cause": "first try",
	}, "metadata", "annotations")
	s.create(annotated).want(t, http.StatusCreated)
	s.create(file("e-2", inline(configMap("a", "2"), configMap("c", "1"), configMap("d", "1")))).want(t, http.StatusCreated)
	s.create(file("other-1", nil)).want(t, http.StatusCreated)
	s.do(call{
		method: http.MethodPatch, path: revisions + "/e-2/status", contentType: mergePatch,
		body: object{"status": object{"conditions": []any{condition("Succeeded", "True"), condition("Failing", "True")}}},
	}).want(t, http.StatusOK)

	got := s.do(call{method: http.MethodGet, path: histories + "/e"}).want(t, http.StatusOK).body
	records := got["revisions"].([]any)
	for _, record := range records {
		if at(record, "createdAt") == nil {
			t.Errorf("%v has no time of creation", at(record, "name"))
		}
		delete(record.(object), "createdAt")
	}
	first := object{
		"name": "e-1", "revision": 1.0, "version": "v1.0.0", "state": "Active", "result": "Incomplete", "objects": 2.0,
		"changes": object{"added": 2.0, "changed": 0.0, "removed": 0.0}, "requestedBy": "alice", "cause": "first try",
	}
	second := object{
		"name": "e-2", "revision": 2.0, "state": "Active", "result": "Succeeded", "objects": 3.0, "completedAt": "2026-01-02T03:04:05Z",
		"changes": object{"added": 2.0, "changed": 1.0, "removed": 1.0}, "requestedBy": "alice",
	}
	want := object{
		"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "RevisionHistory",
		"metadata": object{"name": "e"}, "revisions": []any{first, second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}

	// e-1 is deleted; the controllers' history of it stays.
	if err := s.heads.Record(t.Context(), "e", chain.Row{
		Revision: 1, UID: types.UID(at(s.get("e-1"), "metadata", "uid").(string)), Result: "Stalled", Version: "v1.0.0", Cause: "first try",
		Counts: &chain.Counts{Objects: 2, Added: 2}, DeletedAt: time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC),
	}); err != nil {
		t.Fatal(err)
	}
	s.remove("e-1")
	table := s.do(call{method: http.MethodGet, accept: asTable, path: revisions + "/e-2/history?includeObject=Object"}).want(t, http.StatusOK)
	wantColumns := []string{"Revision", "Version", "State", "Result", "Changes", "Objects", "Created", "Completed", "By", "Cause"}
	if diff := cmp.Diff(wantColumns, columnsOf(table)); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	rows := cellsOf(table)
	for _, row := range rows {
		row[6] = nil // created
	}
	wantRows := [][]any{
		{1.0, "v1.0.0", "Deleted", "Stalled", "+2 ~0 -0", "2", nil, "", "alice", "first try"},
		// The previous revision is deleted; the counts were written together with this revision.
		{2.0, "", "Active", "Succeeded", "+2 ~1 -1", "3", nil, "2026-01-02T03:04:05Z", "alice", ""},
	}
	if diff := cmp.Diff(wantRows, rows); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if got := at(table.body, "rows", 0, "object", "metadata", "name"); got != "e-1" {
		t.Errorf("the first row is about %v, want e-1", got)
	}

	s.remove("e-2")
	gone := s.do(call{method: http.MethodGet, path: histories + "/e"}).want(t, http.StatusOK)
	if state := at(gone.body, "revisions", 1, "state"); state != "Deleted" {
		t.Errorf("e-2 is %v, want Deleted, also when nobody saw it go", state)
	}
	s.do(call{method: http.MethodGet, path: revisions + "/e-2/history"}).want(t, http.StatusNotFound)
	s.do(call{method: http.MethodGet, path: histories + "/nobody"}).want(t, http.StatusNotFound)
}

// TestHistoryRepairs: the history of an extension lists repaired changes, even after its revisions
// are deleted, until the extension is forgotten.
func TestHistoryRepairs(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", nil)).want(t, http.StatusCreated)
	first := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	_, err := chain.NewInventories(s.etcd, prefix).Save(t.Context(), "e", chain.Inventory{Reached: map[string]int{"u": 1}, Repairs: []chain.Repair{
		{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "web", Revision: 1, Manager: "mallory", Lost: ".spec.replicas was changed by mallory", Count: 3, First: first, Last: first.Add(time.Hour)},
	}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{object{
		"object": object{"group": "apps", "kind": "Deployment", "namespace": "a", "name": "web"}, "revision": "e-1", "manager": "mallory",
		"message": ".spec.replicas was changed by mallory", "count": 3.0, "firstAt": "2026-01-02T03:00:00Z", "lastAt": "2026-01-02T04:00:00Z",
	}}
	told := func(path string, in ...any) {
		t.Helper()
		answer := s.do(call{method: http.MethodGet, path: path}).want(t, http.StatusOK)
		if diff := cmp.Diff(want, at(answer.body, append(in, "repairs")...)); diff != "" {
			t.Errorf("repairs at %s (-want +got):\n%s", path, diff)
		}
	}
	told(histories + "/e")
	told(histories, "items", 0)
	told(revisions + "/e-1/history")
	s.remove("e-1")
	told(histories + "/e")

	s.do(call{method: http.MethodDelete, path: histories + "/e"}).want(t, http.StatusOK)
	s.create(file("e-1", nil)).want(t, http.StatusCreated)
	if answer := s.do(call{method: http.MethodGet, path: histories + "/e"}).want(t, http.StatusOK); at(answer.body, "repairs") != nil {
		t.Errorf("a forgotten extension has repairs: %s", answer.raw)
	}
}

// TestHistoryHold: the history names the held owner, and the end of the hold.
func TestHistoryHold(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", nil)).want(t, http.StatusCreated)
	for i, tc := range []struct {
		generation int64
		want       any
		warning    string
	}{
		{7, object{"revision": "e-2", "ownerGeneration": 7.0}, "generation is above 7"},
		{0, object{"revision": "e-3"}, "until the hold is released"},
	} {
		number := int64(i + 2)
		uid := types.UID(strings.Repeat("x", i+1))
		seen, _, err := s.heads.Get(t.Context(), "e")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.heads.AdvanceHolding(t.Context(), seen, number, uid, tc.generation); err != nil {
			t.Fatal(err)
		}
		if err := s.heads.Confirm(t.Context(), "e", number, uid, chain.Row{}); err != nil {
			t.Fatal(err)
		}
		got := s.do(call{method: http.MethodGet, path: histories + "/e"}).want(t, http.StatusOK)
		if diff := cmp.Diff(tc.want, got.body["hold"]); diff != "" {
			t.Errorf("hold (-want +got):\n%s", diff)
		}
		table := s.do(call{method: http.MethodGet, accept: asTable, path: histories + "/e"}).want(t, http.StatusOK)
		if got := strings.Join(table.warnings, ";"); !strings.Contains(got, tc.warning) {
			t.Errorf("warnings %q, want one with %q", got, tc.warning)
		}
	}
}

func condition(kind, status string) object {
	return object{"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}
}

// remove deletes a revision without its teardown.
func (s *server) remove(name string) {
	s.t.Helper()
	s.do(call{method: http.MethodDelete, path: revisions + "/" + name}).want(s.t, http.StatusOK)
	s.patch(name, mergePatch, object{"metadata": object{"finalizers": nil}}).want(s.t, http.StatusOK)
	s.do(call{method: http.MethodGet, path: revisions + "/" + name}).want(s.t, http.StatusNotFound)
}

// TestListOfExtensions: the list has a row for each extension with its current state.
func TestListOfExtensions(t *testing.T) {
	s := newServer(t, settings{})
	if got := s.do(call{method: http.MethodGet, path: histories}).want(t, http.StatusOK).body["items"]; toText(got) != "[]" {
		t.Errorf("of no extensions there are %v", got)
	}
	versioned := func(name, version string) object {
		return with(file(name, inline(configMap("a", version))), object{"olm.operatorframework.io/bundle-version": version}, "metadata", "annotations")
	}
	s.create(versioned("e-9", "v1.0.0")).want(t, http.StatusCreated)
	s.create(versioned("e-10", "v1.1.0")).want(t, http.StatusCreated)
	s.create(file("a-1", inline(configMap("a", "1"), configMap("b", "1")))).want(t, http.StatusCreated)
	for name, kind := range map[string]string{"e-9": "Succeeded", "e-10": "Failing"} {
		s.do(call{
			method: http.MethodPatch, path: revisions + "/" + name + "/status", contentType: mergePatch,
			body: object{"status": object{"conditions": []any{condition(kind, "True")}}},
		}).want(t, http.StatusOK)
	}
	list := s.do(call{method: http.MethodGet, path: histories}).want(t, http.StatusOK).body
	one := s.do(call{method: http.MethodGet, path: histories + "/e"}).want(t, http.StatusOK).body
	delete(one, "kind")
	delete(one, "apiVersion")
	if diff := cmp.Diff(one, at(list, "items", 1)); list["kind"] != "RevisionHistoryList" || diff != "" {
		t.Errorf("an item of a %v is another history than the one of its name (-want +got):\n%s", list["kind"], diff)
	}
	table := s.do(call{method: http.MethodGet, path: histories, accept: "application/json;as=Table;v=v1;g=meta.k8s.io"}).want(t, http.StatusOK)
	if diff := cmp.Diff([]string{"Name", "Revision", "Version", "State", "Result", "Succeeded", "Objects", "Updated", "By"}, columnsOf(table)); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	var got [][]any
	for _, cells := range cellsOf(table) {
		got = append(got, cells[:7])
	}
	want := [][]any{{"a", 1.0, "", "Active", "", "", "2"}, {"e", 10.0, "v1.1.0", "Active", "Failing", "v1.0.0", "1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	chosen := s.do(call{method: http.MethodGet, path: histories + "?fieldSelector=metadata.name%3De"}).want(t, http.StatusOK).body
	if items := chosen["items"].([]any); len(items) != 1 {
		t.Errorf("of one name there are %d", len(items))
	}
	s.do(call{method: http.MethodGet, path: histories + "?watch=true"}).want(t, http.StatusMethodNotAllowed)
}
