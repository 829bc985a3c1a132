package console

import (
	"strings"

	"github.com/chromedp/chromedp/kb"

	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/widgets"
)

// profiles: the page lists profiles, their missing requirements and their holders. A new plan of a
// held profile waits.
func profiles(i *installation, p *page) {
	p.goTo("#/profiles")
	p.sees("LoadAwareRebalancing", "The cluster lacks something", "large-widgets", "of your own", "by plan larger", "Widgets are large.")
	p.refuses("#make-LoadAwareRebalancing", "the cluster lacks what it needs")
	p.sees("impact Medium")
	p.refuses("#make-large-widgets", "plan larger holds it: no other plan can be active")
	p.checks("profiles")

	i.MustKubectlInput("{apiVersion: own.example.com/v1, kind: Widget, metadata: {name: two, namespace: widgets}, spec: {size: 1}}", "create", "-f", "-")
	i.MustKubectlInput(strings.NewReplacer("large-widgets", "second-widget", "name: one}", "name: two}", "Widgets are large.", hostile()[0]).Replace(widgets.Profile("widgets")), "create", "-f", "-")
	i.MustKubectl("wait", "--for=condition=AccessGranted", "configprofiledef/second-widget", poll.TimeoutFlag)
	p.click("#ask")
	p.click("#make-second-widget")
	p.sees("How large they are.", "default 3")
	p.types("#option-second-widget-size", "large")
	p.click("#create-second-widget")
	p.sees("No plan was made", `option size is of type integer: "large" is not JSON`)
	p.run(clear("#option-second-widget-size"))
	p.types("#option-second-widget-size", "7")
	p.checks("profile-plan")
	p.until("no element is of the data", notOfData)
	p.click("#create-second-widget")
	p.until("the plan is shown", "location.hash === '#/plan/second-widget'")
	p.sees("To review", "it grows to 7")
}

// objects: the page shows an object and its differences in the cluster. It shows no secret value.
func objects(i *installation, p *page) {
	i.roll("Succeeded", revision{extension: "vault", number: 1, version: "1.0.0", phases: []phase{{"all", []object{
		{"apiVersion": "v1", "kind": "Secret", "metadata": object{"namespace": "shop", "name": "vault-key"}, "stringData": object{"key": "swordfish"}},
		configMap("shop", "vault-config", "color", "red"),
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": "shop:vault"}, "rules": []any{}},
	}}}})
	p.goTo("#/x/vault")
	p.tabTo("#objects")
	p.presses(kb.Enter)
	p.click(`#now a[href="#/object/vault-1/ClusterRole.rbac.authorization.k8s.io/shop%3Avault"]`)
	p.sees("ClusterRole.rbac.authorization.k8s.io shop:vault", "Available", "Nothing: a rollout of vault-1 would not change it", "kind: ClusterRole")
	p.goTo("#/object/vault-1/Secret/shop/vault-key")
	p.sees("Values of a Secret are not shown here", "kind: Secret")
	p.click("#as-yaml")
	p.sees("resourceVersion:")
	p.unsees("swordfish")
	p.unsees("c3dvcmRmaXNo")

	// While the revision is paused, Penstock does not undo the change.
	i.MustKubectl("patch", "cer", "vault-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Paused"}}`)
	i.MustKubectl("wait", "--for=jsonpath={.status.observedGeneration}=2", poll.TimeoutFlag, "cer/vault-1")
	i.MustKubectl("patch", "configmap", "-n", "shop", "vault-config", "--type=merge", "-p", `{"data":{"color":"blue"}}`)
	i.create(object{"apiVersion": "v1", "kind": "Event", "metadata": object{"name": "rotated", "namespace": "shop"}, "type": "Warning", "reason": "KeyRotated", "message": "the key is a new one", "lastTimestamp": "2026-11-28T09:00:00Z",
		"involvedObject": object{"kind": "ConfigMap", "namespace": "shop", "name": "vault-config", "uid": i.field(".metadata.uid", "configmap", "vault-config", "--namespace=shop")}})
	p.goTo("#/object/vault-1/ConfigMap/shop/vault-config")
	p.sees("Changes that a rollout of vault-1 would make now", "color: blue", "color: red")
	p.sees("Field managers", "kubectl-patch", "penstock/vault", "Key rotated the key is a new one")
	p.click("#as-yaml")
	p.until("the object in the cluster is shown", `(() => { const live = document.querySelector("details[open] .manifest").innerText; return live.includes("color: blue") && live.includes("resourceVersion:") && !live.includes("managedFields") })()`)
	p.until("the field is named beside the manager that has changed it", `[...document.querySelectorAll("#managers tr")].some((one) => one.innerText.includes("kubectl-patch") && one.querySelector("details")?.textContent.includes(".data.color"))`)
	// Penstock may detect the difference after the page was loaded.
	p.until("it is seen to differ", `(() => { const text = document.querySelector("main").innerText; if (!/Comparing|Asking/.test(text) && !text.includes("Differs")) document.querySelector("#ask")?.click(); return text.includes("Differs It differs from the manifest, and is not repaired while the revision is paused.") })()`)
	p.checks("object")
	p.goTo("#/object/vault-1/ConfigMap/shop/nothing")
	p.sees("vault-1 does not have it", "The manifest cannot be shown")
}
