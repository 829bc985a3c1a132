//go:build integration

package extension_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/plugin"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// planOfUpgrade: the steps of a cluster upgrade, as docs/how-to/upgrade-the-cluster.md shows them.
func planOfUpgrade(w shared) {
	gauges := func(versions ...string) []string {
		var all []string
		for i, version := range versions {
			all = append(all, fmt.Sprintf("{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object}}}", version, i == 0))
		}
		return []string{"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gauges.example.com}\n" +
			"spec: {group: example.com, scope: Namespaced, names: {plural: gauges, kind: Gauge}, versions: [" + strings.Join(all, ", ") + "]}\n"}
	}
	w.publish(w.name,
		bundle{Package: "beacon", Version: "1.0.0"}, bundle{Package: "beacon", Version: "1.1.0", Replaces: "1.0.0", MinKubeVersion: "1.38.0"},
		bundle{Package: "gauge", Version: "1.0.0", More: gauges("v1beta1")}, bundle{Package: "gauge", Version: "1.1.0", Replaces: "1.0.0", More: gauges("v1")},
		bundle{Package: "gauge", Version: "1.2.0", SkipRange: ">=1.0.0 <1.2.0", More: gauges("v1", "v1beta1")},
		bundle{Package: "lantern", Version: "1.0.0", MaxOpenShift: "5.1"}, bundle{Package: "lantern", Version: "1.1.0", Replaces: "1.0.0"})
	root := w.person("root", "- {apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}\n")
	names := []string{"beacon", "gauge", "lantern"}
	for _, name := range names {
		w.apply(root, name, w.extend(name, name, "version: 1.0.0"))
	}
	for _, name := range names {
		w.awaitExtension(name, "it is installed", installed("1.0.0"))
	}
	user := plugin.User{Kubeconfig: w.Kubeconfig()}
	const line = "kubectl penstock ready --plan"
	folder, err := plane.Root()
	if err != nil {
		w.t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(folder, "docs", "how-to", "upgrade-the-cluster.md"))
	if err != nil {
		w.t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "$ "+line+"\n")
	shown, _, _ = strings.Cut(shown, "```")
	if out := user.Run(w.t, line); out.ExitCode != 0 || out.Stdout != shown {
		w.t.Errorf("%s\nthe page shows:\n%s", out, shown)
	}

	// Packages state upper bounds in versions of OpenShift alone.
	out := user.Run(w.t, "kubectl penstock ready 5.2 --plan --extension lantern")
	w.says(out.Stdout, "1 finding to solve before the upgrade", "OpenShift 5.1 is the last one", "Before the cluster", "kubectl penstock upgrade lantern --version 1.1.0")
	if out.ExitCode != 1 {
		w.t.Errorf("exit code %d, want 1", out.ExitCode)
	}

	w.MustKubectl(append([]string{"delete", "clusterextension", poll.TimeoutFlag}, names...)...)
	for _, name := range names {
		w.awaitGone(extension.Resource, name, "it is uninstalled")
	}
}
