package olm_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const diffs = group + "/revisiondiffs"

func deployment(name, image string) object {
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name, "namespace": "default"},
		"spec": object{
			"selector": object{"matchLabels": object{"app": name}},
			"template": object{
				"metadata": object{"labels": object{"app": name}},
				"spec":     object{"containers": []any{object{"name": "manager", "image": image}}},
			},
		},
	}
}

// changes returns the objects of a diff, as change, kind and name.
func changes(r response) []string {
	var all []string
	list, _ := r.body["changes"].([]any)
	for _, change := range list {
		all = append(all, strings.Join([]string{at(change, "change").(string), at(change, "kind").(string), at(change, "name").(string)}, " "))
	}
	return all
}

func notes(r response) string {
	var all []string
	list, _ := r.body["notes"].([]any)
	for _, note := range list {
		all = append(all, at(note, "message").(string))
	}
	return strings.Join(all, "\n")
}

func diffServer(t *testing.T) *server {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1"), configMap("same", "1"), secret("s", "old"), deployment("d", "x:1")))).want(t, http.StatusCreated)
	s.create(file("e-3", inline(configMap("same", "1"), configMap("new", "1"), secret("s", "new"), deployment("d", "x:2")))).want(t, http.StatusCreated)
	s.create(file("e-4", inline(configMap("same", "1")))).want(t, http.StatusCreated)
	s.create(file("other-1", inline(configMap("same", "2")))).want(t, http.StatusCreated)
	return s
}

func TestDiff(t *testing.T) {
	s := diffServer(t)
	secondAll := []string{"Added ConfigMap new", "Changed Secret s", "Changed Deployment d", "Removed ConfigMap a"}
	for name, tc := range map[string]struct {
		reason   string
		path     string
		from, to any
		want     []string
		summary  object
	}{
		"Subresource": {reason: "against the one before, whose number may be any lower one", path: revisions + "/e-3/diff",
			from: "e-1", to: "e-3", want: secondAll, summary: object{"added": 1.0, "removed": 1.0, "changed": 2.0, "unchanged": 1.0}},
		"First": {reason: "everything is new", path: revisions + "/e-1/diff",
			to: "e-1", want: []string{"Added ConfigMap a", "Added ConfigMap same", "Added Secret s", "Added Deployment d"},
			summary: object{"added": 4.0, "removed": 0.0, "changed": 0.0, "unchanged": 0.0}},
		"Two": {reason: "any two", path: diffs + "/e-1..e-3", from: "e-1", to: "e-3", want: secondAll,
			summary: object{"added": 1.0, "removed": 1.0, "changed": 2.0, "unchanged": 1.0}},
		"Backwards": {reason: "what a rollback would do", path: diffs + "/e-4..e-1", from: "e-4", to: "e-1",
			want:    []string{"Added ConfigMap a", "Added Secret s", "Added Deployment d"},
			summary: object{"added": 3.0, "removed": 0.0, "changed": 0.0, "unchanged": 1.0}},
		"OtherChain": {reason: "also of two extensions", path: diffs + "/e-4..other-1", from: "e-4", to: "other-1", want: []string{"Changed ConfigMap same"},
			summary: object{"added": 0.0, "removed": 0.0, "changed": 1.0, "unchanged": 0.0}},
		"Before": {reason: "the one before", path: diffs + "/..e-3", from: "e-1", to: "e-3", want: secondAll,
			summary: object{"added": 1.0, "removed": 1.0, "changed": 2.0, "unchanged": 1.0}},
		"BeforeFirst": {reason: "a first install", path: diffs + "/..other-1", to: "other-1", want: []string{"Added ConfigMap same"},
			summary: object{"added": 1.0, "removed": 0.0, "changed": 0.0, "unchanged": 0.0}},
		"After": {reason: "the one after", path: diffs + "/e-1..", from: "e-1", to: "e-3", want: secondAll,
			summary: object{"added": 1.0, "removed": 1.0, "changed": 2.0, "unchanged": 1.0}},
		"Same": {reason: "nothing changes", path: diffs + "/e-3..e-3", from: "e-3", to: "e-3",
			summary: object{"added": 0.0, "removed": 0.0, "changed": 0.0, "unchanged": 4.0}},
		"Kind": {reason: "narrowed, counts included", path: revisions + "/e-3/diff?objectKind=deployment.apps", from: "e-1", to: "e-3",
			want: []string{"Changed Deployment d"}, summary: object{"added": 0.0, "removed": 0.0, "changed": 1.0, "unchanged": 0.0}},
		"Name": {reason: "narrowed to what does not change", path: diffs + "/e-1..e-3?objectName=same&objectNamespace=default", from: "e-1", to: "e-3",
			summary: object{"added": 0.0, "removed": 0.0, "changed": 0.0, "unchanged": 1.0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.subtest(t)
			got := s.do(call{method: http.MethodGet, path: tc.path}).want(t, http.StatusOK)
			if diff := cmp.Diff(tc.want, changes(got)); diff != "" {
				t.Errorf("%s: changes (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([]any{tc.from, tc.to}, []any{got.body["from"], got.body["to"]}); diff != "" {
				t.Errorf("%s: sides (-want +got):\n%s", tc.reason, diff)
			}
			summary := got.body["summary"].(object)
			delete(summary, "fromBytes")
			delete(summary, "toBytes")
			if diff := cmp.Diff(tc.summary, summary); diff != "" {
				t.Errorf("%s: summary (-want +got):\n%s", tc.reason, diff)
			}
			if first := strings.Contains(notes(got), "everything counts as added"); first != (tc.from == nil) {
				t.Errorf("%s: a note that nothing was before: %v", tc.reason, first)
			}
		})
	}
}

// TestDiffContent checks the diff of one object.
func TestDiffContent(t *testing.T) {
	s := diffServer(t)
	got := s.do(call{method: http.MethodGet, path: revisions + "/e-3/diff?objectKind=Deployment"}).want(t, http.StatusOK)
	change := at(got.body, "changes", 0).(object)
	if unified, _ := change["unified"].(string); !strings.Contains(unified, "-") || !strings.Contains(unified, "x:2") {
		t.Errorf("unified diff: %q", unified)
	}
	delete(change, "unified")
	want := object{
		"change": "Changed", "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "d",
		"fieldCount": 1.0, "linesAdded": 1.0, "linesRemoved": 1.0,
		"fields": []any{object{"path": `.spec.template.spec.containers[name="manager"].image`, "op": "replace", "old": "x:1", "new": "x:2"}},
	}
	if diff := cmp.Diff(want, change); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
	if text := notes(got); !strings.Contains(text, "x:1") || !strings.Contains(text, "x:2") {
		t.Errorf("the notes do not speak of the image: %s", text)
	}
	meta := object{"apiVersion": got.body["apiVersion"], "kind": got.body["kind"], "metadata": got.body["metadata"]}
	if diff := cmp.Diff(object{"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "RevisionDiff", "metadata": object{"name": "e-1..e-3"}}, meta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}

	plain := s.do(call{method: http.MethodGet, path: revisions + "/e-3/diff?objectKind=Deployment&unified=false"}).want(t, http.StatusOK)
	if unified := at(plain.body, "changes", 0, "unified"); unified != nil || at(plain.body, "changes", 0, "linesAdded") != 1.0 || plain.body["truncated"] != nil {
		t.Errorf("without unified diffs: %s", plain.raw)
	}
	for _, word := range []string{"no", "False", ""} {
		refused := s.do(call{method: http.MethodGet, path: revisions + "/e-3/diff?unified=" + word}).want(t, http.StatusBadRequest)
		if want := fmt.Sprintf("unified=%q: want true or false", word); !strings.Contains(fmt.Sprint(refused.body["message"]), want) {
			t.Errorf("message %q, want %q", refused.body["message"], want)
		}
	}
}

// TestDiffTable: the table has a row for each changed object, after the notes.
func TestDiffTable(t *testing.T) {
	s := diffServer(t)
	got := s.do(call{method: http.MethodGet, accept: asTable, path: revisions + "/e-3/diff?includeObject=Object"}).want(t, http.StatusOK)
	if diff := cmp.Diff([]string{"Change", "Kind", "Namespace", "Name", "Fields", "+/-", "First Path"}, columnsOf(got)); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	rows := cellsOf(got)
	for _, row := range rows {
		if lines := row[5].(string); !strings.HasPrefix(lines, "+") || !strings.Contains(lines, "/-") {
			t.Errorf("lines %q, want +n/-m", lines)
		}
		row[5] = nil
	}
	want := [][]any{
		{"Added", "ConfigMap", "default", "new", "-", nil, ""},
		{"Changed", "Secret", "default", "s", "1", nil, ".data.password"},
		{"Changed", "Deployment.apps", "default", "d", "1", nil, `.spec.template.spec.containers[name="manager"].image`},
		{"Removed", "ConfigMap", "default", "a", "-", nil, ""},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if text := strings.Join(got.warnings, "\n"); !strings.Contains(text, "Deployment.apps default/d: ") {
		t.Errorf("warnings: %s", text)
	}
	if kind := at(got.body, "rows", 0, "object", "kind"); kind != "RevisionDiff" {
		t.Errorf("rows are of kind %v", kind)
	}
	empty := s.do(call{method: http.MethodGet, accept: asTable, path: diffs + "/e-3..e-3"}).want(t, http.StatusOK)
	if text := strings.Join(empty.warnings, "\n"); !strings.Contains(text, "no difference between e-3 and e-3, in 4 objects") {
		t.Errorf("an empty table says %q", text)
	}
}

func TestDiffRefused(t *testing.T) {
	s := diffServer(t)
	for name, tc := range map[string]struct {
		path string
		code int
		want string
	}{
		"NoDots":       {diffs + "/e-1", 400, "<revision>..<revision>"},
		"NoNumber":     {diffs + "/e..e-1", 400, `"e" is not the name of a revision`},
		"LiveFirst":    {diffs + "/live..e-1", 400, "<revision>..live"},
		"LiveAlone":    {diffs + "/..live", 400, "<revision>..live"},
		"LiveOfNobody": {diffs + "/e-9..live", 404, "e-9"},
		"NoFrom":       {diffs + "/e-9..e-1", 404, `clusterextensionrevisions.olm.operatorframework.io "e-9"`},
		"NoTo":         {diffs + "/e-1..e-9", 404, "e-9"},
		"Newest":       {diffs + "/e-4..", 400, "e-4 is the newest"},
		"NoRevision":   {revisions + "/e-9/diff", 404, `clusterextensionrevisions.olm.operatorframework.io "e-9"`},
		"List":         {diffs, 404, ""},
		"ThreeDots":    {diffs + "/e-1...e-3", 404, ".e-3"},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.subtest(t).do(call{method: http.MethodGet, path: tc.path}).want(t, tc.code)
			if message, _ := got.body["message"].(string); !strings.Contains(message, tc.want) {
				t.Errorf("the answer does not say %q: %s", tc.want, message)
			}
		})
	}
	s.bodies.lose = errLost
	s.do(call{method: http.MethodGet, path: diffs + "/e-1..e-3"}).want(t, http.StatusInternalServerError)
	s.do(call{method: http.MethodGet, path: diffs + "/e-3..e-3"}).want(t, http.StatusOK)
}
