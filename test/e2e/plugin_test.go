//go:build integration

package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock-project/penstock/test/framework/plugin"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// types runs a command from the plugin's help with the names of the test. The user answers yes. It
// fails unless the command exits with code.
func (w sharedPlane) types(code int, line string, names ...string) plugin.Output {
	w.t.Helper()
	return w.typesAs(plugin.User{Answer: "y"}, code, line, names...)
}

func (w sharedPlane) typesAs(user plugin.User, code int, line string, names ...string) plugin.Output {
	w.t.Helper()
	user.Kubeconfig = w.Kubeconfig()
	out := user.Run(w.t, strings.NewReplacer(names...).Replace(line))
	if out.ExitCode != code {
		w.t.Fatalf("want exit %d: %s", code, out)
	}
	return out
}

// beaconManifests writes the manifests of an operator into dir. With a node selector that matches
// no node, its Deployment never becomes available.
func (w sharedPlane) beaconManifests(dir, version, node string) {
	w.t.Helper()
	manifests := `
apiVersion: v1
kind: Namespace
metadata: {name: beacon-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: beacon-config, namespace: beacon-system}
data: {version: ` + version + `}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: beacon-webhook, namespace: beacon-system}
spec:
  selector: {matchLabels: {app: beacon}}
  template:
    metadata: {labels: {app: beacon}}
    spec:
      nodeSelector: {` + node + `}
      containers: [{name: main, image: "registry.example.com/beacon:` + version + `"}]
`
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(manifests), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// savedPlan: a user saves a reviewed change, and rolls it out later without a question. Any other
// change is refused.
func (w sharedPlane) savedPlan(dir string, names []string) {
	nobody, file := plugin.User{}, filepath.Join(w.t.TempDir(), "beacon.plan")
	names = append([]string{"lighthouse.plan", file}, names...)
	const apply = `kubectl penstock deploy ./manifests --name lighthouse --plan lighthouse.plan`
	out := w.typesAs(nobody, 0, `kubectl penstock deploy ./manifests --name lighthouse --save-plan lighthouse.plan`, names...)
	w.says(out.Stdout, "beacon-2 → beacon-3: 0 added, 2 changed")
	w.says(out.Stderr, "the plan is saved")
	content, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 || strings.Contains(string(content), "registry.example.com") {
		w.t.Errorf("the file has mode %v (%v) and content %s", info.Mode(), err, content)
	}
	w.beaconManifests(dir, "v1.1.1", "")
	w.says(w.typesAs(nobody, 3, apply, names...).Stderr, "the manifests are not the same")
	w.beaconManifests(dir, "v1.1.0", "")
	w.typesAs(nobody, 0, apply, names...)
	w.beaconManifests(dir, "v1.1.1", "")
	w.says(w.typesAs(nobody, 3, apply, names...).Stderr, "the revision to make was beacon-3 and is beacon-4")
	w.beaconManifests(dir, "v1.1.0", "")
}

// byPlugin uses an extension through the plugin alone. It runs each example of the commands' help,
// and tests answers, timeouts and interruptions.
func byPlugin(w sharedPlane) {
	dir := w.t.TempDir()
	names := []string{"lighthouse", "beacon", "./manifests", dir}
	nobody := plugin.User{}
	w.beaconManifests(dir, "v1.0.0", "")

	// Without a terminal nothing is rolled out without --yes. A refusal, an interruption or a
	// dry-run leaves no revision, no number and no history.
	w.says(w.typesAs(nobody, 2, `kubectl penstock deploy ./manifests --name lighthouse`, names...).Stderr, "--yes", "--dry-run")
	out := w.typesAs(plugin.User{Answer: "n"}, 1, `kubectl penstock deploy ./manifests --name lighthouse`, names...)
	w.says(out.Stdout, "nothing → beacon-1: 3 added")
	w.says(out.Stderr, "Roll out beacon-1? [y/N]", "nothing was stored or rolled out")
	ctx, interrupt := context.WithCancel(w.t.Context())
	out = plugin.User{Kubeconfig: w.Kubeconfig(), Input: interruption(interrupt)}.RunContext(w.t, ctx, "kubectl penstock deploy "+dir+" --name beacon")
	if out.ExitCode != 130 || !strings.Contains(out.Stderr, "nothing was stored or rolled out") {
		w.t.Errorf("interrupted: %s", out)
	}
	w.says(w.typesAs(nobody, 1, `kubectl penstock deploy ./manifests --name lighthouse --dry-run -o markdown`, names...).Stdout, "### nothing → beacon-1: 3 added")
	w.says(w.types(1, `kubectl penstock history lighthouse`, names...).Stderr, `there is no extension, revision or plan "beacon"`)
	w.absent("namespace", "beacon-system")

	// Another user takes the number first. Then the plugin stores nothing.
	out = w.typesAs(plugin.User{Input: &answer{text: "y\n", before: func() {
		w.MustKubectlInput(revision("beacon", 1).Phase("all", configMap("default", "beacon-faster", "x=1")).String(), "create", "-f", "-")
	}}}, 3, `kubectl penstock deploy ./manifests --name lighthouse`, names...)
	w.says(out.Stderr, "beacon-1 was created meanwhile: run the command again")

	// An install.
	out = w.types(0, `kubectl penstock deploy ./manifests --name lighthouse --version v1.0.0`, names...)
	w.says(out.Stderr, "✓ beacon-2 v1.0.0: Active, 3 of 3 objects available", "✓ deploy", "Roll out beacon-2, and delete the 1 removed? [y/N]")
	w.says(w.types(0, `kubectl penstock status`).Stdout, "EXTENSION", "beacon-2")
	w.says(w.types(0, `kubectl penstock tree lighthouse`, names...).Stdout, "✓ Deployment.apps beacon-system/beacon-webhook: Available", "✓ Pod beacon-webhook-", "1/1 ready")
	w.says(w.types(0, `kubectl penstock status beacon -o name`).Stdout, "clusterextensionrevision.olm.operatorframework.io/beacon-2")
	out = w.types(0, `kubectl penstock deploy ./manifests --name lighthouse --version v1.0.0`, names...)
	w.says(out.Stderr, "nothing changes: beacon-2 has that content already")
	lines := w.typesAs(nobody, 0, `kubectl penstock status lighthouse -w -o json --timeout 5m`, names...).Stdout
	for line := range strings.Lines(lines) {
		if !json.Valid([]byte(line)) {
			w.t.Errorf("no object in a line: %s", line)
		}
	}
	w.says(lines, `"name":"beacon-2"`)

	// An upgrade in a pipeline.
	w.beaconManifests(dir, "v1.1.0", "")
	w.says(w.typesAs(nobody, 1, `kubectl penstock deploy ./manifests --name lighthouse --dry-run`, names...).Stdout, "beacon-2 → beacon-3: 0 added, 2 changed, 0 removed, 1 unchanged",
		"registry.example.com/beacon:v1.0.0 -> registry.example.com/beacon:v1.1.0", "-  version: v1.0.0", "+  version: v1.1.0")
	w.savedPlan(dir, names)
	w.says(w.typesAs(nobody, 0, `kubectl penstock deploy ./manifests --name lighthouse --yes --timeout 5m`, names...).Stderr, "nothing changes: beacon-3 has that content already")
	w.types(0, `kubectl penstock status lighthouse -w --timeout 5m`, names...)
	w.says(w.types(1, `kubectl penstock diff lighthouse`, names...).Stdout, "beacon-2 → beacon-3", "image of container main")
	w.says(w.types(1, `kubectl penstock diff lighthouse -o markdown`, names...).Stdout, "### beacon-2 → beacon-3", "```diff")
	w.says(w.types(0, `kubectl penstock diff lighthouse --live --stat`, names...).Stdout, "live → beacon-3: 0 added, 0 changed, 0 removed")
	out = w.types(1, `kubectl penstock diff lighthouse-1..lighthouse-2 --object Deployment.apps/lighthouse-system/lighthouse-webhook`,
		append([]string{"lighthouse-1..lighthouse-2", "beacon-2..beacon-3"}, names...)...)
	w.says(out.Stdout, "beacon-2 → beacon-3: 0 added, 1 changed", "+++")

	// A rollout that gets stuck continues after the command has ended, until the revision is
	// archived.
	w.beaconManifests(dir, "v1.2.0", "zone: nowhere")
	out = w.typesAs(nobody, 124, `kubectl penstock deploy ./manifests --name lighthouse --yes --timeout 2s`, names...)
	w.says(out.Stderr, "beacon-4 continues by itself", "kubectl penstock rollback beacon", "not done within 2s")
	status, _ := w.eventually(func() (string, string) { return w.types(0, `kubectl penstock status lighthouse`, names...).Stdout, "" },
		func(status string) bool { return strings.Contains(status, "Deployment beacon-system/beacon-webhook") })
	w.says(status, "beacon-4", "beacon-3")
	w.says(w.types(0, `kubectl penstock why lighthouse`, names...).Stdout, "beacon-4 is rolling out, phase deploy", "It continues by itself.")
	w.types(0, `kubectl penstock archive lighthouse-3 --reason "its image does not exist" --yes`, append([]string{"lighthouse-3", "beacon-4"}, names...)...)

	// The next Kubernetes.
	w.says(w.types(0, `kubectl penstock ready --extension lighthouse`, names...).Stdout, "nothing found that blocks", "without a statement on")
	w.says(w.types(0, `kubectl penstock ready 1.38 --extension lighthouse`, names...).Stdout, "Kubernetes 1.38: nothing found that blocks")
	w.says(w.types(0, `kubectl penstock ready 1.38 --extension lighthouse --plan`, names...).Stdout, "Kubernetes 1.38: nothing found that blocks", "upgrade it to Kubernetes 1.38")

	// Back.
	w.says(w.types(1, `kubectl penstock rollback lighthouse --to 1 --dry-run`, append([]string{"--to 1", "--to 2"}, names...)...).Stdout, "beacon-4 → beacon-5")
	w.types(0, `kubectl penstock rollback lighthouse --cause "v1.1.0 is slow"`, names...)
	w.says(w.types(0, `kubectl penstock history lighthouse`, names...).Stdout, "rollback to beacon-2: v1.1.0 is slow")

	// Paused, and let go on.
	w.types(0, `kubectl penstock pause lighthouse --reason "INC-7: we look at it by hand"`, names...)
	w.says(w.types(0, `kubectl penstock status lighthouse`, names...).Stdout, "Paused", "INC-7: we look at it by hand")
	w.types(0, `kubectl penstock resume lighthouse --yes`, names...)

	w.says(w.types(1, `kubectl penstock status nothing`).Stderr, `there is no extension, revision or plan "nothing"`)
	w.says(w.types(1, `kubectl penstock why nothing`).Stderr, `no extension, revision or plan "nothing"`)
	w.says(w.types(0, `kubectl penstock version`).Stdout, "kubectl-penstock v0.0.0-test", "penstock         devel")
	w.says(w.types(0, `kubectl penstock version --client -o json`).Stdout, `"client": "v0.0.0-test"`)
	w.types(0, `kubectl penstock check --timeout 3m`)
	w.says(w.types(0, `kubectl penstock check`).Stdout, "✓ apiservice v1alpha1.olm.operatorframework.io", "✓ may deploy and pause: yes")
	w.says(w.types(0, `kubectl penstock check -o json`).Stdout, `"state": "ok"`)
	w.typesAs(plugin.User{Folder: w.t.TempDir()}, 0, `kubectl penstock completion install`)
	w.says(w.types(0, `kubectl penstock completion bash`).Stdout, "kubectl-penstock")
	w.says(w.types(0, `kubectl penstock __complete status beac`).Stdout, "beacon\n", "beacon-5")
	w.MustKubectl("delete", "cer", "--selector=penstock.dev/chain=beacon", poll.TimeoutFlag)
}

// answer is the input of a user who acts before they answer.
type answer struct {
	text   string
	before func()
}

// Read implements io.Reader.
func (a *answer) Read(into []byte) (int, error) {
	if a.before != nil {
		a.before()
		a.before = nil
	}
	n := copy(into, a.text)
	a.text = a.text[n:]
	return n, nil
}

// interruption is the input of a user who interrupts the command instead of answering.
type interruption func()

// Read implements io.Reader.
func (i interruption) Read([]byte) (int, error) {
	i()
	select {} // the process would end
}

// reviewByPlugin reviews a plan that waits for approval. An approval of another hash is a conflict.
// A rejected plan can be computed again.
func reviewByPlugin(w sharedPlane) {
	w.says(w.types(0, `kubectl penstock plan list`).Stdout, "rebalance")
	w.says(w.types(0, `kubectl penstock plan list`).Stdout, "plan rebalance waits for an approval, impact High", "LoadAwareRebalancing", "0/2")
	shown := w.types(0, `kubectl penstock plan show rebalance`).Stdout
	w.says(shown, "ReviewRequired, impact High", "4 nodes reboot in 2 waves, of worker", "takes .spec.deschedulingIntervalSeconds", "-  - LongLifecycle", "hash sha256:")
	w.says(w.types(0, `kubectl penstock why plan/rebalance`).Stdout, "plan rebalance waits for its approval", "kubectl penstock plan approve rebalance")
	w.says(w.typesAs(plugin.User{}, 2, `kubectl penstock plan approve rebalance`).Stderr, "--hash is required")
	w.says(w.typesAs(plugin.User{}, 3, `kubectl penstock plan approve rebalance --hash sha256:0`).Stderr, "read it again")
	w.typesAs(plugin.User{Answer: "n"}, 1, `kubectl penstock plan approve rebalance`)
	w.types(0, `kubectl penstock plan reject rebalance --reason "not before the audit"`)
	w.phase("rebalance", "Ignored")
	w.says(w.typesAs(plugin.User{}, 0, `kubectl penstock plan run rebalance`).Stderr, "waits for an approval: kubectl penstock plan approve rebalance --hash sha256:")
}

// approveByPlugin approves what is on the screen.
func approveByPlugin(w sharedPlane) {
	w.says(w.types(0, `kubectl penstock plan approve rebalance --comment CHG-4711`, "CHG-4711", "CHG-1").Stderr, "Approve plan rebalance, impact High? [y/N]", "is approved by admin")
}
