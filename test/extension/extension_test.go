//go:build integration

// Package extension_test tests the installation of catalog packages by ClusterExtensions. It uses
// plain kubectl, the real program, a control plane whose Deployments become Available, and a
// registry on loopback.
//
// All scenarios share one control plane, one server and one registry. Each scenario has its own
// packages, catalogs, extensions and namespace:
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

// scenario is a test in the shared cluster. Its namespace has the same name.
type scenario func(w shared)

// shared is the shared control plane with Penstock, for one scenario.
type shared struct {
	*cluster.Cluster
	t *testing.T
	// top is the test that owns the program.
	top     *testing.T
	program *penstock.Program
	// serving is the running process. It changes when the process is killed and restarted.
	serving *atomic.Pointer[penstock.Server]
	dataDir string
	images  *registry.Registry
	// signs is the key for bundles that need a signature. policy is the file of the verification
	// policy.
	signs  *sign.Key
	policy string
	// host and own watch for states that kubectl cannot wait for.
	host dynamic.Interface
	own  versioned.Interface
	// name is the scenario's name in lower case, for the names of its objects.
	name string
}

// scenarios returns the scenarios by group. Each group has its own file.
func scenarios() map[string]map[string]scenario {
	loop := loopScenarios()
	if os.Getenv("FULL") == "1" {
		// Without FULL=1, the tests of pkg/controller/extension cover these scenarios without a
		// cluster, in seconds.
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
	// The alone scenarios run first: the groups start in parallel when this function has returned.
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

// start starts the control plane, the registry and the program until the test ends.
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

// connect creates the clients.
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

// serve runs the program with the RBAC rules of artifacts/deploy.
func (w shared) serve(more ...string) {
	w.t.Helper()
	w.serving.Store(w.program.Serve(w.top, w.Cluster, w.dataDir, append(append(w.flags(), "--verification-policy="+w.policy), more...)...))
}

func (w shared) server() *penstock.Server { return w.serving.Load() }

// flags returns the program's flags for the registry.
func (w shared) flags() []string {
	return []string{"--registry-cas-dir=" + w.images.Dir, "--registry-auth-file=" + filepath.Join(w.images.Dir, registry.AuthFile)}
}

// in returns the cluster for a scenario, with a new namespace of the scenario's name.
func (w shared) in(t *testing.T, name string) shared {
	t.Helper()
	w.Cluster, w.t, w.name = w.Cluster.In(t), t, strings.ToLower(name)
	w.MustKubectl("create", "namespace", w.name)
	return w
}

// merged merges the scenarios of several files.
func merged[T any](all ...map[string]T) map[string]T {
	out := map[string]T{}
	for _, one := range all {
		maps.Copy(out, one)
	}
	return out
}
