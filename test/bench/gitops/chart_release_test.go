package gitops

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	helmrelease "helm.sh/helm/v4/pkg/release"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

func (i *installation) install(path string) {
	i.t.Helper()
	do := action.NewInstall(i.configuration())
	do.ReleaseName, do.Namespace, do.CreateNamespace, do.Timeout = "penstock", system, true, patience
	do.WaitStrategy, do.ServerSideApply = kube.HookOnlyStrategy, i.serverSide
	found, err := loader.Load(path)
	if err != nil {
		i.t.Fatal(err)
	}
	_, err = do.RunWithContext(i.t.Context(), found, map[string]any{
		"image":     map[string]any{"repository": "registry.example.com/penstock"},
		"resources": map[string]any{"requests": map[string]any{"cpu": "250m", "memory": "512Mi"}},
		"store":     map[string]any{"mode": "embedded", "embedded": map[string]any{"size": "20Gi"}},
		"extraArgs": []any{"--v=1"},
	})
	if err != nil {
		i.t.Fatalf("helm install %s: %v", path, err)
	}
}

func packed(t *testing.T, folder, version string) *chart.Chart {
	t.Helper()
	found, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	found.Metadata.Version, found.Metadata.AppVersion = strings.TrimPrefix(version, "v"), version
	return found
}

func (i *installation) upgrade(to *chart.Chart, values map[string]any, how func(*action.Upgrade)) {
	i.t.Helper()
	if err := i.tryUpgrade(to, values, how); err != nil {
		i.t.Fatalf("helm upgrade to %s: %v", to.Metadata.Version, err)
	}
}

func (i *installation) tryUpgrade(to *chart.Chart, values map[string]any, how func(*action.Upgrade)) error {
	do := action.NewUpgrade(i.configuration())
	do.Namespace, do.Timeout, do.WaitStrategy = system, patience, kube.HookOnlyStrategy
	how(do)
	_, err := do.RunWithContext(i.t.Context(), "penstock", to, values)
	return err
}

func (i *installation) rollback(to int) error {
	do := action.NewRollback(i.configuration())
	do.Version, do.Timeout, do.WaitStrategy = to, patience, kube.HookOnlyStrategy
	return do.Run("penstock")
}

// uninstall uninstalls the release, and keeps its volume.
func (i *installation) uninstall() {
	i.t.Helper()
	manifest := i.manifest()
	do := action.NewUninstall(i.configuration())
	do.Timeout, do.WaitStrategy = patience, kube.HookOnlyStrategy
	if _, err := do.Run("penstock"); err != nil {
		i.t.Fatalf("helm uninstall: %v", err)
	}
	left := i.MustKubectlInput(manifest, "get", "-f", "-", "--ignore-not-found", "-o", "name")
	if want := "persistentvolumeclaim/penstock-data\n"; left != want {
		i.t.Errorf("helm uninstall leaves %q, want %q", left, want)
	}
	i.MustKubectl("delete", "endpointslices", "--all", "-n", system)
}

func (i *installation) configuration() *action.Configuration {
	i.t.Helper()
	flags, kubeconfig, namespace := genericclioptions.NewConfigFlags(true), i.Kubeconfig(), system
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	configuration := action.NewConfiguration()
	if err := configuration.Init(flags, system, "secrets"); err != nil {
		i.t.Fatal(err)
	}
	return configuration
}

// manifest returns the manifest that Helm recorded for the release.
func (i *installation) manifest() string {
	i.t.Helper()
	found, err := action.NewGet(i.configuration()).Run("penstock")
	if err != nil {
		i.t.Fatal(err)
	}
	read, err := helmrelease.NewAccessor(found)
	if err != nil {
		i.t.Fatal(err)
	}
	return read.Manifest()
}
