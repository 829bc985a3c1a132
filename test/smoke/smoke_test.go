//go:build integration

// Package smoke_test is a tour of Penstock: each scenario shows one capability once, as a user sees
// it. The function tour lists them, and each file shows the use of a capability.
//
// All scenarios share one control plane and one process of Penstock, and run concurrently, each in
// a namespace of its own name:
//
//	go test ./test/smoke -run 'TestPenstock/Tour/Drift'
//
// The scenarios after the tour need the cluster for themselves. The last one kills Penstock.
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

// tour are the scenarios that run at the same time.
func tour() map[string]func(scenario) {
	return map[string]func(scenario){
		// Revisions: the objects that Penstock rolls out.
		"Create":    create,    // a revision is rolled out, and read by digests
		"Refuse":    refuse,    // bad input, and changed content
		"Phases":    phases,    // one phase after the other, each gated by probes
		"Upgrade":   upgrade,   // the next revision takes over, and what it lacks is deleted
		"Levels":    levels,    // defaults that are created last, and stay the user's
		"Collision": collision, // objects of others are left alone, or adopted
		"Drift":     drift,     // changes by others are repaired and reported
		"Archive":   archive,   // a stuck revision gives back what it took
		"Teardown":  teardown,  // deletion in reverse order
		"Orphan":    orphan,    // deletion without the objects
		"Budget":    budget,    // Penstock asks before much is lost
		"Target":    target,    // a revision for the cluster of a kubeconfig
		// Rights.
		"Denied": denied, // a requester needs the rights to what a revision does
		// Reads.
		"Diff":    diff,    // what a revision changes
		"History": history, // what there was, and who asked for it
		// The plugin.
		"Deploy": deploy, // manifests of a folder, reviewed and rolled out
		"Stuck":  stuck,  // a rollout that cannot finish, why, and the way back
		"Check":  check,  // the installation
		// Extensions and what else makes revisions.
		"Catalog":   catalog,   // search, install, a proposed upgrade, uninstall
		"Helm":      helm,      // a release of Helm becomes an extension
		"ChartKind": chartKind, // a kind that is made of a chart
		"Template":  template,  // an image of a catalog that follows the cluster
		"Archives":  archives,  // export and import
		// Changes to objects of others.
		"Plan":    plan,    // review, approve, undo
		"Profile": profile, // a profile in CEL, and a maintenance window
		// The browser.
		"Console": console, // the API of the console
	}
}

// TestPenstock is the tour.
func TestPenstock(t *testing.T) {
	s := start(t)
	unattended := s.in(t, "unattended")
	idle := unattended.settled()
	t.Run("Tour", func(t *testing.T) {
		var all sync.WaitGroup
		for name, do := range tour() {
			// Scenarios wait most of their time: all begin at once, however many processors there are.
			all.Go(func() { t.Run(name, func(t *testing.T) { do(s.in(t, name)) }) })
		}
		all.Wait()
	})
	t.Run("Idle", idle)
	t.Run("Freeze", func(t *testing.T) { freeze(s.in(t, "Freeze")) })
	t.Run("Restart", func(t *testing.T) { restart(s.in(t, "Restart")) })
}

// site is the control plane with Penstock on it.
type site struct {
	cluster *cluster.Cluster
	program *penstock.Program
	server  *penstock.Server
	dataDir string
	images  *registry.Registry
}

// scenario is the site as a test sees it, with the client of an administrator. Objects are in the
// namespace of the scenario.
type scenario struct {
	*client.Client
	*site
	t *testing.T
	// top is the test that the site lives for.
	top *testing.T
	// name is that of the scenario in lower case, and of its namespace and extension.
	name string
}

// start runs everything until the test ends.
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

// serve runs Penstock with the rights of artifacts/deploy.
func (s *site) serve(t *testing.T) {
	t.Helper()
	s.server = s.program.Serve(t, s.cluster, s.dataDir,
		"--registry-cas-dir="+s.images.Dir, "--registry-auth-file="+filepath.Join(s.images.Dir, registry.AuthFile))
}

// in is the site for a scenario, with a namespace.
func (s scenario) in(t *testing.T, name string) scenario {
	t.Helper()
	s.t, s.name = t, strings.ToLower(name)
	s.Client = client.New(t, s.cluster.Config(), s.name)
	s.Create("{apiVersion: v1, kind: Namespace, metadata: {name: " + s.name + "}}")
	return s
}
