//go:build integration

// Package e2e_test tests the program as a user runs it, with plain kubectl and through
// kube-apiserver's aggregator. It writes and reads revisions, rolls them out on a control plane
// whose Deployments become Available, changes the rolled-out objects, and cleans up.
//
// All scenarios of a test share one control plane and one server. Each scenario has its own
// extension names, namespace and kinds:
//
//	go test ./test/e2e -run 'TestPenstock/Rollout/Drift'
package e2e_test

import (
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
)

// sharedPlane is the shared control plane with Penstock, for one test.
type sharedPlane struct {
	*cluster.Cluster
	t       *testing.T
	program *penstock.Program
	server  *penstock.Server
	dataDir string
	// client watches for states that kubectl cannot wait for.
	client dynamic.Interface
}

// scenario is a test that uses the shared control plane.
type scenario func(w sharedPlane)

func TestPenstock(t *testing.T) {
	t.Parallel()
	w := start(t)
	var all sync.WaitGroup
	// The scenarios of Plans run in sequence and take longest, so they start at once.
	all.Go(func() { w.run("Plans", plans) })
	all.Go(func() { w.run("OwnProfile", ownProfile) })
	all.Go(func() { w.group("Kubectl", kubectlScenarios()) })
	all.Go(func() { w.group("Rollout", rolloutScenarios()) })
	all.Go(func() { w.group("Answers", answerScenarios()) })
	all.Go(func() { w.group("Real", map[string]scenario{"CertManager": certManager}) })
	all.Wait()
	// These scenarios run alone, after all scenarios that send requests.
	w.run("DryRun", dryRun)
	w.run("Idle", idle)
	w.run("OwnRights", ownRights)
}

// TestStores loses, restores and replaces stores in a cluster that had other stores. The scenarios
// run in sequence, each with its own servers.
func TestStores(t *testing.T) {
	t.Parallel()
	w := host(t)
	t.Run("StoreLost", func(t *testing.T) { storeLost(w.in(t)) })
	t.Run("Restore", func(t *testing.T) { restore(w.in(t)) })
	// Unregister runs last: it removes Penstock.
	t.Run("Unregister", func(t *testing.T) { unregister(w.in(t)) })
}

// kubectlScenarios read and write revisions.
func kubectlScenarios() map[string]scenario {
	return map[string]scenario{
		"Create":           create,
		"Table":            table,
		"Watch":            watchTable,
		"Select":           selectors,
		"Explain":          explain,
		"ServerSide":       serverSideApply,
		"ClientSide":       clientSideApply,
		"Diff":             diff,
		"Edit":             edit,
		"Immutable":        immutable,
		"Lifecycle":        lifecycleChanges,
		"Numbers":          numbers,
		"Digests":          digestsOnly,
		"Manifests":        manifests,
		"HiddenSecrets":    hiddenSecrets,
		"Rights":           rights,
		"Refusals":         refusals,
		"UnknownFields":    unknownFields,
		"ManyAtOnce":       manyAtOnce,
		"StatusIsNotOurs":  statusIsNotOurs,
		"ExportRights":     exportRights,
		"UpgradeReadiness": upgradeReadiness,
	}
}

// rolloutScenarios test the effect of revisions in the cluster.
func rolloutScenarios() map[string]scenario {
	return map[string]scenario{
		"Lighthouse":       lighthouse,
		"Paused":           paused,
		"Additions":        additions,
		"Autoscaled":       autoscaled,
		"Replaced":         replaced,
		"Adoption":         adoption,
		"Sharing":          sharing,
		"Refused":          refusedByHost,
		"NamespaceMissing": namespaceMissing,
		"Controlled":       controlled,
		"OnePhase":         onePhase,
		"Burst":            burst,
		"NamespaceDeleted": namespaceDeleted,
		"KindDeleted":      kindDeleted,
		"Foreground":       foreground,
		"Unfinished":       unfinished,
		"DeletedStuck":     deletedStuck,
		"ArchivedEarly":    archivedEarly,
		"KindMissing":      kindMissing,
		"Scope":            scope,
		"Orphan":           orphan,
		"Acknowledged":     acknowledged,
		"InstanceGone":     instanceGone,
		"Probes":           probes,
		"Retention":        retention,
		"ByPlugin":         byPlugin,
		"DeletedTogether":  deletedTogether,
		"NotEmpty":         notEmpty,
		"Uninstall":        uninstall,
		"Levels":           levels,
		"LevelRace":        levelRace,
		"LevelRefusals":    levelRefusals,
	}
}

// host returns a control plane without a running server.
func host(t *testing.T) sharedPlane {
	t.Helper()
	c := cluster.Start(t, cluster.Workloads())
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	return sharedPlane{Cluster: c, t: t, program: penstock.Build(t), dataDir: penstock.DataDir(t), client: client}
}

func start(t *testing.T) sharedPlane {
	t.Helper()
	w := host(t)
	w.server = w.program.Serve(t, w.Cluster, w.dataDir)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the server complained of:\n%s", w.server.Complaints())
		}
		if strings.Contains(w.server.Log(), "panic") {
			t.Errorf("the server panicked:\n%s", w.server.Log())
		}
	})
	return w
}

// in returns the sharedPlane for a subtest.
func (w sharedPlane) in(t *testing.T) sharedPlane {
	w.Cluster, w.t = w.Cluster.In(t), t
	return w
}

// group runs scenarios in parallel and returns when all have ended.
func (w sharedPlane) group(name string, scenarios map[string]scenario) {
	w.t.Run(name, func(t *testing.T) {
		for name, do := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w.in(t).do(do)
			})
		}
	})
}

func (w sharedPlane) run(name string, do scenario) {
	w.t.Run(name, func(t *testing.T) { w.in(t).do(do) })
}

func (w sharedPlane) do(do scenario) {
	select {
	case <-w.server.Ended():
		w.t.Fatalf("the server has ended:\n%s", w.server.Log())
	default:
	}
	do(w)
}
