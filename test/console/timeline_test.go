package console

import (
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// timeline: the events of all extensions and plans, and of one extension, filtered by reason and by
// user. A link opens the same view. Users see only events that they may read.
func timeline(i *installation, p, carl *page) {
	i.MustKubectl("patch", "configmap", "billing", "-n", "shop", "--field-manager=mallory", "--type=merge", "-p", `{"data":{"a":"of mallory"}}`)
	poll.Eventually(i.t, "the repair to be in history", func() (bool, string) {
		now := i.MustKubectl("get", "revisionhistory", "billing", "-o", "jsonpath={.repairs}")
		return strings.Contains(now, "mallory"), now
	})
	// A week later, kube-apiserver has deleted the events.
	i.MustKubectl("delete", "events", "-n", "default", "--all")
	for n, text := range hostile() {
		i.create(object{"apiVersion": "v1", "kind": "Event", "metadata": object{"name": "hostile-" + string(rune('a'+n)), "namespace": "default"}, "type": "Warning", "reason": "Forged" + text[:1], "message": text,
			"source": object{"component": "penstock"}, "involvedObject": object{"kind": "ClusterExtensionRevision", "name": text + "-1"}, "lastTimestamp": "2026-11-28T09:00:00Z"})
	}
	p.goTo("#/timeline")
	p.sees("Timeline", "Repaired", "mallory", "Went back", "to shop-2", "1.6.0 is slow", "Approved", "Run began", "larger", hostile()[0])
	p.until("no text is markup, and leads elsewhere", `!document.title.includes("owned") && !document.querySelector('iframe, svg, script:not([src]), img:not([src="/icon.svg"]), a[href^="http"], a[href^="javascript"]')`)
	p.until("the newest is first", `(() => { const times = [...document.querySelectorAll("#happened time")].map((one) => one.dateTime); return times.length > 10 && times.join() === times.toSorted().reverse().join() })()`)
	p.checks("timeline")

	// The address contains the filters.
	choose(p, "#what", "Repaired")
	p.until("only repairs", `document.querySelectorAll("#happened tbody tr").length > 0 && [...document.querySelectorAll("#happened tbody tr")].every((one) => one.innerText.includes("Repaired"))`)
	choose(p, "#who", "mallory")
	p.until("of one field manager", `location.hash === "#/timeline?who=mallory&what=Repaired" && document.querySelectorAll("#happened tbody tr").length === 1 && document.querySelector("#happened td.number a").hash.includes("who=mallory")`)
	p.until("the choice keeps the focus", `document.querySelector("#who").focus() || document.activeElement.id === "who"`)
	p.click("#happened td.number a")
	p.until("one is marked", `location.hash.includes("&at=") && document.querySelectorAll("tr[aria-current]").length === 1`)
	p.run(chromedp.Reload())
	p.until("the link opens the same", `document.querySelectorAll("tr[aria-current]").length === 1 && document.querySelectorAll("#happened tbody tr").length === 1 && document.querySelector("#who").value === "mallory"`)
	p.sees(".data.a was changed by mallory")

	p.goTo("#/x/shop")
	p.click(`a[href="#/timeline?extension=shop"]`)
	p.sees("Timeline of shop", "Created", "CHG-2041: faster checkout", "Went back", "Succeeded")
	p.unsees("billing-1")
	p.click(`#happened td a[href="#/diff/..shop-5"]`)
	p.sees("What shop-5 changes")
	p.goTo("#/timeline?extension=<img>")
	p.sees("The timeline cannot be shown", "is not a name")

	carl.goTo("#/timeline")
	carl.sees("Some is not shown", `cannot list resource "events"`, `cannot list resource "configurationplans"`, "Went back", "mallory")
}

// search: from the keyboard to an object, and back to the results.
func search(i *installation, p, carl *page) {
	p.sees("Extensions")
	p.presses("s")
	p.until("the field has the focus", `location.hash === "#/search" && document.activeElement.id === "q"`)
	p.run(clear("#q"))
	p.types("#q", "shop-")
	p.sees("shop/shop-web", "Deployment.apps of shop-", "shop-2 1.5.0 Revision")
	p.checks("search")
	p.types("#q", "web deployment")
	p.until("one hit", `document.querySelectorAll("#hits tbody tr").length === 1`)
	p.presses(kb.ArrowDown)
	p.until("the first row", `document.activeElement.matches("#hits [data-row]")`)
	p.presses(kb.Enter)
	p.until("the object", `/^#\/object\/shop-\d+\/Deployment\.apps\/shop\/shop-web$/.test(location.hash)`)
	p.run(chromedp.NavigateBack())
	p.until("what was found is there again", `document.querySelector("#q").value === "shop-web deployment" && document.querySelectorAll("#hits tbody tr").length === 1`)
	p.goTo("#/search?q=lighthouse")
	p.has(`#hits a[href="#/package/lighthouse"]`)
	// An extension without a revision.
	i.create(object{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": object{"name": "unborn"},
		"spec": object{"namespace": "shop", "source": object{"sourceType": "Catalog", "catalog": object{"packageName": "nowhere"}}}})
	p.goTo("#/search?q=unborn")
	p.until("it alone", `[...document.querySelectorAll("#hits a")].map((one) => one.hash).join() === "#/x/unborn"`)
	i.MustKubectl("delete", "clusterextension", "unborn", poll.TimeoutFlag)
	p.goTo("#/search?q=billing")
	p.until("an extension is before its revision", `(() => { const links = [...document.querySelectorAll("#hits a")].map((one) => one.hash); return links[0] === "#/x/billing" && links.includes("#/diff/..billing-1") })()`)
	p.goTo("#/search?" + "q=%3Cimg+src%3Dx+onerror%3D%22document.title%3D%27owned%27%22%3E")
	p.sees("hostile-1 " + hostile()[0])
	p.goTo("#/search?q=%3Cb%3Enowhere")
	p.sees("Nothing has <b>nowhere in its name")
	p.until("no script has run", notOfData)
	carl.goTo("#/search?q=billing")
	carl.sees("Not all is searched", `cannot list resource "catalogpackages"`, "billing-1")
}

// stuck: a stuck extension links to the review that its advice names. Opening the review changes
// nothing. The tree shows the stuck objects.
func stuck(i *installation, p *page) {
	i.roll("Succeeded", revision{extension: "pump", number: 1, version: "1.0.0", phases: []phase{{"all", []object{configMap("shop", "pump", "a", "b")}}}})
	i.roll("", revision{extension: "pump", number: 2, version: "1.1.0", phases: []phase{
		{"config", []object{configMap("shop", "pump", "a", "c"), configMap("shop", "pump-more", "a", "b")}}, {"deploy", []object{deployment("shop", "pump", "registry.example.com/pump:1.1.0", "nowhere")}}}})
	p.goTo("#/x/pump")
	p.sees("Unschedulable")
	p.click("#review-back")
	p.sees("Go back to pump-1", "Makes pump-3, with the content of pump-1")
	if number := i.field(".items[*].metadata.name", "cer", "--selector=penstock.dev/chain=pump"); number != "pump-1 pump-2" {
		i.t.Errorf("a button that leads to a review has made %s", number)
	}
	p.click("#leave")
	p.click("#objects")
	p.until("what is well is one box, and what is not has its own", `(() => { const said = [...document.querySelectorAll("#tree title")].map((one) => one.textContent); return said.includes("2 objects") && said.includes("Deployment shop/pump") && said.some((one) => one.startsWith("ReplicaSet pump-")) && said.some((one) => one.startsWith("Pod pump-")) && said.length === 7 })()`)
	p.checks("tree")
	p.click(".all .tally button:has(.state.needs)")
	p.until("objects in one state alone", `document.querySelectorAll("#now tbody tr").length === 1 && document.querySelector("#now tbody").innerText.includes("shop/pump")`)
	p.tabTo("#tree a[href^='#/pod/']")
	p.presses(kb.Enter)
	p.sees("Pod", "0 of 1 container ready")
	i.create(configMap("shop", "reef", "owner", "somebody else"))
	i.roll("Failing", revision{extension: "reef", number: 1, version: "1.0.0", phases: []phase{{"all", []object{configMap("shop", "reef", "a", "b")}}}})
	p.goTo("#/x/reef")
	p.click("#objects")
	p.has("#now td .state.needs")
	i.MustKubectl("delete", "configmap", "reef", "--namespace=shop")
	p.has("#now td .state.well")
	for _, name := range []string{"reef-1", "pump-2", "pump-1"} {
		i.MustKubectl("delete", "cer", name, poll.TimeoutFlag)
	}
}
