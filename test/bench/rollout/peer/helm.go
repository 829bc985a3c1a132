package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/registry"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/penstock-project/penstock/test/bench/rollout/order"
)

const timeout = 5 * time.Minute

// helm is Helm's Go SDK as a controller would use it: one process, one action per release,
// server-side apply, releases in Secrets, no waiting for workloads.
type helm struct {
	config    *rest.Config
	served    discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
	installed map[string]bool
	// archives pull each chart once, by reference.
	archives map[string]func() ([]byte, error)
}

func newHelm(config *rest.Config) (*helm, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	served := memory.NewMemCacheClient(client)
	return &helm{config: config, served: served, mapper: restmapper.NewDeferredDiscoveryRESTMapper(served), installed: map[string]bool{}, archives: map[string]func() ([]byte, error){}}, nil
}

func (h *helm) prepare(o order.Order) (func(context.Context) error, error) {
	var tasks []func(context.Context) error
	charts, err := chartClient(o)
	if err != nil {
		return nil, err
	}
	for _, release := range o.Releases {
		if ref := release.Chart; ref != "" && h.archives[ref] == nil {
			h.archives[ref] = sync.OnceValues(func() ([]byte, error) { return pull(charts, ref) })
		}
		task, err := h.task(o.Verb, release)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, task)
		h.installed[release.Name] = o.Verb != order.Remove
	}
	return func(ctx context.Context) error {
		return each(ctx, o.Workers, tasks, func(ctx context.Context, do func(context.Context) error) error { return do(ctx) })
	}, nil
}

func (h *helm) configuration(namespace string) (*action.Configuration, error) {
	configuration := action.NewConfiguration()
	if err := configuration.Init(&getter{helm: h, namespace: namespace}, namespace, "secrets"); err != nil {
		return nil, fmt.Errorf("setting up Helm: %w", err)
	}
	return configuration, nil
}

func (h *helm) task(verb order.Verb, release order.Release) (func(context.Context) error, error) {
	configuration, err := h.configuration(release.Namespace)
	if err != nil {
		return nil, err
	}
	if verb == order.Apply && release.Chart != "" {
		archive := h.archives[release.Chart]
		return func(ctx context.Context) error {
			content, err := archive()
			if err != nil {
				return err
			}
			// Helm modifies a chart that it installs, so each release needs its own copy.
			packed, err := loader.LoadArchive(bytes.NewReader(content))
			if err != nil {
				return fmt.Errorf("reading chart %s: %w", release.Chart, err)
			}
			return install(ctx, configuration, release, packed, nil)
		}, nil
	}
	if verb == order.Apply {
		packed, err := pack(release)
		if err != nil {
			return nil, err
		}
		if !h.installed[release.Name] {
			return func(ctx context.Context) error { return install(ctx, configuration, release, packed, nil) }, nil
		}
		return func(ctx context.Context) error { return upgrade(ctx, configuration, release, packed, nil) }, nil
	}
	if verb == order.Rollback {
		return func(context.Context) error { return rollback(configuration, release) }, nil
	}
	return func(context.Context) error { return uninstall(configuration, release) }, nil
}

func install(ctx context.Context, configuration *action.Configuration, release order.Release, packed *chart.Chart, values map[string]any) error {
	do := action.NewInstall(configuration)
	do.ReleaseName, do.Namespace, do.Timeout = release.Name, release.Namespace, timeout
	do.WaitStrategy, do.ServerSideApply = kube.HookOnlyStrategy, true
	_, err := do.RunWithContext(ctx, packed, values)
	return err
}

func upgrade(ctx context.Context, configuration *action.Configuration, release order.Release, packed *chart.Chart, values map[string]any) error {
	do := action.NewUpgrade(configuration)
	do.Namespace, do.Timeout = release.Namespace, timeout
	// Revert other writers' changes, as an owner does.
	do.WaitStrategy, do.ServerSideApply, do.ForceConflicts = kube.HookOnlyStrategy, "true", true
	_, err := do.RunWithContext(ctx, release.Name, packed, values)
	return err
}

func rollback(configuration *action.Configuration, release order.Release) error {
	do := action.NewRollback(configuration)
	do.Timeout = timeout
	do.WaitStrategy, do.ServerSideApply, do.ForceConflicts = kube.HookOnlyStrategy, "true", true
	return do.Run(release.Name)
}

func uninstall(configuration *action.Configuration, release order.Release) error {
	do := action.NewUninstall(configuration)
	do.Timeout, do.WaitStrategy = timeout, kube.HookOnlyStrategy
	_, err := do.Run(release.Name)
	return err
}

// pack returns a chart with one template per object.
func pack(release order.Release) (*chart.Chart, error) {
	objects, err := read(release)
	if err != nil {
		return nil, err
	}
	packed := &chart.Chart{Metadata: &chart.Metadata{Name: release.Name, Version: "1.0.0", APIVersion: chart.APIVersionV2}}
	for i, object := range objects {
		text := strings.ReplaceAll(string(object), "{{", `{{ "{{" }}`)
		packed.Templates = append(packed.Templates, &common.File{Name: fmt.Sprintf("templates/%04d.yaml", i), Data: []byte(text)})
	}
	return packed, nil
}

// chartClient returns Helm's client for the registry in an order, or nil.
func chartClient(o order.Order) (*registry.Client, error) {
	if o.CAFile == "" {
		return nil, nil
	}
	ca, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the registry: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return registry.NewClient(registry.ClientOptCredentialsFile(o.AuthFile), registry.ClientOptEnableCache(true), registry.ClientOptHTTPClient(&http.Client{Transport: transport}))
}

func pull(client *registry.Client, ref string) ([]byte, error) {
	pulled, err := client.Pull(ref)
	if err != nil {
		return nil, fmt.Errorf("pulling chart %s: %w", ref, err)
	}
	return pulled.Chart.Data, nil
}

// getter returns clients without throttling, and cached discovery, to Helm.
type getter struct {
	*helm
	namespace string
}

// ToRESTConfig implements Helm's RESTClientGetter.
func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

// ToDiscoveryClient implements Helm's RESTClientGetter.
func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.served, nil
}

// ToRESTMapper implements Helm's RESTClientGetter.
func (g *getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// ToRawKubeConfigLoader implements Helm's RESTClientGetter.
func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}})
}
