//go:build integration

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// manifestsDir is a folder of cert-manager's published releases. It is not part of the repository.
const manifestsDir = "../../../shared/data/manifests/cert-manager"

// certManager installs cert-manager, upgrades it twice, and checks every object.
func certManager(w sharedPlane) {
	if _, err := os.Stat(manifestsDir); err != nil {
		w.t.Skipf("the manifests of cert-manager are missing: %v", err)
	}
	for i, version := range []string{"1.18.4", "1.19.5", "1.20.3"} {
		number := i + 1
		name := fmt.Sprintf("cert-manager-%d", number)
		rendered := w.program.Run(w.t, "", "render", manifestsDir+"/"+version, "--extension=cert-manager", fmt.Sprintf("--revision=%d", number))
		if rendered.ExitCode != 0 {
			w.t.Fatal(rendered)
		}
		w.t.Log(firstLines(rendered.Stderr, 1))
		// Each version uses another way to write a revision. kubectl's last-applied annotation
		// could not hold all manifests.
		how := [][]string{{"create", "-f", "-"}, {"apply", "-f", "-"}, {"apply", "--server-side", "-f", "-"}}
		w.MustKubectlInput(rendered.Stdout, how[i]...)
		w.succeeded(name)
		w.MustKubectl("wait", "--for=condition=Available", "deployment", "--all", "--namespace=cert-manager", poll.TimeoutFlag)
		w.rolledOut(name)
		if number > 1 {
			w.value("Archived", ".spec.lifecycleState", fmt.Sprintf("cer/cert-manager-%d", number-1))
		}
	}
	w.says(w.read(".spec.template.spec.containers[0].image", "deployment", "cert-manager", "--namespace=cert-manager"), ":v1.20.3")
	w.MustKubectl("delete", "cer", "--selector=penstock.dev/chain=cert-manager", poll.TimeoutFlag)
	w.absent("namespace", "cert-manager")
	w.absent("crd", "certificates.cert-manager.io")
	w.absent("validatingwebhookconfiguration", "cert-manager-webhook")
}

// rolledOut checks that every object of a revision exists with its digest and label.
func (w sharedPlane) rolledOut(name string) {
	w.t.Helper()
	var revision struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			Phases []struct {
				Objects []struct{ APIVersion, Kind, Namespace, Name, Digest string }
			}
		}
	}
	if err := json.Unmarshal([]byte(w.MustKubectl("get", "cer", name, "-o", "json")), &revision); err != nil {
		w.t.Fatal(err)
	}
	chain := revision.Metadata.Labels["penstock.dev/chain"]
	live := w.MustKubectlInput(w.MustKubectl("get", "cer", name, "--subresource=manifests", "-o", "yaml"), "get", "-f", "-", "-o",
		`jsonpath={range .items[*]}{.apiVersion} {.kind} {.metadata.namespace}/{.metadata.name} {.metadata.labels.penstock\.dev/chain} {.metadata.annotations.penstock\.dev/applied}{"\n"}{end}`)
	count := 0
	for _, phase := range revision.Spec.Phases {
		for _, o := range phase.Objects {
			count++
			w.says(live, fmt.Sprintf("%s %s %s/%s %s %s\n", o.APIVersion, o.Kind, o.Namespace, o.Name, chain, o.Digest))
		}
	}
	if lines := strings.Count(live, "\n"); lines != count || count == 0 {
		w.t.Errorf("%s has %d objects, %d exist", name, count, lines)
	}
	w.t.Logf("%s: %d objects are there with their digests", name, count)
}
