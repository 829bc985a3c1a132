//go:build integration

// Package smoke_test is a tour of Penstock. Each scenario shows one capability as a user sees it.
// The function tour lists the scenarios, and each scenario has its own file.
//
// All scenarios share one control plane and one process of Penstock. They run concurrently, each in
// a namespace named after the scenario:
//
//	go test ./test/smoke -run 'TestPenstock/Tour/Drift'
//
// The scenarios after the tour need the cluster for themselves. The last scenario kills Penstock.
// test/framework lists the packages that test the details.
package smoke_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/penstock-project/penstock/test/framework/client"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// tour returns the scenarios that run at the same time.
func tour() map[string]func(scenario) {
	return map[string]func(scenario){
		// Revisions: the objects that Penstock rolls out.
		"Create":    create,    // a revision is rolled out, and read by digests
		"Refuse":    refuse,    // bad input, and changed content
		"Phases":    phases,    // phases in sequence, each gated by probes
		"Upgrade":   upgrade,   // the next revision takes objects over, and deletes dropped objects
		"Levels":    levels,    // create-only defaults, which belong to the user
		"Collision": collision, // objects of other owners are left alone, or adopted
		"Drift":     drift,     // changes by other users are repaired and reported
		"Archive":   archive,   // a stuck revision returns the objects that it took
		"Teardown":  teardown,  // deletion in reverse order
		"Orphan":    orphan,    // deletion without the objects
		"Budget":    budget,    // confirmation before a large deletion
		"Target":    target,    // a rollout into the cluster of a kubeconfig
		// Rights.
		"Denied": denied, // a requester needs the rights to a revision's effects
		// Reads.
		"Diff":    diff,    // the changes of a revision
		"History": history, // all revisions, and their requesters
		// The plugin.
		"Deploy": deploy, // a folder of manifests, reviewed and rolled out
		"Stuck":  stuck,  // a rollout that cannot finish, its cause, and the rollback
		"Check":  check,  // the installation
		// Extensions and other makers of revisions.
		"Catalog":   catalog,   // search, install, a proposed upgrade, uninstall
		"Helm":      helm,      // a Helm release becomes an extension
		"ChartKind": chartKind, // a kind whose objects install a chart
		"Template":  template,  // a catalog image that follows the cluster's version
		"Archives":  archives,  // export and import
		// Changes to objects of other owners.
		"Plan":    plan,    // review, approve, undo
		"Profile": profile, // a profile in CEL, and a maintenance window
		// The browser.
		"Console": console, // the API of the console
	}
}

func TestPenstock(t *testing.T) {
	s := start(t)
	unattended := s.in(t, "unattended")
	idle := unattended.settled()
	t.Run("Tour", func(t *testing.T) {
		var all sync.WaitGroup
		for name, do := range tour() {
			// Scenarios mostly wait, so all begin at once, regardless of the number of processors.
			all.Go(func() { t.Run(name, func(t *testing.T) { do(s.in(t, name)) }) })
		}
		all.Wait()
	})
	t.Run("Idle", idle)
	t.Run("Freeze", func(t *testing.T) { freeze(s.in(t, "Freeze")) })
	t.Run("Restart", func(t *testing.T) { restart(s.in(t, "Restart")) })
}

// site is a control plane with Penstock.
type site struct {
	cluster *cluster.Cluster
	program *penstock.Program
	server  *penstock.Server
	dataDir string
	images  *registry.Registry
}

// scenario is the site with an administrator's client in the scenario's namespace.
type scenario struct {
	*client.Client
	*site
	t *testing.T
	// top is the test that owns the site.
	top *testing.T
	// name is the scenario's name in lower case. The namespace and the extension have the same
	// name.
	name string
}

// start starts the control plane and Penstock until the test ends.
func start(t *testing.T) scenario {
	t.Helper()
	s := &site{cluster: cluster.Start(t, cluster.Workloads()), program: penstock.Build(t), dataDir: penstock.DataDir(t), images: registry.Serve(t)}
	s.serve(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the server complained of:\n%s", s.server.Complaints())
		}
		if strings.Contains(s.server.Log(), "panic") {
			t.Errorf("the server panicked:\n%s", s.server.Log())
		}
	})
	admin := client.New(t, s.cluster.Config(), "default")
	admin.Stamped("{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: probe}, spec: {namespace: default, source: {sourceType: Catalog, catalog: {packageName: probe}}}}")
	return scenario{Client: admin, site: s, t: t, top: t}
}

// serve runs Penstock with the RBAC rules of artifacts/deploy.
func (s *site) serve(t *testing.T) {
	t.Helper()
	s.server = s.program.Serve(t, s.cluster, s.dataDir,
		"--registry-cas-dir="+s.images.Dir, "--registry-auth-file="+filepath.Join(s.images.Dir, registry.AuthFile))
}

// in returns the scenario for a subtest, with a new namespace.
func (s scenario) in(t *testing.T, name string) scenario {
	t.Helper()
	s.t, s.name = t, strings.ToLower(name)
	s.Client = client.New(t, s.cluster.Config(), s.name)
	s.Create("{apiVersion: v1, kind: Namespace, metadata: {name: " + s.name + "}}")
	return s
}
