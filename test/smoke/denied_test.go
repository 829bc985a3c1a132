//go:build integration

package smoke_test

import "github.com/penstock-project/penstock/test/framework/objects"

// denied: a requester needs the rights to everything that a revision does. Penstock hides content
// that the requester cannot read.
func denied(s scenario) {
	const revisions = "clusterextensionrevisions.olm.operatorframework.io"
	alice, _ := s.person("alice", "* "+revisions, "get clusterextensionrevisions/manifests.olm.operatorframework.io", "create,get,patch,delete configmaps")
	alice.Refused(s.revision(1).Phase("all", s.deployment("web", "example.com/web:v1")).String(),
		"alice-denied cannot create,patch deployments.apps denied/web")
	reader := objects.New("rbac.authorization.k8s.io/v1", "ClusterRole", "", "denied-reader")
	reader["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets"}, "verbs": []any{"list"}}}
	alice.Refused(s.revision(1).Phase("all", reader).String(), "list secrets (granted by ClusterRole denied-reader)")
	s.Absent("cer/denied-1")

	alice.Create(s.revision(1).Phase("all", s.configMap("settings", "x=1")).String())
	s.succeeds("cer/denied-1")
	s.Is("cer/denied-1", ".status.requestedBy.username", "alice-denied")

	// An administrator adds a Secret. Alice sees the other objects, and cannot delete the Secret by
	// a revision.
	s.roll(s.revision(2).Phase("all", s.configMap("settings", "x=1"), s.secret("token", "password=hunter2")))
	shown := alice.Raw("GET", "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/denied-2/manifests", "")
	s.Says(shown, `"name":"settings"`)
	s.Lacks(shown, `"name":"token"`, "hunter2", "aHVudGVyMg")
	alice.Refused(s.revision(3).Phase("all", s.configMap("settings", "x=1")).String(), "alice-denied cannot delete secrets denied/token")
}
