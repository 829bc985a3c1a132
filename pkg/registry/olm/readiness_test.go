package olm_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/readiness"
)

const readinesses = group + "/upgradereadinesses"

// TestUpgradeReadiness: the allowed reads of all pairs of users and verbs. Only users who may get
// the manifests see names of objects.
func TestUpgradeReadiness(t *testing.T) {
	s := newServer(t, settings{})
	budget := object{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": object{"name": "narrow", "namespace": "default"}, "spec": object{"maxUnavailable": 0}}
	claim := object{"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": object{"name": "gpu"}}
	s.create(file("e-1", inline(configMap("a", "1"), claim))).want(t, http.StatusCreated)
	s.create(file("e-2", inline(configMap("a", "2"), budget))).want(t, http.StatusCreated)
	s.create(file("f-1", inline(claim))).want(t, http.StatusCreated)
	for _, user := range []string{"bob", "carol"} {
		s.rules.deny(user, "get clusterextensionrevisions/manifests", "get clusterextensionrevisions/manifests f-1")
	}
	s.rules.deny("carol", "list clusterextensionrevisions")
	s.rules.deny("dave", "get clusterextensionrevisions/manifests", "get clusterextensionrevisions/manifests f-1", "get clusterextensionrevisions/manifests e-1", "get clusterextensionrevisions/manifests e-2")

	const removed = "BreaksRollback Declared e-1 DeviceClass gpu 1.38 resource.k8s.io/v1 DeviceClass"
	const narrow = "ActBefore Certain e-2 PodDisruptionBudget narrow  "
	const blocks = "Blocks Declared f-1 DeviceClass gpu 1.38 resource.k8s.io/v1 DeviceClass"
	for _, tc := range []struct {
		user, query, verdict string
		findings, extensions []string
	}{
		{"alice", "1.38", "Blocked", []string{blocks, removed, narrow}, []string{"e", "f"}},
		{"alice", "1.38?extension=e", "NothingFound", []string{removed, narrow}, []string{"e"}},
		{"bob", "1.38", "Unknown", []string{removed, narrow}, []string{"e", "f: you cannot get the manifests of 1 of 1 revisions"}},
		{"carol", "1.38", "Unknown", []string{removed, narrow}, []string{"e"}},
		{"dave", "1.38", "Unknown", nil, []string{"e: you cannot get the manifests of 2 of 2 revisions", "f: you cannot get the manifests of 1 of 1 revisions"}},
	} {
		t.Run(tc.user+" "+tc.query, func(t *testing.T) {
			got := s.subtest(t).do(call{method: http.MethodGet, path: readinesses + "/" + tc.query, user: tc.user}).want(t, http.StatusOK).body
			var findings, extensions []string
			list, _ := got["findings"].([]any)
			for _, one := range list {
				text := func(key string) string { value, _ := at(one, key).(string); return value }
				findings = append(findings, strings.Join([]string{text("severity"), text("certainty"), text("revision"), text("kind"), text("name"), text("removedIn"), text("replacement")}, " "))
			}
			for _, one := range got["extensions"].([]any) {
				row := at(one, "name").(string)
				if why, ok := at(one, "notLooked").(string); ok {
					row += ": " + why
				}
				extensions = append(extensions, row)
			}
			if d := cmp.Diff(tc.findings, findings); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tc.extensions, extensions); d != "" {
				t.Error(d)
			}
			if got["verdict"] != tc.verdict {
				t.Errorf("%s: %s", got["verdict"], got["message"])
			}
		})
	}

	s.do(call{method: http.MethodGet, path: readinesses + "/1.38?extension=f", user: "carol"}).want(t, http.StatusNotFound)
	s.do(call{method: http.MethodGet, path: readinesses + "/latest"}).want(t, http.StatusBadRequest)
	s.do(call{method: http.MethodGet, path: readinesses}).want(t, http.StatusNotFound)
	table := s.do(call{method: http.MethodGet, path: readinesses + "/1.38", accept: asTable}).want(t, http.StatusOK)
	if rows := cellsOf(table); len(rows) != 3 || !strings.Contains(strings.Join(table.warnings, " "), "Blocked: 1 finding to solve before the upgrade") {
		t.Errorf("%v, %v", rows, table.warnings)
	}
}

// TestPackageStatements: catalogs are read only for users who may list packages. The answer to
// other users names the missing right, and has no verdict.
func TestPackageStatements(t *testing.T) {
	var asked []string
	s := newServer(t, settings{statements: func(pkg, bundle, version string) (readiness.Statement, error) {
		asked = append(asked, strings.Join([]string{pkg, bundle, version}, " "))
		return readiness.Statement{Package: pkg, Least: &clusterversion.Kubernetes{Major: 1, Minor: 25}}, nil
	}})
	one := file("e-1", inline(configMap("a", "1")))
	one["metadata"].(object)["annotations"] = object{v1alpha1.PackageAnnotation: "lamps", v1alpha1.BundleAnnotation: "lamps.v1.0.0", v1alpha1.VersionAnnotation: "1.0.0"}
	s.create(one).want(t, http.StatusCreated)
	s.rules.deny("erin", "list catalogpackages")
	for _, tc := range []struct{ user, verdict, statement, notLooked string }{
		{"erin", "Unknown", "", "you cannot list catalogpackages, which say what the package supports"},
		{"alice", "NothingFound", "Kubernetes >= 1.25.0", ""},
	} {
		got := s.do(call{method: http.MethodGet, path: readinesses + "/1.38", user: tc.user}).want(t, http.StatusOK).body
		row := got["extensions"].([]any)[0]
		statement, _ := at(row, "statement").(string)
		notLooked, _ := at(row, "notLooked").(string)
		if got["verdict"] != tc.verdict || statement != tc.statement || notLooked != tc.notLooked {
			t.Errorf("%s: %s, %q, %q", tc.user, got["verdict"], statement, notLooked)
		}
		if tc.statement == "" && len(asked) > 0 {
			t.Errorf("catalogs were asked for %s: %v", tc.user, asked)
		}
	}
	if want := []string{"lamps lamps.v1.0.0 1.0.0"}; !slices.Equal(asked, want) {
		t.Errorf("catalogs were asked for %v, want %v", asked, want)
	}
}

// TestAcknowledgement: the server records the user and the time of an acknowledgement. No client
// can set them.
func TestAcknowledgement(t *testing.T) {
	s := newServer(t, settings{})
	class := object{"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": object{"name": "gpu"}}
	s.create(file("e-1", inline(class))).want(t, http.StatusCreated)
	s.create(file("e-2", inline(configMap("a", "2")))).want(t, http.StatusCreated)
	finding := func() map[string]any {
		t.Helper()
		list := s.do(call{method: http.MethodGet, path: readinesses + "/1.38"}).want(t, http.StatusOK).body["findings"].([]any)
		if len(list) != 1 {
			t.Fatalf("%v", list)
		}
		return list[0].(map[string]any)
	}
	id, _ := finding()["id"].(string)
	annotate := func(user string, values map[string]any) response {
		return s.do(call{method: http.MethodPatch, path: revisions + "/e-1", contentType: "application/merge-patch+json", user: user, body: object{"metadata": object{"annotations": values}}})
	}
	const said, by = "acknowledge.penstock.dev/", "acknowledged-by.penstock.dev/"
	acknowledged := func(user, reason string) {
		t.Helper()
		got, _ := finding()["acknowledged"].(map[string]any)
		if user == "" && got != nil || user != "" && (got["by"] != user || got["reason"] != reason || got["at"] == nil) {
			t.Errorf("acknowledged %v, want by %q: %q", got, user, reason)
		}
	}
	for _, wrong := range []struct{ id, value, why string }{
		{id, "nobody uses it", "minor of Kubernetes such as 1.38"}, {id, "1.38", "must have a reason"}, {id, "1.38 a\nb", "control characters"},
		{"gpu", "1.38 nobody uses it", "id of a finding"}, {id, "1.38 " + strings.Repeat("a", 1025), "at most 1024 bytes"},
	} {
		if got := annotate("alice", object{said + wrong.id: wrong.value}).want(t, http.StatusUnprocessableEntity); !strings.Contains(got.raw, wrong.why) {
			t.Errorf("%s: %s", wrong.value, got.raw)
		}
	}
	annotate("mallory", object{by + id: "2026-11-28T10:00:00Z alice"}).want(t, http.StatusOK)
	acknowledged("", "")
	annotate("mallory", object{said + id: "1.38 nobody uses it", by + id: "2026-11-28T10:00:00Z alice"}).want(t, http.StatusOK)
	acknowledged("mallory", "nobody uses it")
	annotate("alice", object{"mine": "yes", by + id: nil}).want(t, http.StatusOK)
	acknowledged("mallory", "nobody uses it") // a user who writes other fields does not acknowledge again
	annotate("alice", object{said + id: "1.38 I have looked"}).want(t, http.StatusOK)
	acknowledged("alice", "I have looked")
	table := s.do(call{method: http.MethodGet, path: readinesses + "/1.38", accept: asTable}).want(t, http.StatusOK)
	if rows := cellsOf(table); len(rows) != 1 || !slices.Contains(rows[0], "alice") {
		t.Errorf("%v", rows)
	}
	annotate("bob", object{said + id: nil}).want(t, http.StatusOK)
	acknowledged("", "")
	if kept, _ := at(s.do(call{method: http.MethodGet, path: revisions + "/e-1"}).want(t, http.StatusOK).body, "metadata", "annotations", by+id).(string); kept != "" {
		t.Errorf("the stamp of a withdrawn acknowledgement is kept: %s", kept)
	}
}
