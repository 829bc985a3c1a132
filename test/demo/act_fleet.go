package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/pkg/text"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/registry"
)

const (
	// fleetName is the name of the ClusterExtensionSet, and of the namespace on each cluster.
	fleetName = "lamp"
	approver  = "bob"
)

// edges returns the clusters of the fleet. The first is the canary, edge-3 fails, and edge-4 is
// unreachable.
func edges() []string { return []string{"edge-1", "edge-2", "edge-3", "edge-4"} }

func fleetActs() []act {
	return []act{
		{
			title: "five control planes", skip: always, play: startFleet,
			why: "The same extension runs on many clusters. Edits by hand differ sooner or later, and a bad version reaches all clusters on one day.",
		},
		{
			title: "another user approves, and the canary is first", skip: always, play: installFleet,
			why: "A ClusterExtensionSet asks for one extension on every cluster that it selects. Penstock shows what each cluster would see. " +
				"Nothing is written before another user has approved exactly that.",
		},
		{
			title: "one cluster fails", skip: always, play: failOnOne,
			why: "A version that works on the canary can fail on the next cluster. The rollout halts before it reaches the others, " +
				"and the cluster that failed goes back to its version.",
		},
		{
			title: "one cluster is away", skip: always, play: followLater,
			why: "At the edge some cluster is always offline. It must not stop the others, and must not be forgotten.",
		},
	}
}

// startFleet starts the host, the clusters and Penstock, and registers the clusters with Penstock.
func startFleet(ctx context.Context, d *demo) {
	d.startCluster(ctx)
	d.startEdges(ctx)
	d.startPenstock(ctx)
	bob, err := os.ReadFile(get(d.plane.User(approver, "system:masters")).Kubeconfig())
	must(err)
	must(os.WriteFile(filepath.Join(d.dir, approver+".kubeconfig"), bob, 0o600))
	for i, name := range edges() {
		ring := "1"
		if i == 0 {
			ring = "0"
		}
		d.show(ctx, fmt.Sprintf("kubectl -n penstock-system create secret generic %[1]s --from-file=kubeconfig=%[2]s &&\nkubectl -n penstock-system label secret %[1]s penstock.dev/cluster= tier=edge ring=%[3]s",
			name, quoted(filepath.Join(d.dir, name+".kubeconfig")), ring))
	}
	d.ok("a Secret with a kubeconfig and the label penstock.dev/cluster is a cluster; ring=0 is the canary")
}

func (d *demo) startEdges(ctx context.Context) {
	tools, began := get(plane.Tools(ctx, d.out)), time.Now()
	d.edges = map[string]*plane.Plane{}
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed error
	for _, name := range edges() {
		all.Go(func() {
			started, err := plane.Start(ctx, plane.Options{Dir: filepath.Join(d.dir, name), Tools: tools, Detached: d.Keep, Processors: 1})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = fmt.Errorf("starting the control plane of %s: %w", name, err)
				return
			}
			d.edges[name] = started
		})
	}
	all.Wait()
	must(failed)
	for name, started := range d.edges {
		access := get(started.User(user, "system:masters"))
		content, err := os.ReadFile(access.Kubeconfig())
		must(err)
		must(os.WriteFile(filepath.Join(d.dir, name+".kubeconfig"), content, 0o600))
		d.quiet(ctx, fmt.Sprintf("kubectl --kubeconfig %s create namespace %s", quoted(access.Kubeconfig()), fleetName))
	}
	d.ok("%s more after %s: etcd and kube-apiserver each", text.Count(len(d.edges), "control plane"), seconds(time.Since(began)))
}

// installFleet creates the set, and rolls version 1 out to all clusters.
func installFleet(ctx context.Context, d *demo) {
	d.publishLamp(ctx, 1)
	d.show(ctx, "kubectl apply --server-side -f - <<'EOF'\n"+d.fleetSet(1)+"EOF")
	first := d.awaitRollout(ctx, 1, "it waits for an approval", phaseIs(fleet.ReviewRequired))
	d.show(ctx, "kubectl penstock fleet diff "+fleetName)
	own := d.try(ctx, fmt.Sprintf("kubectl penstock fleet approve %s --yes --digest %s", fleetName, first.Status.Digest))
	d.claim(own.ExitCode != 0 && strings.Contains(own.Stderr, "another user must approve"), "the author of the set cannot approve the change", "a refusal", own.Stderr+own.Stdout)
	d.approveRollout(ctx, first)
	var order []string
	d.awaitRollout(ctx, 1, "every cluster has version 1", func(r *olmv1alpha1.ClusterExtensionRollout) bool {
		for _, one := range r.Status.Clusters {
			if !slices.Contains(order, one.Name) {
				order = append(order, one.Name)
				d.ok("%s begins", one.Name)
			}
		}
		return r.Status.Phase == string(fleet.Completed)
	})
	d.show(ctx, "kubectl penstock fleet status "+fleetName)
	d.claim(order[0] == "edge-1", "the canary was first", "edge-1", order[0])
	d.versions(ctx, "1", "1", "1", "1")
}

// failOnOne rolls out version 2, which fails on one cluster and is rolled back there automatically.
func failOnOne(ctx context.Context, d *demo) {
	d.show(ctx, fmt.Sprintf("kubectl --kubeconfig %s -n %s create configmap shade --from-literal=owner=somebody-else", quoted(filepath.Join(d.dir, "edge-3.kubeconfig")), fleetName))
	d.note("version 2 has a ConfigMap of this name, too: Penstock does not take an object of another owner")
	d.publishLamp(ctx, 2)
	d.show(ctx, fmt.Sprintf("kubectl patch clusterextensionset %s --type=merge -p '{\"spec\":{\"template\":{\"spec\":{\"source\":{\"image\":{\"ref\":\"%s\"}}}}}}'", fleetName, d.lamp(2)))
	second := d.awaitRollout(ctx, 2, "it waits for an approval", phaseIs(fleet.ReviewRequired))
	d.approveRollout(ctx, second)
	began := time.Now()
	d.awaitRollout(ctx, 2, "edge-3 is rolled back, and that halts the rollout", func(r *olmv1alpha1.ClusterExtensionRollout) bool {
		return r.Status.Phase == string(fleet.PhaseHalted) && stateOf(r, "edge-3") == fleet.RolledBack
	})
	d.ok("edge-3 was rolled back and halts the rollout, %s after the approval", seconds(time.Since(began)))
	d.show(ctx, "kubectl penstock fleet status "+fleetName)
	d.versions(ctx, "2", "2", "1", "1")
}

// followLater continues without the failed and the unreachable cluster. The unreachable cluster
// follows later.
func followLater(ctx context.Context, d *demo) {
	pid := get(d.edges["edge-4"].Pid("kube-apiserver"))
	must(syscall.Kill(pid, syscall.SIGSTOP))
	// A stopped process could not be shut down cleanly.
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	d.note("kube-apiserver of edge-4 gets SIGSTOP: it takes connections, and never answers")
	d.show(ctx, fmt.Sprintf("kubectl penstock fleet skip %s edge-3 --kubeconfig %s --comment 'its owner moves the ConfigMap'", fleetName, quoted(filepath.Join(d.dir, approver+".kubeconfig"))))
	d.awaitRollout(ctx, 2, "it completes without edge-4", func(r *olmv1alpha1.ClusterExtensionRollout) bool {
		return r.Status.Phase == string(fleet.Completed) && stateOf(r, "edge-4") == fleet.Deferred
	})
	d.show(ctx, "kubectl penstock fleet status "+fleetName)
	must(syscall.Kill(pid, syscall.SIGCONT))
	d.note("edge-4 answers again")
	began := time.Now()
	d.awaitRollout(ctx, 2, "edge-4 follows", func(r *olmv1alpha1.ClusterExtensionRollout) bool { return stateOf(r, "edge-4") == fleet.Succeeded })
	d.ok("edge-4 followed by itself after %s: the approval is still that of exactly this change", seconds(time.Since(began)))
	d.versions(ctx, "2", "2", "1", "2")
	d.show(ctx, "kubectl get clusterextensionrollouts")
}

func (d *demo) lamp(version int) string {
	return fmt.Sprintf("%s/plain/lamp:%d", d.registry.Host, version)
}

// publishLamp builds the image of a version. Version 2 has one more object.
func (d *demo) publishLamp(ctx context.Context, version int) {
	folder := filepath.Join(d.dir, fmt.Sprintf("lamp-%d", version))
	must(os.MkdirAll(folder, 0o700))
	content := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lamp, namespace: %s}\ndata: {version: '%d'}\n", fleetName, version)
	if version > 1 {
		content += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shade, namespace: %s}\ndata: {colour: green}\n", fleetName)
	}
	must(os.WriteFile(filepath.Join(folder, "lamp.yaml"), []byte(content), 0o600))
	must(registry.Push(ctx, d.registry.Dir, d.lamp(version), get(registry.FromFolder(folder))))
}

func (d *demo) fleetSet(version int) string {
	return fmt.Sprintf(`apiVersion: penstock.dev/v1alpha1
kind: ClusterExtensionSet
metadata: {name: %[1]s}
spec:
  clusterSelector: {matchLabels: {tier: edge}}
  template:
    metadata: {annotations: {penstock.dev/on-failure: Rollback, penstock.dev/progress-deadline-minutes: "1"}}
    spec: {namespace: %[1]s, source: {sourceType: Image, image: {ref: "%[2]s"}}}
  strategy:
    deadlineSeconds: 180
    waves:
    - {name: canary, clusterSelector: {matchLabels: {ring: "0"}}, soakSeconds: 2}
    - {name: rest}
`, fleetName, d.lamp(version))
}

func (d *demo) approveRollout(ctx context.Context, rollout *olmv1alpha1.ClusterExtensionRollout) {
	d.show(ctx, fmt.Sprintf("kubectl penstock fleet approve %s --kubeconfig %s --yes --digest %s", fleetName, quoted(filepath.Join(d.dir, approver+".kubeconfig")), rollout.Status.Digest))
}

// try runs a command that may fail, and prints it with its error.
func (d *demo) try(ctx context.Context, command string) result {
	d.command(d.shortened(command))
	out := get(d.shell.run(ctx, command))
	d.output(d.shortened(out.Stderr))
	return out
}

// awaitRollout waits until is returns true for a rollout of the set, and returns the rollout.
func (d *demo) awaitRollout(ctx context.Context, number int, claim string, is func(*olmv1alpha1.ClusterExtensionRollout) bool) *olmv1alpha1.ClusterExtensionRollout {
	name, last := fmt.Sprintf("%s-%d", fleetName, number), &olmv1alpha1.ClusterExtensionRollout{}
	err := follow(ctx, d.cluster.penstock.OlmV1alpha1().ClusterExtensionRollouts(), named(name), d.cluster.alive,
		func(list *olmv1alpha1.ClusterExtensionRolloutList) []*olmv1alpha1.ClusterExtensionRollout {
			return pointers(list.Items)
		}, func(r *olmv1alpha1.ClusterExtensionRollout) bool {
			last = r
			d.pass("%s is %s", name, r.Status.Phase)
			return is(r)
		})
	d.clear()
	if err != nil {
		panic(stop{&failure{claim: name + ": " + claim, want: "that within " + patience.String(), got: fmt.Sprintf("%v; it is %s: %s", err, last.Status.Phase, last.Status.Message)}})
	}
	d.number = max(d.number, number)
	return last
}

func phaseIs(phase fleet.Phase) func(*olmv1alpha1.ClusterExtensionRollout) bool {
	return func(r *olmv1alpha1.ClusterExtensionRollout) bool { return r.Status.Phase == string(phase) }
}

func stateOf(r *olmv1alpha1.ClusterExtensionRollout, name string) fleet.State {
	for _, one := range r.Status.Clusters {
		if one.Name == name {
			return fleet.State(one.State)
		}
	}
	return fleet.Pending
}

// versions checks the version on each cluster, by asking the cluster itself.
func (d *demo) versions(ctx context.Context, want ...string) {
	var said, wanted []string
	for i, name := range edges() {
		client := get(kubernetes.NewForConfig(d.edges[name].Config()))
		found := get(client.CoreV1().ConfigMaps(fleetName).Get(ctx, "lamp", metav1.GetOptions{}))
		said, wanted = append(said, name+" has version "+found.Data["version"]), append(wanted, name+" has version "+want[i])
	}
	d.claim(slices.Equal(said, wanted), strings.Join(said, ", "), strings.Join(wanted, ", "), strings.Join(said, ", "))
}
