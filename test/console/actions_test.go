package console

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/widgets"
)

// rollback: the page shows the changes of a rollback beside the button. If a newer revision appears
// during confirmation, the page says so and requires another review.
func rollback(i *installation, p *page) {
	p.goTo("#/x/shop")
	p.sees("shop-3 · 1.6.0", "History", "CHG-2041: faster checkout")
	p.refuses("#back-shop-3", "it is the newest")
	p.tabTo("#back-shop-2")
	p.presses(kb.Enter)
	p.sees("Go back to shop-2", "Makes shop-4, with the content of shop-2. Against shop-3: 1 added, 2 changed, 1 deleted")
	p.until("who has opened it is led there", `document.activeElement.id === "preview" && document.activeElement.getBoundingClientRect().top >= 0 && document.activeElement.getBoundingClientRect().bottom <= innerHeight`)
	p.types("#cause", "1.6.0 is slow")
	p.checks("rollback")

	p.click("#rollback")
	p.sees("Roll shop back to shop-2?", "as shop-4, in place of shop-3")
	// Another user creates a revision first.
	number4 := revision{extension: "shop", number: 4, version: "1.6.1", phases: i.proposal(4).phases, cause: "CHG-2079"}
	i.roll("Succeeded", number4)
	p.sees("1 object deleted:", "− ClusterRole shop-reader", "4 of 4 objects not looked at")
	p.sees("shop-4 was created since")
	p.refuses("#yes", "look again")
	p.click("#no")
	p.refuses("#rollback", "look again")
	p.click("#look")
	p.sees("Makes shop-5, with the content of shop-2. Against shop-4")
	p.until("what was written stays", `document.querySelector("#cause").value === "1.6.0 is slow"`)
	p.click("#rollback")
	p.click("#yes")
	p.sees("shop-5 · 1.5.0", "back to shop-2: 1.6.0 is slow")
	p.until("its progress is in view", `document.activeElement.matches("h1") && scrollY === 0`)
	i.MustKubectl("wait", "--for=condition=Succeeded", poll.TimeoutFlag, "cer/shop-5")
	p.sees("Available 2 phases, 3 objects")
	p.click(`[aria-label="Rollout of shop-5"] summary`)
	p.until("what is done is full", `(() => { const one = document.querySelector('[aria-label="Rollout of shop-5"]'); return one.querySelectorAll(".track").length === 2 && [...one.querySelectorAll(".track")].every((track) => track.offsetWidth > 0 && track.firstElementChild.offsetWidth === track.offsetWidth) })()`)
	p.until("the newest is first", `document.querySelector(".history tbody th").innerText.startsWith("shop-5")`)

	// A stuck rollout shows its cause and duration.
	p.goTo("#/x/search")
	p.sees("search-1 · 0.9.0", "Stuck 0 of 1", "Deployment search/search Pod search/search-")
	p.until("of what is not done nothing is full, and what holds a stuck rollout back is marked", `document.querySelector(".bar.failing").offsetWidth === 0 && document.querySelector(".failing:not(.awaited)")`)
	p.checks("rollout-stuck")
	p.tabTo(".failing a")
	p.presses(kb.Enter)
	p.sees("Deployment.apps search/search", "How it is", "Unready")
	p.until("its address is ours", "location.hash === '#/object/search-1/Deployment.apps/search/search'")

	// The user pauses the revision and gives a reason.
	p.goTo("#/diff/..shop-5")
	p.click("#pause")
	p.types("#why", "INC-7: by hand")
	p.click("#yes")
	p.sees("INC-7: by hand")
	p.until("what it would change is one click away", `document.querySelector("#review")?.innerText === "Review shop-5" && document.querySelector("#review").hash.startsWith("#/diff/")`)
	if state := i.field(".spec.lifecycleState", "cer", "shop-5"); state != "Paused" {
		i.t.Errorf("shop-5 is %s", state)
	}
}

// plan: the page shows the impact first. Two users approve exactly the plan shown. The page shows
// the item while it runs, and then its undo.
func plan(i *installation, first, second *page) {
	i.MustKubectlInput(widgets.Definition, "create", "-f", "-")
	i.MustKubectl("wait", "--for=condition=Established", "crd/widgets.own.example.com", poll.TimeoutFlag)
	i.MustKubectlInput(widgets.One("widgets"), "create", "-f", "-")
	i.MustKubectlInput(widgets.Profile("widgets"), "create", "-f", "-")
	i.MustKubectl("wait", "--for=condition=AccessGranted", "configprofiledef/large-widgets", poll.TimeoutFlag)
	i.MustKubectlInput("{apiVersion: hco.kubevirt.io/v1alpha1, kind: ConfigurationPlan, metadata: {name: larger}, spec: {profile: large-widgets, approvals: 2, onConflict: Take, options: {values: {size: 4}}}}", "create", "-f", "-")
	first.sees("larger", "It waits for an approval; impact Medium")
	for _, p := range []*page{first, second} {
		p.goTo("#/plan/larger")
		p.sees("To review", "it grows to 4", "takes over .spec.size from kubectl-create", "Needs approval by 2 people; ", "cannot approve it", "Plan hash (what you approve) sha256:")
	}
	first.until("what changes is before the approval", `document.querySelector("#items").compareDocumentPosition(document.querySelector("#approval")) & Node.DOCUMENT_POSITION_FOLLOWING`)
	first.until("impact is before what changes", `document.querySelector("#impact").compareDocumentPosition(document.querySelector("#items")) & Node.DOCUMENT_POSITION_FOLLOWING`)
	first.refuses("#stop", "nothing is running")
	first.sees("Changes", "size: 4")
	first.checks("plan")

	// The object of the item, with its current state and the field manager of each field.
	first.tabTo(".items a")
	first.presses(kb.Enter)
	first.sees("Widget widgets/one", "Field managers", "kubectl-create", "color: red")
	first.checks("target")
	first.run(chromedp.NavigateBack())
	first.sees("Items 0 of 1 done")

	// Penstock recomputes the plan while both users read it.
	i.MustKubectl("patch", "configplan", "larger", "--type=merge", "-p", `{"spec":{"options":{"values":{"size":5}}}}`)
	for _, p := range []*page{first, second} {
		p.sees("This is not up to date", "it grows to 5")
		p.refuses("#approve", "look again")
		p.click("#look")
		p.unsees("This is not up to date")
	}
	first.types("#comment", "CHG-2101")
	first.tabTo("#approve")
	first.works("#approve")
	first.presses(kb.Enter)
	first.sees("Approve plan larger?", "Update Widget widgets/one", "Medium: it grows to 5", "takes over .spec.size from kubectl-create", "Starts after 1 more approval.")
	first.tabTo("#yes")
	first.presses(kb.Enter)
	second.sees("1 of 2", "anna", "CHG-2101")
	first.refuses("#approve", "anna")
	second.click("#approve")
	second.sees("Starts now.")
	second.until("the button says that it runs", `document.querySelector("#yes").innerText === "Approve and run"`)
	second.click("#yes")
	first.sees("In progress", "0 of 1 done", "the object has no status yet")
	first.unsees("no such key")
	first.checks("plan-run")
	i.MustKubectl("patch", "widget", "one", "-n", "widgets", "--subresource=status", "--type=merge", "-p", `{"status":{"ready":5}}`)
	first.sees("Completed", "1 of 1 done", "anna, bert", "Changed", "size: 1", "size: 5")
	first.unsees("*** is a value that was replaced")
	second.click("#undo-1")
	second.sees("Undo run 1 of larger?")
	second.click("#yes")
	first.sees("To review (undo of run 1)")
}

// rights: a read-only user sees the permitted objects. Each disabled button names the missing
// right.
func rights(i *installation, p *page) {
	p.sees("shop", "Plans are not shown", `User "carl" cannot list resource "configurationplans"`)
	p.checks("viewer")
	p.goTo("#/x/shop")
	p.sees("History")
	p.refuses("#back-shop-1", "you lack the right: create clusterextensionrevisions/rollback.olm.operatorframework.io")
	p.goTo("#/diff/..shop-2")
	p.sees("The changes cannot be shown", "cannot get resource")
	p.goTo("#/profiles")
	p.sees("Profiles cannot be shown", `User "carl" cannot list resource "configurationprofiles"`)
	p.goTo("#/object/shop-1/ConfigMap/shop/shop-config")
	p.sees("The manifest cannot be shown", "Its state cannot be shown", "The difference cannot be shown")
	p.goTo("#/packages")
	p.sees("Packages cannot be shown", `User "carl" cannot list resource "catalogpackages"`)
	p.goTo("#/package/lighthouse")
	p.sees("The package cannot be shown", `User "carl" cannot get resource "catalogpackages"`)
	p.goTo("#/me")
	p.sees("Missing: ", "of 29 actions", "you lack the right: get clusterextensionrevisions/diff.olm.operatorframework.io")
	p.until("what is missing is first", `document.querySelector("#may tbody tr td").innerText.includes("no")`)

	// The user loses a right while the page is open.
	i.MustKubectl("delete", "clusterrolebinding", "carl")
	// kube-apiserver learns of RBAC changes from a watch, with a delay.
	poll.Eventually(i.t, "carl to have lost the right", func() (bool, string) {
		out := i.Kubectl("auth", "can-i", "list", "clusterextensionrevisions", "--as=carl")
		return out.ExitCode != 0, out.String()
	})
	p.goTo("#/x/search")
	p.sees("You cannot see this")
}

func me(p *page) {
	p.sees("Extensions")
	p.click(".user")
	p.unsees("version not known yet")
	p.sees("You", "anna", "system:masters", "Nothing is missing.", "roll out, pause", "yes")
	p.until("all rights", `document.querySelectorAll("#may .well").length === 29`)
	p.checks("me")
}

// readOnly: in a read-only console each button says that the console is read-only.
func readOnly(p *page) {
	p.goTo("#/x/shop")
	p.sees("read-only")
	p.refuses("#back-shop-1", "this console was started with --read-only")
}

// troubles: without answers the page keeps its content and shows its age. It recovers by itself.
func troubles(i *installation, p *page) {
	p.sees("Extensions", "shop")
	i.server.Kill(i.t)
	p.sees("The cluster does not answer", "The page shows data from", "shop")
	p.checks("unreachable")
	i.serve(i.t)
	p.unsees("The cluster does not answer")
	i.roll("Succeeded", revision{extension: "after", number: 1, phases: []phase{{"all", []object{configMap("shop", "after", "a", "b")}}}})
	p.sees("after")

	p.console.Stop()
	p.sees("The connection is lost", "is its process still running?", "shop")
}

// signedOut: when credentials expire, the page says so once and sends no request until the user
// signs in again.
func signedOut(t *testing.T, i *installation) {
	proxy := newProxy(t, i.Config())
	console := serve(t, proxy.kubeconfig, asTyped)
	p := tab(t, i.browser, console)
	p.sees("Extensions", "shop")
	proxy.expire()
	p.sees("You are signed out", "shop")
	asked := proxy.asked()
	p.checks("signed-out") // this takes longer than the first pause between two attempts
	if now := proxy.asked(); now != asked || asked > 6 {
		t.Errorf("%d requests after the credentials had ended, then %d", asked, now-asked)
	}
	proxy.renew()
	p.click("#again")
	p.unsees("You are signed out")
	p.sees("Extensions", "shop")
}

// users returns two users with all rights, and a user with read rights only.
func users(i *installation) (anna, bert, carl *cluster.Access) {
	i.MustKubectlInput(strings.TrimSpace(`
apiVersion: v1
kind: List
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: carl}
  rules:
  - {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions, revisionhistories], verbs: [get, list, watch]}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: carl}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: carl}
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: carl}]
`), "create", "-f", "-")
	return i.User("anna", "system:masters"), i.User("bert", "system:masters"), i.User("carl")
}
