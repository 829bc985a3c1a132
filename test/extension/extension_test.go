//go:build integration

// Package extension_test tests the installation of catalog packages by ClusterExtensions. It uses
// plain kubectl, the real program, a control plane whose Deployments become Available, and a
// registry on loopback.
//
// All scenarios share one control plane, one server and one registry. Each has packages, catalogs,
// extensions and a namespace of its own, so that they do not disturb each other:
//
//	go test ./test/extension -run 'TestExtensions/Loop/Install'
package extension_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/hack/release/sign"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// scenario is a test in the shared cluster. Its name is that of its namespace, too.
type scenario func(w shared)

// shared is the shared control plane with Penstock on it, as a scenario sees it.
type shared struct {
	*cluster.Cluster
	t *testing.T
	// top is the test that the program lives for.
	top     *testing.T
	program *penstock.Program
	// serving is the process that runs: one that was killed has a successor.
	serving *atomic.Pointer[penstock.Server]
	dataDir string
	images  *registry.Registry
	// signs signs the bundles that must be signed, by the file policy.
	signs  *sign.Key
	policy string
	// host and own watch what kubectl cannot wait for.
	host dynamic.Interface
	own  versioned.Interface
	// name is that of the scenario, for what it makes: lower case.
	name string
}

// scenarios are all that share it, by group. A group is in a file of its own.
func scenarios() map[string]map[string]scenario {
	loop := loopScenarios()
	if os.Getenv("FULL") == "1" {
		// The loop without a cluster (pkg/controller/extension) shows the same in seconds.
		loop = merged(loop, nameScenarios(), changeScenarios(), farScenarios(), templateScenarios())
	}
	return map[string]map[string]scenario{
		"Author":      authorScenarios(),
		"Fleet":       fleetScenarios(),
		"Loop":        loop,
		"Plugin":      pluginScenarios(),
		"Conformance": merged(conformInstall(), conformUpdate()),
		"Threats":     threatScenarios(),
	}
}

func TestExtensions(t *testing.T) {
	t.Parallel()
	w := start(t)
	// Alone: the groups begin when this function has returned.
	alone, names := aloneScenarios(), []string{"ClusterUpgrade", "Unregistered"}
	if os.Getenv("FULL") == "1" {
		names = append(names, "Idle", "OtherController", "Looping", "Killed", "FleetKilled")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { alone[name](w.in(t, name)) })
	}
	for group, all := range scenarios() {
		t.Run(group, func(t *testing.T) {
			for name, do := range all {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					do(w.in(t, group+"-"+name))
				})
			}
		})
	}
}

// start runs everything until the test ends.
func start(t *testing.T) shared {
	t.Helper()
	w := shared{Cluster: cluster.Start(t, cluster.Workloads()), t: t, top: t, program: penstock.Build(t), serving: &atomic.Pointer[penstock.Server]{},
		dataDir: penstock.DataDir(t), images: registry.Serve(t), signs: newSigningKey(t)}
	w.policy = verificationPolicy(t, w.images.Host, w.signs)
	w.connect()
	w.serve()
	w.awaitStamps()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the server complained of:\n%s", w.server().Complaints())
		}
		if strings.Contains(w.server().Log(), "panic") {
			t.Errorf("the server panicked:\n%s", w.server().Log())
		}
	})
	return w
}

// connect makes the clients.
func (w *shared) connect() {
	w.t.Helper()
	var err error
	if w.host, err = dynamic.NewForConfig(w.Config()); err != nil {
		w.t.Fatal(err)
	}
	if w.own, err = versioned.NewForConfig(w.Config()); err != nil {
		w.t.Fatal(err)
	}
}

// serve runs the program with the rights of artifacts/deploy.
func (w shared) serve(more ...string) {
	w.t.Helper()
	w.serving.Store(w.program.Serve(w.top, w.Cluster, w.dataDir, append(append(w.flags(), "--verification-policy="+w.policy), more...)...))
}

func (w shared) server() *penstock.Server { return w.serving.Load() }

// flags lead the program to the registry.
func (w shared) flags() []string {
	return []string{"--registry-cas-dir=" + w.images.Dir, "--registry-auth-file=" + filepath.Join(w.images.Dir, registry.AuthFile)}
}

// in returns the cluster for a scenario: what fails, fails there. It makes a namespace of the
// name of the scenario.
func (w shared) in(t *testing.T, name string) shared {
	t.Helper()
	w.Cluster, w.t, w.name = w.Cluster.In(t), t, strings.ToLower(name)
	w.MustKubectl("create", "namespace", w.name)
	return w
}

// merged returns the elements of several files, by name.
func merged[T any](all ...map[string]T) map[string]T {
	out := map[string]T{}
	for _, one := range all {
		maps.Copy(out, one)
	}
	return out
}
