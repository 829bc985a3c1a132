package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/pod"
	"github.com/penstock-project/penstock/test/framework/registry"
)

func install(ctx context.Context, d *demo) {
	d.startCluster(ctx)
	d.startPenstock(ctx)
	revision := d.apply(ctx, rendering{dir: d.From})
	d.rollOut(ctx, revision)
	d.holds(ctx, revision)
	d.show(ctx, "kubectl get cer")
}

// startCluster starts a new control plane and describes it.
func (d *demo) startCluster(ctx context.Context) {
	tools := get(plane.Tools(ctx, d.out))
	began := time.Now()
	options := plane.Options{
		Dir: filepath.Join(d.dir, "cluster"), Tools: tools, Workloads: !d.Fleet, Detached: d.Keep,
		Progress: func(what string) { d.pass("%s", what) },
	}
	if d.Image != "" {
		options.APIServerArgs = []string{pod.Routing}
	}
	var err error
	if d.plane, err = plane.Start(ctx, options); err != nil {
		panic(stop{fmt.Errorf("starting a control plane: %w", err)})
	}
	took := time.Since(began)
	d.startRegistry()
	who := user
	if d.Fleet {
		// Only Penstock's own identity may write the children of a ClusterExtensionSet.
		who = serviceaccount.MakeUsername("penstock-system", registration.ServiceAccount)
	}
	host := get(d.plane.User(who, "system:masters"))
	d.server = &server{
		path: filepath.Join(d.dir, "bin", "penstock"),
		args: []string{
			"serve", "--kubeconfig=" + host.Kubeconfig(), "--data-dir=" + filepath.Join(d.dir, "data"),
			"--bind-address=127.0.0.1", "--secure-port=0", "--catalog-addr=127.0.0.1:0", "--register",
			"--registry-auth-file=" + filepath.Join(d.registry.Dir, registry.AuthFile),
			"--registries-conf=" + filepath.Join(d.registry.Dir, registry.MirrorsFile),
			"--registry-certs-dir=" + filepath.Join(d.registry.Dir, registry.CertsDir),
		},
		log: filepath.Join(d.dir, "penstock.log"), detached: d.Keep,
	}
	d.cluster = get(newCluster(d.plane.Config(), d.server.alive))
	d.shell = get(newShell(d.dir, d.environment(), map[string]string{
		"penstock": d.Penstock, "kubectl": filepath.Join(tools, "kubectl"),
		"kubectl-penstock": filepath.Join(filepath.Dir(d.Penstock), "kubectl-penstock"),
	}))
	d.introduce(took)
}

func (d *demo) environment() []string {
	return []string{
		"KUBECONFIG=" + d.plane.Kubeconfig(),
		"REGISTRY_AUTH_FILE=" + filepath.Join(d.registry.Dir, registry.AuthFile),
		"CONTAINERS_REGISTRIES_CONF=" + filepath.Join(d.registry.Dir, registry.MirrorsFile),
	}
}

func (d *demo) introduce(took time.Duration) {
	client, err := kubernetes.NewForConfig(d.plane.Config())
	if err != nil {
		panic(stop{fmt.Errorf("making a client: %w", err)})
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		panic(stop{fmt.Errorf("asking for the version of the cluster: %w", err)})
	}
	if d.Fleet {
		d.ok("Kubernetes %s on loopback after %s: etcd, kube-apiserver", version.GitVersion, seconds(took))
		return
	}
	d.ok("Kubernetes %s on loopback after %s: etcd, kube-apiserver, controller-manager, scheduler",
		version.GitVersion, seconds(took))
	d.note("kwok simulates its one node: no containers run, no images are pulled, and Pods become ready at once")
}

func (d *demo) startPenstock(ctx context.Context, more ...string) {
	if d.Image != "" {
		d.startImage(ctx)
		return
	}
	d.command("penstock serve --kubeconfig penstock.kubeconfig --data-dir data --secure-port 0 --register\n  --registry-auth-file registry/auth.json --registries-conf registry/registries.conf --registry-certs-dir registry/certs" + strings.Join(append([]string{""}, more...), " ") + " &")
	began := time.Now()
	must(d.server.start())
	d.reachable(ctx)
	d.ok("kube-apiserver serves %s through penstock (pid %d) after %s",
		olmv1alpha1.SchemeGroupVersion, d.server.pid(), seconds(time.Since(began)))
}

// reachable waits until the API of Penstock can be used through kube-apiserver.
func (d *demo) reachable(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := d.cluster.served(ctx)
		if err == nil {
			return
		}
		must(d.server.alive())
		select {
		case <-ctx.Done():
			panic(stop{&failure{claim: "kube-apiserver serves Penstock's API", want: "that within " + patience.String(), got: err.Error()}})
		case <-time.After(again):
		}
	}
}
