package console

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// examples is the folder of the example catalog and its bundles.
const examples = "../../artifacts/examples"

// registryFlags returns flags with which Penstock pulls from the registry, also in place of the
// registry that the examples name.
func registryFlags(images *registry.Registry) []string {
	return []string{
		"--registry-cas-dir=" + images.Dir, "--registry-auth-file=" + filepath.Join(images.Dir, registry.AuthFile),
		"--registries-conf=" + filepath.Join(images.Dir, registry.MirrorsFile),
	}
}

// hostileCatalog returns a catalog with hostile texts. One package has a valid name, and the name
// of the other package is not a valid extension name.
func hostileCatalog(t *testing.T) (folder string) {
	t.Helper()
	bad := hostile()
	var lines strings.Builder
	for _, blob := range []object{
		{"schema": "olm.package", "name": "trap", "defaultChannel": bad[7], "description": strings.Join(bad, " ")},
		{"schema": "olm.channel", "package": "trap", "name": bad[7], "entries": []any{object{"name": bad[0]}, object{"name": bad[1], "replaces": bad[0]}}},
		{"schema": "olm.bundle", "package": "trap", "name": bad[0], "image": "r.example/trap:1", "properties": []any{object{"type": "olm.package", "value": object{"packageName": "trap", "version": "1.0.0"}},
			object{"type": "olm.gvk", "value": object{"group": bad[2], "kind": bad[3], "version": "v1"}}}},
		{"schema": "olm.bundle", "package": "trap", "name": bad[1], "image": "r.example/trap:2", "properties": []any{object{"type": "olm.package", "value": object{"packageName": "trap", "version": "2.0.0"}}}},
		{"schema": "olm.deprecations", "package": "trap", "entries": []any{object{"reference": object{"schema": "olm.package"}, "message": bad[0]}, object{"reference": object{"schema": "olm.bundle", "name": bad[0]}, "message": bad[6]}}},
		{"schema": "olm.package", "name": `<b>"Trap`, "defaultChannel": "x", "description": bad[1]},
		{"schema": "olm.channel", "package": `<b>"Trap`, "name": "x", "entries": []any{object{"name": "t"}}},
		{"schema": "olm.bundle", "package": `<b>"Trap`, "name": "t", "image": "r.example/trap:3", "properties": []any{object{"type": "olm.package", "value": object{"packageName": `<b>"Trap`, "version": "1.0.0"}}}},
	} {
		raw, err := json.Marshal(blob)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(raw, '\n'))
	}
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "catalog.json"), []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func clusterCatalog(name, ref string) object {
	return object{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": object{"name": name}, "spec": object{"source": object{"type": "Image", "image": object{"ref": ref}}}}
}

// catalog: in a cluster without catalogs, a user adds a catalog. The user reviews and installs a
// package, then reviews and rolls out its revision.
func catalog(i *installation, p *page) {
	p.goTo("#/packages")
	p.sees("There is no catalog")
	p.checks("catalog-none")

	// The image of this catalog does not exist.
	i.create(clusterCatalog("examples", i.images.Host+"/catalogs/nothing:latest"))
	i.MustKubectl("wait", "--for=jsonpath={.status.conditions}", poll.TimeoutFlag, "clustercatalog/examples")
	p.click("#ask")
	p.sees("No package is offered until a catalog is served", "catalogs/nothing")
	for name, folder := range map[string]string{"catalogs/examples:latest": "catalog", "lighthouse/bundle:v1.0.0": "lighthouse-bundles/v1.0.0", "lighthouse/bundle:v1.1.0": "lighthouse-bundles/v1.1.0"} {
		i.images.Push(i.t, filepath.Join(examples, folder), name)
	}
	i.MustKubectl("patch", "clustercatalog", "examples", "--type=merge", "-p", `{"spec":{"source":{"image":{"ref":"`+i.images.Host+`/catalogs/examples:latest"}}}}`)
	i.MustKubectl("wait", "--for=condition=Serving", poll.TimeoutFlag, "clustercatalog/examples")
	p.click("#ask")
	p.sees("lighthouse", "1.1.0 default channel stable 1.2.0 in candidate", "An example operator")
	p.checks("catalog")
	i.create(clusterCatalog("traps", i.images.Push(i.t, hostileCatalog(i.t), "catalogs/traps")))
	i.MustKubectl("wait", "--for=condition=Serving", poll.TimeoutFlag, "clustercatalog/traps")
	p.click("#ask")
	p.sees("lighthouse", "trap")
	p.checks("catalog-traps")
	p.until("no element is of the data", notOfData)
	p.types("[data-filter]", "beacon")
	p.until("only what brings the kind", `document.querySelectorAll("#offered tbody tr").length === 1`)

	// The page shows a package whose name no extension can have, without a link.
	p.run(clear("[data-filter]"))
	p.until("it has no link", `[...document.querySelectorAll("#offered th")].some((one) => one.innerText.includes('<b>"Trap') && !one.querySelector("a"))`)
	p.goTo("#/package/trap")
	p.sees("It should not be used", "evil.test", "2.0.0")
	p.has("#versions")
	p.until("no element is of the data", notOfData)

	p.goTo("#/packages")
	p.tabTo(`[data-row][href="#/package/lighthouse"]`)
	p.presses(kb.Enter)
	p.sees("Beacon.lighthouse.example.com", "3 versions in 2 channels", "replaces 1.0.0")
	p.until("a picture of two versions", `document.querySelectorAll(".graph circle").length === 2 && document.querySelectorAll(".graph path:not(.tip)").length === 1`)
	choose(p, "#channel", "candidate")
	p.until("a picture of three versions", `document.querySelectorAll(".graph circle").length === 3 && document.querySelectorAll(".graph path.skipRange").length >= 1`)
	p.checks("package")

	// The page shows the changes before the user can install.
	p.refuses("#do-install", "it needs a namespace")
	p.types("#install-namespace", "harbour")
	p.refuses("#do-install", "preview it first")
	p.click("#preview")
	p.sees("Effects", "there is no namespace harbour", "It leads to version 1.1.0", "channels: - stable")
	choose(p, "#install-channel", "")
	p.refuses("#do-install", "you have changed something since")
	p.click("#preview")
	p.sees("It leads to version 1.2.0", "1.2.0 is the highest version of any channel; the default channel stable has 1.1.0")
	i.create(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "harbour"}})
	p.types("#install-version", "1.0.0")
	p.refuses("#do-install", "you have changed something since")
	p.click("#preview")
	p.sees("It leads to version 1.0.0", "1.0.0 is no longer supported", "packageName: lighthouse", "penstock.dev/upgrade-approval: Manual")
	p.unsees("there is no namespace")
	if out := i.Kubectl("get", "clusterextension", "lighthouse"); out.ExitCode == 0 {
		i.t.Error("a review installed the extension")
	}
	p.checks("install")
	p.tabTo("#do-install")
	p.presses(kb.Enter)
	p.sees("Install lighthouse as lighthouse?", "into namespace harbour, version 1.0.0")
	p.tabTo("#yes")
	p.presses(kb.Enter)
	p.until("the extension is shown", "location.hash === '#/x/lighthouse'")
	p.sees("A ClusterExtension asks for package lighthouse, version 1.0.0")

	// The user reviews and approves Penstock's proposal.
	p.sees("lighthouse-1", "To review")
	p.click("#review")
	p.sees("What lighthouse-1 changes", "nothing → lighthouse-1")
	p.checks("proposal")
	forTheWindow(i, p)
	p.click("#activate")
	p.ticksAll()
	p.click("#yes")
	p.until("it is followed", "location.hash === '#/x/lighthouse'")
	// cert-manager is not installed, so the rollout stops at its kinds. The page says so.
	p.sees("lighthouse-1 · 1.0.0", "12 of 18 available", `the cluster serves no kind "Certificate"`, "install the software that serves the kind")
	p.sees("by anna · 1.0.0 proposed, from channel stable")
	anotherVersion(i, p)

	// The graph shows the installed version and its upgrade path. The page refuses to use the same
	// name twice.
	i.roll("Succeeded", revision{extension: "beacons", number: 1, version: "1.0.0", annotations: map[string]string{"olm.operatorframework.io/package-name": "lighthouse"},
		phases: []phase{{"all", []object{configMap("harbour", "beacons", "a", "b")}}}})
	p.goTo("#/package/lighthouse")
	p.sees("1.0.0 as beacons", "Extensions that ask for it", "1.2.0 is not chosen: it is ")
	p.has(".graph .installed")
	p.has(".graph path.way")
	p.types("#install-namespace", "harbour")
	p.sees("lighthouse is taken: lighthouse-")
	p.refuses("#preview", "it needs a name")
	p.types("#install-name", "lighthouse")
	p.click("#preview")
	p.sees("There is an extension of that name", "lighthouse-harbour is free")
	p.types("#install-name", "-too")
	p.click("#preview")
	p.sees("two extensions of one package would have the same objects")
	p.refuses("#do-install", "it would install nothing: 1.0.0 is installed already, as beacons")
	takenName(i, p)
	inVain(i, p)
}

// forTheWindow: outside a maintenance window, a user can approve a proposal for the next window.
// The revision then waits, and the user can still start it at once.
func forTheWindow(i *installation, p *page) {
	p.until("it can begin now, and nothing else is offered", `document.querySelector("#activate") && !document.querySelector("#later")`)
	end := time.Now().UTC().Add(24 * time.Hour).Truncate(time.Second).Format(time.RFC3339)
	i.create(object{"apiVersion": "penstock.dev/v1alpha1", "kind": "MaintenanceWindow", "metadata": object{"name": "year-end"},
		"spec": object{"type": "Deny", "start": "2026-01-01T00:00:00Z", "end": end}})
	p.run(chromedp.Reload())
	p.works("#later")
	p.click("#later")
	p.sees("Approve lighthouse-1 for the window?", "MaintenanceWindow year-end", "not before "+end)
	p.checks("later")
	p.ticksAll()
	p.click("#yes")
	p.until("it is followed", "location.hash === '#/x/lighthouse'")
	p.sees("anna approved it; it begins when a maintenance window lets it, not before " + end)
	if state := i.field(".spec.lifecycleState", "cer", "lighthouse-1"); state != "Paused" {
		i.t.Errorf("an approval for later makes it %s", state)
	}
	p.click(`a[href="#/diff/..lighthouse-1"]`)
	p.sees("What lighthouse-1 changes", "anna approved it; it begins when a maintenance window lets it")
	i.MustKubectl("delete", "maintenancewindow", "year-end", poll.TimeoutFlag)
}

// takenName: the page warns of a name that has revisions already, and offers a free name.
func takenName(i *installation, p *page) {
	p.goTo("#/package/trap")
	p.types("#install-namespace", "shop")
	p.run(clear("#install-name"))
	p.types("#install-name", "billing")
	p.click("#preview")
	p.sees("It would install nothing. billing-1 exists already, and no ClusterExtension has made it")
	p.unsees("would take it")
	p.refuses("#do-install", "it would install nothing: billing-1 exists already")
	p.checks("install-taken")
	p.click("#use-free")
	p.refuses("#do-install", "you have changed something since")
	p.click("#preview")
	p.sees("name: trap-shop", "The cluster has checked it and would take it")
	p.works("#do-install")
}

// choose selects an option and fires the change event.
func choose(p *page, selector, value string) {
	p.t.Helper()
	p.until("choosing "+value+" of "+selector, "(() => { const field = document.querySelector("+quoted(selector)+"); field.value = "+quoted(value)+"; field.dispatchEvent(new Event('change', {bubbles: true})); return true })()")
}

// inVain: a ClusterExtension whose name belongs to other revisions needs a user's decision,
// although those revisions are healthy. The page shows the command that deletes it.
func inVain(i *installation, p *page) {
	i.create(object{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": object{"name": "ingress", "annotations": object{"penstock.dev/upgrade-approval": "Manual"}},
		"spec": object{"namespace": "shop", "source": object{"sourceType": "Catalog", "catalog": object{"packageName": "lighthouse"}}}})
	p.goTo("#/")
	p.until("its card", `[...document.querySelectorAll(".card.needs")].some((one) => one.innerText.includes("ingress") && one.innerText.includes("Name taken"))`)
	p.until("its row is of the first", `document.querySelector('#extensions tr.needs a[href="#/x/ingress"]')`)
	p.goTo("#/x/ingress")
	p.sees("ingress-1 was not made for this ClusterExtension", "It has installed nothing", "kubectl delete clusterextension ingress")
	p.until("it is not well at the same time", `document.querySelector(".headline .state.needs") && !document.querySelector(".headline .state.well")`)
	p.checks("in-vain")
	i.MustKubectl("delete", "clusterextension", "ingress", poll.TimeoutFlag)
	p.unsees("It has installed nothing")
	p.until("it is well", `document.querySelector(".headline .state.well")`)
}

// anotherVersion: a user changes the version range of an extension after a look at the resolver's
// choice. A change by another user requires another look.
func anotherVersion(i *installation, p *page) {
	p.tabTo("#change-version")
	p.presses(kb.Enter)
	p.until("the focus is in the field", "document.activeElement?.id === 'version'")
	p.refuses("#ask-version", "it asks for that already")
	p.run(clear("#version"))
	p.types("#version", ">=9")
	p.refuses("#ask-version", "preview the result first")
	p.click("#lead")
	p.sees("Result", "No version can be installed", "in the range")
	p.run(clear("#version"))
	p.types("#version", ">=1.1 <1.2")
	p.refuses("#ask-version", "look again")
	p.click("#lead")
	p.sees("1.1.0, from channel stable of catalog examples", "Penstock proposes a revision", "1.2.0 is not chosen: it is ")
	p.checks("version")
	if asked := i.field(".spec.source.catalog.version", "clusterextension", "lighthouse"); asked != "1.0.0" {
		i.t.Errorf("a review changed the requested version to %s", asked)
	}
	// Another user changes the range.
	i.MustKubectl("patch", "clusterextension", "lighthouse", "--type=merge", "-p", `{"spec":{"source":{"catalog":{"version":"<1.1"}}}}`)
	p.sees("version <1.1")
	p.refuses("#ask-version", "look again")
	p.click("#lead")
	p.sees("was written by admin until now")
	p.until("the focus is where the answer is", "document.activeElement?.id === 'leads'")
	p.tabTo("#ask-version")
	p.works("#ask-version")
	p.presses(kb.Enter)
	p.sees("Have lighthouse ask for >=1.1 <1.2?", "version <1.1 → version >=1.1 <1.2")
	p.tabTo("#yes")
	p.presses(kb.Enter)
	p.sees("asks for package lighthouse, version >=1.1 <1.2")
	if asked := i.field(".spec.source.catalog.version", "clusterextension", "lighthouse"); asked != ">=1.1 <1.2" {
		i.t.Errorf("the extension requests %s", asked)
	}
	p.until("the focus is where it was", "document.activeElement?.id === 'change-version'")
}

// notOfData is true as long as no script from data has run and no element comes from data.
const notOfData = `!document.title.includes("owned") && !document.querySelector('iframe, script:not([src]), img:not([src="/icon.svg"]), main b, a[href^="http"], a[href^="javascript"], svg[onload]')`
