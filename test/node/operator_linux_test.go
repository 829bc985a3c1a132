//go:build integration

package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/client"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/drafts"
	"github.com/penstock-project/penstock/test/framework/objects"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/plugin"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// operatorModule is the Go module of cert-manager.
const operatorModule = "github.com/cert-manager/cert-manager"

// operatorVersions are the version whose checksums are in earlier.sum of hack/tools/certmanager,
// and the version pinned in that folder.
var operatorVersions = []string{"1.21.0", "1.21.2"}

// operatorImage is a chart that was pushed to the registry.
type operatorImage struct{ version, chart string }

// operator runs the go command in a module that requires a version of cert-manager, and returns its
// output.
func operator(ctx context.Context, version string, args ...string) (string, error) {
	root, err := plane.Root()
	if err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp("", "penstock-operator-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	module := filepath.Join(root, "hack", "tools", "certmanager")
	pinned := regexp.MustCompile(regexp.QuoteMeta(operatorModule) + ` v.*`)
	for name, sources := range map[string][]string{"go.mod": {"go.mod"}, "go.sum": {"go.sum", "earlier.sum"}} {
		var content []byte
		for _, source := range sources {
			more, err := os.ReadFile(filepath.Join(module, source))
			if err != nil {
				return "", err
			}
			content = append(content, more...)
		}
		if name == "go.mod" {
			content = pinned.ReplaceAll(content, []byte(operatorModule+" v"+version))
		}
		if err := os.WriteFile(filepath.Join(scratch, name), content, 0o600); err != nil {
			return "", err
		}
	}
	var stderr strings.Builder
	command := exec.CommandContext(ctx, "go", append([]string{args[0], "-modfile=" + filepath.Join(scratch, "go.mod")}, args[1:]...)...)
	command.Dir, command.Stderr = module, &stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-trimpath")
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", command, err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// fetchOperators downloads the operator's modules before the tests start: the namespaces of the
// tests have no network.
func fetchOperators(ctx context.Context) error {
	for _, version := range operatorVersions {
		if _, err := operator(ctx, version, "list", "-deps", "."); err != nil {
			return err
		}
	}
	return nil
}

// TestOperator installs cert-manager by its own chart, upgrades it, and rolls it back. Its
// controllers run, and kube-apiserver calls its webhooks. Before, during and after each step,
// issuers are ready, certificates are issued, and invalid certificates are refused.
func TestOperator(t *testing.T) {
	c := cluster.Start(t, cluster.Node(tools))
	images := registry.Serve(t)
	earlier, later := operatorChart(t, c, images, operatorVersions[0]), operatorChart(t, c, images, operatorVersions[1])
	penstock.Build(t).Serve(t, c, penstock.DataDir(t), "--registry-cas-dir="+images.Dir,
		"--registry-auth-file="+filepath.Join(images.Dir, registry.AuthFile))
	in := client.New(t, c.Config(), "cert-manager")
	in.Create(drafts.Object(objects.Namespace("cert-manager")).String())
	in.Stamped(operatorExtension(earlier))
	in.Apply(operatorExtension(earlier))
	installed := func(number string, of operatorImage) {
		t.Helper()
		in.Condition("cer/cert-manager-"+number, "Succeeded", "True")
		in.Condition("cer/cert-manager-"+number, "Available", "True")
		in.Mentions("deployment/cert-manager-webhook", ".spec.template.spec.containers[0].image", ":v"+of.version)
	}
	installed("1", earlier)
	// LS0t… is the Base64 of "-----BEGIN": the cainjector has set the CA bundle of the webhook.
	in.Mentions("validatingwebhookconfiguration/cert-manager-webhook", ".webhooks[0].clientConfig.caBundle", "LS0tLS1C")
	in.Create(`{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: self, namespace: cert-manager}, spec: {selfSigned: {}}}
---
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: authority, namespace: cert-manager}, spec: {isCA: true, commonName: authority, secretName: authority, issuerRef: {name: self}}}
---
{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: authority, namespace: cert-manager}, spec: {ca: {secretName: authority}}}`)
	in.Condition("issuer/authority", "Ready", "True")
	uid := in.Field("certificate/authority", ".metadata.uid")
	issues := func(when string) {
		t.Helper()
		in.Condition("issuer/authority", "Ready", "True")
		in.Condition("certificate/authority", "Ready", "True")
		manifest := fmt.Sprintf(`{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: %[1]s, namespace: cert-manager}, spec: {dnsNames: [%[1]s.example.com], secretName: %[1]s, issuerRef: {name: authority}}}`, when)
		// kube-apiserver keeps its connection to a terminated Pod for a while.
		poll.Eventually(t, "the webhook to answer", func() (bool, string) {
			err := in.TryApply(manifest)
			return err == nil, fmt.Sprint(err)
		})
		in.Condition("certificate/"+when, "Ready", "True")
		in.Refused(`{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: wrong, namespace: cert-manager}, spec: {secretName: wrong, duration: 1s, dnsNames: [wrong.example.com], issuerRef: {name: authority}}}`,
			"webhook.cert-manager.io", "duration")
	}
	issues("before")
	in.Apply(operatorExtension(later))
	in.There("cer/cert-manager-2")
	issues("during-upgrade")
	installed("2", later)
	issues("upgraded")
	if out := (plugin.User{Kubeconfig: c.Kubeconfig(), Answer: "y"}).Run(t, "kubectl penstock rollback cert-manager"); out.ExitCode != 0 {
		t.Fatal(out)
	}
	in.There("cer/cert-manager-3")
	issues("during-rollback")
	installed("3", earlier)
	issues("rolled-back")
	in.Is("certificate/authority", ".metadata.uid", uid)
}

// operatorChart builds the images of a cert-manager version, imports them into the node, and pushes
// the chart.
func operatorChart(t *testing.T, c *cluster.Cluster, images *registry.Registry, version string) operatorImage {
	t.Helper()
	program := filepath.Join(t.TempDir(), "operator")
	if _, err := operator(t.Context(), version, "build", "-ldflags=-s -w", "-o", program, "."); err != nil {
		t.Fatal(err)
	}
	for _, component := range []string{"controller", "webhook", "cainjector"} {
		image, err := plane.ProgramImage(program, component)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Plane().Import(t.Context(), "penstock.local/cert-manager-"+component+":v"+version, image); err != nil {
			t.Fatal(err)
		}
	}
	source, err := operator(t.Context(), version, "list", "-m", "-f", "{{.Dir}}", operatorModule)
	if err != nil {
		t.Fatal(err)
	}
	chart := filepath.Join(t.TempDir(), "cert-manager")
	if err := os.CopyFS(chart, os.DirFS(filepath.Join(source, "deploy", "charts", "cert-manager"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(chart, "Chart.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil { // files in the module cache are read-only
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(content), "v0.0.0", "v"+version)), 0o600); err != nil {
		t.Fatal(err)
	}
	return operatorImage{version, images.Push(t, chart, "charts/cert-manager:v"+version)}
}

// operatorExtension returns the manifest of the ClusterExtension for a cert-manager version, with
// the images of the node.
func operatorExtension(of operatorImage) string {
	image := func(component string) string {
		return "image: {repository: penstock.local/cert-manager-" + component + "}"
	}
	return `{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: cert-manager}, spec: {namespace: cert-manager,
source: {sourceType: Chart, chart: {ref: "` + of.chart + `"}},
config: {configType: Inline, inline: {crds: {enabled: true}, startupapicheck: {enabled: false}, livenessProbe: {enabled: false}, ` + image("controller") + `,
webhook: {` + image("webhook") + `}, cainjector: {` + image("cainjector") + `}}}}}
`
}
