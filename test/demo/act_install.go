package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/pod"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// install starts a cluster and Penstock, and installs the first version.
func install(ctx context.Context, d *demo) error {
	if err := d.startCluster(ctx); err != nil {
		return err
	}
	if err := d.startPenstock(ctx); err != nil {
		return err
	}
	revision, err := d.apply(ctx, rendering{dir: d.From})
	if err != nil {
		return err
	}
	if err := d.rollOut(ctx, revision); err != nil {
		return err
	}
	if err := d.holds(ctx, revision); err != nil {
		return err
	}
	_, err = d.show(ctx, "kubectl get cer")
	return err
}

// startCluster boots a control plane of its own and says what it is.
func (d *demo) startCluster(ctx context.Context) error {
	tools, err := plane.Tools(ctx, d.out)
	if err != nil {
		return err
	}
	began := time.Now()
	options := plane.Options{
		Dir: filepath.Join(d.dir, "cluster"), Tools: tools, Workloads: true, Detached: d.Keep,
		Progress: func(what string) { d.pass("%s", what) },
	}
	if d.Image != "" {
		options.APIServerArgs = []string{pod.Routing}
	}
	d.plane, err = plane.Start(ctx, options)
	if err != nil {
		return fmt.Errorf("starting a control plane: %w", err)
	}
	took := time.Since(began)
	if err := d.startRegistry(); err != nil {
		return err
	}
	host, err := d.plane.User(user, "system:masters")
	if err != nil {
		return err
	}
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
	if d.cluster, err = newCluster(d.plane.Config(), d.server.alive); err != nil {
		return err
	}
	d.shell, err = newShell(d.dir, d.environment(), map[string]string{
		"penstock": d.Penstock, "kubectl": filepath.Join(tools, "kubectl"),
		"kubectl-penstock": filepath.Join(filepath.Dir(d.Penstock), "kubectl-penstock"),
	})
	if err != nil {
		return err
	}
	return d.introduce(took)
}

// environment is what a person has set for kubectl and penstock.
func (d *demo) environment() []string {
	return []string{
		"KUBECONFIG=" + d.plane.Kubeconfig(),
		"REGISTRY_AUTH_FILE=" + filepath.Join(d.registry.Dir, registry.AuthFile),
		"CONTAINERS_REGISTRIES_CONF=" + filepath.Join(d.registry.Dir, registry.MirrorsFile),
	}
}

// introduce says what the cluster is and is not.
func (d *demo) introduce(took time.Duration) error {
	client, err := kubernetes.NewForConfig(d.plane.Config())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking for the version of the cluster: %w", err)
	}
	d.ok("Kubernetes %s on loopback after %s: etcd, kube-apiserver, controller-manager, scheduler",
		version.GitVersion, seconds(took))
	d.note("its one node is simulated by kwok: no containers, no images are pulled, Pods just become ready")
	return nil
}

// startPenstock starts the program and returns when kubectl can use its API.
func (d *demo) startPenstock(ctx context.Context, more ...string) error {
	if d.Image != "" {
		return d.startImage(ctx)
	}
	d.command("penstock serve --kubeconfig penstock.kubeconfig --data-dir data --secure-port 0 --register\n  --registry-auth-file registry/auth.json --registries-conf registry/registries.conf --registry-certs-dir registry/certs" + strings.Join(append([]string{""}, more...), " ") + " &")
	began := time.Now()
	if err := d.server.start(); err != nil {
		return err
	}
	if err := d.reachable(ctx); err != nil {
		return err
	}
	d.ok("kube-apiserver serves %s through penstock (pid %d) after %s",
		olmv1alpha1.SchemeGroupVersion, d.server.pid(), seconds(time.Since(began)))
	return nil
}

// reachable returns when the API of Penstock can be used through kube-apiserver.
func (d *demo) reachable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := d.cluster.served(ctx)
		if err == nil {
			return nil
		}
		if gone := d.server.alive(); gone != nil {
			return gone
		}
		select {
		case <-ctx.Done():
			return &failure{claim: "kube-apiserver serves Penstock's API", want: "that within " + patience.String(), got: err.Error()}
		case <-time.After(again):
		}
	}
}
