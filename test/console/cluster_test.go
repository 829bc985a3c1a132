package console

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// installation is a control plane with Penstock, and a browser.
type installation struct {
	*cluster.Cluster
	t       *testing.T
	program *penstock.Program
	server  *penstock.Server
	dataDir string
	images  *registry.Registry
	browser context.Context
}

func install(t *testing.T, more ...cluster.Option) *installation {
	t.Helper()
	browser := startBrowser(t)
	i := &installation{Cluster: cluster.Start(t, append(more, cluster.Workloads())...), t: t, program: penstock.Build(t), dataDir: penstock.DataDir(t), images: registry.Serve(t), browser: browser}
	i.serve(t)
	return i
}

// serve starts Penstock.
func (i *installation) serve(t *testing.T) {
	t.Helper()
	i.server = i.program.Serve(t, i.Cluster, i.dataDir, registryFlags(i.images)...)
}

// in returns the same installation for a subtest.
func (i installation) in(t *testing.T) *installation {
	i.Cluster, i.t = i.Cluster.In(t), t
	return &i
}

func (i *installation) create(objects ...object) {
	i.t.Helper()
	for _, one := range objects {
		raw, err := json.Marshal(one)
		if err != nil {
			i.t.Fatal(err)
		}
		i.MustKubectlInput(string(raw), "create", "-f", "-")
	}
}

// roll creates a revision and waits for its condition.
func (i *installation) roll(condition string, one revision) {
	i.t.Helper()
	i.create(one.object())
	if condition != "" {
		i.MustKubectl("wait", "--for=condition="+condition, poll.TimeoutFlag, fmt.Sprintf("cer/%s-%d", one.extension, one.number))
	}
}

func (i *installation) field(path string, of ...string) string {
	i.t.Helper()
	return i.MustKubectl(append([]string{"get", "-o", "jsonpath={" + path + "}"}, of...)...)
}

// hostile returns texts that a malicious user could write into displayed fields.
func hostile() []string {
	return []string{
		`<img src=x onerror="document.title='owned'">`, `<script>document.title='owned'</script>`, `"><svg onload=document.title='owned'>`,
		`javascript:document.title='owned'`, "\u202egnp.exe", `${document.title='owned'}`, `</code></pre><iframe src=http://evil.test>`, `<a href=http://evil.test>x</a>`,
	}
}

// furnish fills the cluster with examples for the screens: healthy extensions, extensions with a
// problem, and a rollout in progress.
func (i *installation) furnish() {
	i.t.Helper()
	for _, namespace := range []string{"shop", "mail", "search", "hostile", "widgets"} {
		i.create(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace}})
	}
	first, second := i.shop("1.4.0", "registry.example.com/shop:1.4.0"), i.shop("1.5.0", "registry.example.com/shop:1.5.0")
	i.roll("Succeeded", revision{extension: "shop", number: 1, version: "1.4.0", cause: "first install", phases: first})
	i.roll("Succeeded", revision{extension: "shop", number: 2, version: "1.5.0", cause: "CHG-2041: faster checkout", phases: second})

	// The object belongs to another owner.
	i.create(configMap("mail", "mail-config", "owner", "somebody else"))
	i.roll("Failing", revision{extension: "mail", number: 1, version: "3.0.1", phases: []phase{{"deploy", []object{configMap("mail", "mail-config", "owner", "mail"), configMap("mail", "mail-routes", "default", "smtp")}}}})

	// No node matches the nodeSelector.
	i.roll("", revision{extension: "search", number: 1, version: "0.9.0", phases: []phase{
		{"config", []object{configMap("search", "search-config", "shards", "3")}}, {"deploy", []object{deployment("search", "search", "registry.example.com/search:0.9.0", "nowhere")}}}})

	i.roll("Succeeded", revision{extension: "billing", number: 1, version: "2.11.0", phases: []phase{{"all", []object{configMap("shop", "billing", "a", "b")}}}})
	i.roll("Succeeded", revision{extension: "ingress", number: 1, version: "0.34.2", phases: []phase{{"all", []object{configMap("shop", "ingress", "a", "b")}}}})
}

// furnishHostile creates an extension and a proposal with hostile texts.
func (i *installation) furnishHostile() {
	i.t.Helper()
	bad := hostile()
	i.roll("Succeeded", revision{extension: "hostile", number: 1, version: bad[0], cause: bad[1], annotations: map[string]string{"penstock.dev/lifecycle-reason": bad[2]},
		phases: []phase{{"all", []object{configMap("hostile", "texts", "a", bad[0])}}}})
	i.roll("", revision{extension: "hostile", number: 2, version: bad[3], cause: bad[6], state: "Paused", annotations: map[string]string{"penstock.dev/lifecycle-reason": bad[5]},
		phases: []phase{{"all", []object{configMap("hostile", "texts", "a", strings.Join(bad, "\n"), "b", bad[7])}}}})
}

// shop returns the phases of an extension with a typical upgrade.
func (i *installation) shop(version, image string) []phase {
	return []phase{
		{"config", []object{configMap("shop", "shop-config", "version", version, "currency", "EUR", "log.level", "info", "cache.size", "256Mi")}},
		{"deploy", []object{deployment("shop", "shop-web", image, ""), deployment("shop", "shop-worker", image, "")}},
	}
}

// proposal returns a paused upgrade of shop. It grants rights and deletes an object.
func (i *installation) proposal(number int) revision {
	phases := i.shop("1.6.0", "registry.example.com/shop:1.6.0")
	phases[0].objects[0]["data"].(object)["log.level"] = "debug"
	role := object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": "shop-reader"},
		"rules": []any{object{"apiGroups": []any{""}, "resources": []any{"serviceaccounts/token"}, "verbs": []any{"create"}}}}
	phases[0].objects = append(phases[0].objects, role)
	phases[1].objects = phases[1].objects[:1] // removes the worker
	return revision{extension: "shop", number: number, version: "1.6.0", cause: "CHG-2077: one process", state: "Paused",
		annotations: map[string]string{"penstock.dev/lifecycle-reason": "to be read by the shop team"}, phases: phases}
}
