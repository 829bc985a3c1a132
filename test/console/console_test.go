package console

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// TestConsole drives all screens against one installation. Each subtest starts from the cluster
// state that the previous subtest left.
func TestConsole(t *testing.T) {
	idp := newProvider(t)
	i := install(t, idp.trusted(t))
	i.furnish()
	anna, bert, carl := users(i)
	console := serve(t, anna.Kubeconfig(), asTyped)
	t.Run("Overview", func(t *testing.T) { overview(i.in(t), tab(t, i.browser, console)) })
	t.Run("Review", func(t *testing.T) { review(i.in(t), tab(t, i.browser, console)) })
	t.Run("Fold", func(t *testing.T) { fold(i.in(t), tab(t, i.browser, console)) })
	t.Run("Hostile", func(t *testing.T) { hostileTexts(i.in(t), tab(t, i.browser, console)) })
	t.Run("Rollback", func(t *testing.T) { rollback(i.in(t), tab(t, i.browser, console)) })
	t.Run("Stuck", func(t *testing.T) { stuck(i.in(t), tab(t, i.browser, console)) })
	t.Run("Plan", func(t *testing.T) {
		plan(i.in(t), tab(t, i.browser, console), tab(t, i.browser, serve(t, bert.Kubeconfig(), asTyped)))
	})
	t.Run("Profiles", func(t *testing.T) { profiles(i.in(t), tab(t, i.browser, console)) })
	t.Run("Objects", func(t *testing.T) { objects(i.in(t), tab(t, i.browser, console)) })
	t.Run("Pods", func(t *testing.T) {
		pods(i.in(t), tab(t, i.browser, console), tab(t, i.browser, serve(t, carl.Kubeconfig(), asTyped)))
	})
	t.Run("Timeline", func(t *testing.T) {
		timeline(i.in(t), tab(t, i.browser, console), tab(t, i.browser, serve(t, carl.Kubeconfig(), asTyped)))
	})
	t.Run("Readiness", func(t *testing.T) { readiness(i.in(t), tab(t, i.browser, console)) })
	t.Run("Links", func(t *testing.T) {
		links(blank(t, i.browser, console), tab(t, i.browser, serve(t, anna.Kubeconfig(), `kubectl penstock console https://penstock.example.com/#/x/argocd`)))
	})
	t.Run("Catalog", func(t *testing.T) { catalog(i.in(t), tab(t, i.browser, console)) })
	t.Run("Fleet", func(t *testing.T) {
		fleet(i.in(t), anna, tab(t, i.browser, console), tab(t, i.browser, serve(t, bert.Kubeconfig(), asTyped)))
	})
	t.Run("Search", func(t *testing.T) {
		search(i.in(t), tab(t, i.browser, console), tab(t, i.browser, serve(t, carl.Kubeconfig(), asTyped)))
	})
	t.Run("Me", func(t *testing.T) { me(tab(t, i.browser, console)) })
	t.Run("Rights", func(t *testing.T) { rights(i.in(t), tab(t, i.browser, serve(t, carl.Kubeconfig(), asTyped))) })
	t.Run("ReadOnly", func(t *testing.T) {
		readOnly(tab(t, i.browser, serve(t, anna.Kubeconfig(), `kubectl penstock console --no-browser --port 8090 --read-only`)))
	})
	t.Run("Shared", func(t *testing.T) { shared(t, i.in(t)) })
	t.Run("Ingress", func(t *testing.T) { behindIngress(t, i.in(t)) })
	t.Run("SignIn", func(t *testing.T) { signIn(t, i.in(t), idp) })
	t.Run("SignedOut", func(t *testing.T) { signedOut(t, i.in(t)) })
	// Troubles runs last: it stops Penstock and the console.
	t.Run("Troubles", func(t *testing.T) { troubles(i.in(t), tab(t, i.browser, serve(t, anna.Kubeconfig(), asTyped))) })
}

// overview: extensions with a problem come first, and the page follows changes in the cluster.
func overview(i *installation, p *page) {
	p.sees("Needs attention", "mail", "mail-config", "search", "Unschedulable", "shop", "1.5.0", "billing")
	p.until("who and where", "document.querySelector('.who').innerText.includes('as')")
	p.until("the key is not in the address", "!location.href.includes('key')")
	p.until("what needs somebody is first", "document.querySelector('#extensions tbody tr').innerText.startsWith('mail')")
	i.create(i.proposal(3).object())
	p.sees("shop-3, version 1.6.0, is proposed in place of 1.5.0")
	p.checks("overview")

	// The keyboard reaches the filter and the rows.
	p.presses("/")
	p.until("the filter has the focus", "document.activeElement.matches('[data-filter]')")
	p.run(clear("[data-filter]"))
	p.types("[data-filter]", "sho")
	p.until("only shop", "document.querySelectorAll('#extensions tbody tr').length === 1")
	p.presses(kb.Escape)
	p.until("the filter is empty, and left", "!document.querySelector('[data-filter]').value && !document.activeElement.matches('[data-filter]') && document.querySelectorAll('#extensions tbody tr').length > 1")
	p.tabTo("#extensions [data-row]")
	p.presses("j", "k", "j")
	p.until("the second row", "document.activeElement === document.querySelectorAll('[data-row]')[1]")
	p.presses("?")
	p.until("help, in sight", "document.querySelector('.foot details').open && document.querySelector('.foot details').getBoundingClientRect().bottom < innerHeight + 1")
	// Every screen shows a freeze.
	i.MustKubectl("create", "configmap", "-n", "penstock-system", "penstock-freeze", "--from-literal=author=admin", "--from-literal=reason=the year ends")
	p.sees("Frozen. Nothing is written until the freeze ends: ", "the year ends")
	p.goTo("#/x/search")
	p.sees("Frozen. Nothing is written", "the year ends")
	i.MustKubectl("delete", "configmap", "-n", "penstock-system", "penstock-freeze")
	p.unsees("Nothing is written")
	p.goTo("#/")

	// The page removes a deleted object.
	i.roll("Succeeded", revision{extension: "brief", number: 1, phases: []phase{{"all", []object{configMap("shop", "brief", "a", "b")}}}})
	p.sees("brief")
	i.MustKubectl("delete", "cer", "brief-1", poll.TimeoutFlag)
	p.unsees("brief")
}

// fold: objects that change only version labels share one row. The row opens, and counts as
// reviewed only when the user ticks it.
func fold(i *installation, p *page) {
	phases := func(version, color string) []phase {
		objects := []object{configMap("shop", "tides", "color", color)}
		for _, name := range []string{"tides-ebb", "tides-flow"} {
			labelled := configMap("shop", name, "a", "b")
			labelled["metadata"].(object)["labels"] = object{"app.kubernetes.io/version": version}
			objects = append(objects, labelled)
		}
		return []phase{{"all", objects}}
	}
	i.roll("Succeeded", revision{extension: "tides", number: 1, version: "1", phases: phases("1.0", "blue")})
	i.roll("", revision{extension: "tides", number: 2, version: "2", state: "Paused", phases: phases("2.0", "green")})
	p.goTo("#/diff/tides-1..tides-2")
	const row = "2 objects change only app.kubernetes.io/version 1.0 → 2.0"
	p.sees(row, "shop/tides", "seen 0 of 3")
	const fold = `[...document.querySelectorAll(".objects > li")].find((one) => one.querySelector(":scope > details > summary").innerText.includes("change only"))`
	p.until("the fold opens", fold+".querySelector('summary').click() || true")
	p.until("its objects are there", fold+".querySelectorAll('.objects > li').length === 2")
	p.sees("seen 0 of 3")
	p.until("its box is ticked", fold+".querySelector('input').click() || true")
	p.sees("seen 2 of 3")
	p.checks("fold")
	for _, name := range []string{"tides-2", "tides-1"} {
		i.MustKubectl("delete", "cer", name, poll.TimeoutFlag)
	}
}

// review: the user goes from the overview to the rollout of a proposal with the keyboard alone.
// Important changes come first, and critical changes must be ticked. The page reports changes made
// during the review.
func review(i *installation, p *page) {
	p.sees("shop-3, version 1.6.0")
	p.tabTo(`.card.review a.title[href*="shop"]`)
	p.presses(kb.Enter)
	p.sees("What shop-3 changes", "shop-2 → shop-3: 1 added, 2 changed, 1 deleted", "ClusterRole.rbac.authorization.k8s.io shop-reader", "seen 0 of 4", "to be read by the shop team")
	p.until("the focus is at the beginning", "document.activeElement?.tagName === 'H1'")
	p.has("#activate")
	p.checks("review")

	// An object is folded. Its lines appear when the user opens it.
	p.tabTo(".objects summary")
	p.presses(kb.Enter)
	p.sees("seen 1 of 4", "log.level: debug")
	p.until("what differs in a line is marked", "[...document.querySelectorAll('.unified mark')].some((one) => one.innerText.includes('debug'))")
	p.until("lines as fields", "document.querySelectorAll('input[name=as]')[1].click() || true")
	p.sees("Before", "After", ".data")
	p.checks("review-fields")
	// From the row to the object, and back.
	p.tabTo(".whole a")
	p.presses(kb.Enter)
	p.until("the object is shown", "location.hash === '#/object/shop-3/ConfigMap/shop/shop-config'")
	p.sees("ConfigMap shop/shop-config", "Manifest", "log.level: debug")
	p.run(chromedp.NavigateBack())
	p.sees("What shop-3 changes", "seen 1 of 4")
	p.until("its box is ticked", "document.querySelectorAll('.objects input:checked').length === 1")

	// Another user changes the revision during the review.
	i.MustKubectl("patch", "cer", "shop-3", "--type=merge", "-p", `{"spec":{"onFailure":"None","successDelaySeconds":1}}`)
	p.sees("This is not up to date")
	p.refuses("#activate", "look again")
	p.tabTo("#look")
	p.presses(kb.Enter)
	p.unsees("This is not up to date")

	p.tabTo("#activate")
	p.works("#activate")
	p.presses(kb.Enter)
	p.sees("Roll out shop-3?", "1 deleted", "I have read: ✗ Critical ClusterRole shop-reader", "Warning", "1 object deleted:", "− Deployment shop/shop-worker", "3 of 4 objects not looked at")
	p.refuses("#yes", "tick the critical change first")
	p.checks("rollout")
	p.has("dialog input[type=checkbox]")
	p.ticksAll()
	p.tabTo("#yes")
	p.works("#yes")
	p.presses(kb.Enter)
	p.until("the extension is shown", "location.hash === '#/x/shop'")
	p.sees("shop-3 · 1.6.0", "Available")
	i.MustKubectl("wait", "--for=condition=Succeeded", poll.TimeoutFlag, "cer/shop-3")
	if state := i.field(".spec.lifecycleState", "cer", "shop-3"); state != "Active" {
		i.t.Errorf("shop-3 is %s", state)
	}
	i.MustKubectl("wait", "--for=delete", poll.TimeoutFlag, "-n", "shop", "deployment/shop-worker")

	p.checks("extension")

	// Each object in its current state.
	p.tabTo("#objects")
	p.presses(kb.Enter)
	p.until("all objects", `document.querySelectorAll("#now tbody tr").length === 3`)
	p.sees("Deployment.apps shop/shop-web", "Read ")
	p.checks("objects")

	// The comparison with the cluster.
	p.goTo("#/diff/shop-3..live")
	p.sees("shop-3 and the cluster", "Read ")
}

// hostileTexts: no page interprets text from the cluster as markup or script.
func hostileTexts(i *installation, p *page) {
	i.furnishHostile()
	p.sees("hostile-2, version javascript")
	for _, place := range []string{"#/", "#/x/hostile", "#/diff/hostile-1..hostile-2", "#/diff/..hostile-1"} {
		p.goTo(place)
		p.until("hostile things at "+place, "document.querySelector('h1') && document.body.innerText.includes('hostile')")
		p.until("all of it at "+place, "!document.body.innerText.includes('Comparing') && !document.body.innerText.includes('Asking')")
		switch place {
		case "#/diff/hostile-1..hostile-2":
			p.click(".objects summary")
			p.sees("evil.test")
		case "#/x/hostile":
			p.click("#objects")
			p.has("#tree svg")
		}
		p.until("no script has run, and no element is of the data", "!document.title.includes('owned') && !document.querySelector('iframe, svg:not(#tree svg), script:not([src]), img:not([src=\"/icon.svg\"]), a[href^=\"http\"], a[href^=\"javascript\"]')")
	}
	p.goTo("#/x/<img src=x onerror=alert(1)>")
	p.sees("There is nothing here")
	p.goTo("#/diff/../../x")
	p.sees("There is nothing here")
}
