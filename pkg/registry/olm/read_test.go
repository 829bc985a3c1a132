package olm_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

func names(list object) []string {
	var found []string
	items, _ := list["items"].([]any)
	for _, item := range items {
		found = append(found, fmt.Sprint(at(item, "metadata", "name")))
	}
	return found
}

func TestSelectors(t *testing.T) {
	s := newServer(t, settings{})
	for _, name := range []string{"a-1", "a-2", "b-1"} {
		s.create(file(name, nil)).want(t, http.StatusCreated)
	}
	s.patch("a-1", mergePatch, object{"spec": object{"lifecycleState": "Archived"}}).want(t, http.StatusOK)

	for name, tc := range map[string]struct {
		query string
		want  []string
	}{
		"All":       {"", []string{"a-1", "a-2", "b-1"}},
		"Revision":  {"fieldSelector=spec.revision=1", []string{"a-1", "b-1"}},
		"State":     {"fieldSelector=spec.lifecycleState=Archived", []string{"a-1"}},
		"NotState":  {"fieldSelector=spec.lifecycleState!=Archived", []string{"a-2", "b-1"}},
		"Name":      {"fieldSelector=metadata.name=a-2", []string{"a-2"}},
		"Chain":     {"labelSelector=penstock.dev/chain=a", []string{"a-1", "a-2"}},
		"Both":      {"labelSelector=penstock.dev/chain=a&fieldSelector=spec.revision=2", []string{"a-2"}},
		"FromCache": {"resourceVersion=0&labelSelector=penstock.dev/chain=b", []string{"b-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.subtest(t)
			query, err := url.ParseQuery(tc.query)
			if err != nil {
				t.Fatal(err)
			}
			list := s.do(call{method: http.MethodGet, path: revisions + "?" + query.Encode()}).want(t, http.StatusOK)
			if diff := cmp.Diff(tc.want, names(list.body)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.query, diff)
			}
		})
	}
	s.do(call{method: http.MethodGet, path: revisions + "?fieldSelector=spec.previous%3Dx"}).want(t, http.StatusBadRequest)
}

func TestPagesAndTable(t *testing.T) {
	s := newServer(t, settings{})
	for _, name := range []string{"a-1", "a-2", "b-1"} {
		s.create(file(name, inline(configMap("a", name)))).want(t, http.StatusCreated)
	}
	var rows []any
	for next := ""; ; {
		page := s.do(call{method: http.MethodGet, accept: asTable, path: revisions + "?limit=1&includeObject=Object&continue=" + url.QueryEscape(next)}).want(t, http.StatusOK)
		for _, row := range at(page.body, "rows").([]any) {
			rows = append(rows, at(row, "cells", 0), at(row, "object", "kind"))
		}
		if next, _ = at(page.body, "metadata", "continue").(string); next == "" {
			break
		}
	}
	kind := "ClusterExtensionRevision"
	if diff := cmp.Diff([]any{"a-1", kind, "a-2", kind, "b-1", kind}, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	metadata := s.do(call{method: http.MethodGet, accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", path: revisions}).want(t, http.StatusOK)
	if diff := cmp.Diff([]string{"a-1", "a-2", "b-1"}, names(metadata.body)); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestDiscovery(t *testing.T) {
	s := newServer(t, settings{})
	list := s.do(call{method: http.MethodGet, path: "/apis/olm.operatorframework.io/v1alpha1"}).want(t, http.StatusOK)
	resources, _ := list.body["resources"].([]any)
	found := map[string]any{}
	for _, resource := range resources {
		found[at(resource, "name").(string)] = resource
	}
	main := found["clusterextensionrevisions"]
	if hash, _ := at(main, "storageVersionHash").(string); hash == "" {
		t.Error("no storageVersionHash: storage migration cannot see what it has to do")
	}
	want := object{"shortNames": []any{"cer"}, "categories": []any{"olm"}, "singularName": "clusterextensionrevision", "namespaced": false}
	got := object{}
	for key := range want {
		got[key] = at(main, key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("discovery (-want +got):\n%s", diff)
	}
	for virtual, verbs := range map[string][]any{"revisiondiffs": {"get"}, "revisionhistories": {"delete", "get", "list"}, "revisionmanifests": {"get"}, "upgradereadinesses": {"get"}} {
		// Garbage collection and quota watch every resource that can be watched.
		if diff := cmp.Diff(verbs, at(found[virtual], "verbs")); diff != "" {
			t.Errorf("verbs of %s (-want +got):\n%s", virtual, diff)
		}
	}
	for _, subresource := range []string{"status", "manifests", "diff", "history", "rollback"} {
		if found["clusterextensionrevisions/"+subresource] == nil {
			t.Errorf("no subresource %s", subresource)
		}
	}
}

func TestManifests(t *testing.T) {
	s := newServer(t, settings{})
	role := object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": object{"name": "r", "namespace": "default"}}
	s.create(file("e-1", inline(configMap("a", "1"), secret("b", "x"), secret("c", "y"), role))).want(t, http.StatusCreated)
	s.rules.set("bob", nil, "default/*", "default/b")

	for name, tc := range map[string]struct {
		reason  string
		user    string
		query   string
		want    []any
		warning string
	}{
		"All":       {reason: "in rollout order, Secrets as far as the caller may get them", want: []any{configMap("a", "1"), secret("c", "y"), role}, warning: "default/b"},
		"Bob":       {reason: "who may get no Secret gets none", user: "bob", want: []any{configMap("a", "1"), role}, warning: "default/b, default/c"},
		"Kind":      {query: "?objectKind=ConfigMap", want: []any{configMap("a", "1")}},
		"Group":     {query: "?objectKind=Role.rbac.authorization.k8s.io", want: []any{role}},
		"NoGroup":   {query: "?objectKind=Role.apps", want: []any{}},
		"Name":      {query: "?objectName=r", want: []any{role}},
		"Namespace": {query: "?objectNamespace=kube-system", want: []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.subtest(t)
			list := s.do(call{method: http.MethodGet, user: tc.user, path: revisions + "/e-1/manifests" + tc.query}).want(t, http.StatusOK)
			if diff := cmp.Diff(tc.want, list.body["items"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			warnings := strings.Join(list.warnings, "; ")
			if (tc.warning == "") != (warnings == "") || !strings.Contains(warnings, tc.warning) {
				t.Errorf("%s: warnings %q, want %q", tc.reason, warnings, tc.warning)
			}
		})
	}

	table := s.do(call{method: http.MethodGet, accept: asTable, path: revisions + "/e-1/manifests?includeObject=Object&objectName=a"}).want(t, http.StatusOK)
	cells := at(table.body, "rows", 0, "cells")
	want := []any{"ConfigMap", "default", "a", at(entry(s.get("e-1"), 0), "digest"), float64(101)}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}

	s.do(call{method: http.MethodGet, path: revisions + "/e-9/manifests"}).want(t, http.StatusNotFound)
	s.rules.set("", errors.New("the authorizer is away"))
	s.do(call{method: http.MethodGet, path: revisions + "/e-1/manifests"}).want(t, http.StatusInternalServerError)
	s.rules.set("", nil)
	s.bodies.lose = errLost
	lost := s.do(call{method: http.MethodGet, path: revisions + "/e-1/manifests"}).want(t, http.StatusInternalServerError)
	if !strings.Contains(lost.raw, "sha256:") {
		t.Errorf("the answer names no digest: %s", lost.raw)
	}
}

// TestManifestsAsksLittle: a user without rights cannot cause thousands of access reviews.
func TestManifestsAsksLittle(t *testing.T) {
	s := newServer(t, settings{})
	inOne, inMany := []object{configMap("a", "1")}, []object{configMap("a", "1")}
	for i := range 300 {
		inOne = append(inOne, secret(fmt.Sprintf("s%d", i), "x"))
		other := secret("s", "x")
		other["metadata"].(object)["namespace"] = fmt.Sprintf("n%d", i)
		inMany = append(inMany, other)
	}
	s.create(file("one-1", inline(inOne...))).want(t, http.StatusCreated)
	s.create(file("many-1", inline(inMany...))).want(t, http.StatusCreated)
	s.rules.set("bob", nil, "default/*", "default/s7")

	for name, tc := range map[string]struct {
		reason       string
		user, path   string
		most, found  int
		warning, not string
	}{
		"OneNamespace":   {"one by one up to a hundred, and no more", "alice", "one-1/manifests", 101, 1 + 99, "201 of the Secrets left out", ""},
		"NoRights":       {"nothing is asked without end", "bob", "one-1/manifests", 101, 1, "select fewer with objectNamespace", ""},
		"Selected":       {"what is selected is asked for", "alice", "one-1/manifests?objectName=s299", 2, 1, "", "left out"},
		"ManyNamespaces": {"nor by namespaces", "bob", "many-1/manifests", 200, 1, "300 of the Secrets left out", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.subtest(t)
			s.rules.questions()
			list := s.do(call{method: http.MethodGet, user: tc.user, path: revisions + "/" + tc.path}).want(t, http.StatusOK)
			if asked := s.rules.questions(); asked > tc.most {
				t.Errorf("%s: %d questions, want %d at most", tc.reason, asked, tc.most)
			}
			if items, _ := list.body["items"].([]any); len(items) != tc.found {
				t.Errorf("%s: %d manifests, want %d", tc.reason, len(items), tc.found)
			}
			warnings := strings.Join(list.warnings, "; ")
			if !strings.Contains(warnings, tc.warning) || tc.not != "" && strings.Contains(warnings, tc.not) {
				t.Errorf("%s: warnings %q, want %q", tc.reason, warnings, tc.warning)
			}
		})
	}
}
