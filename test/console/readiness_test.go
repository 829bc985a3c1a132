package console

import (
	"strings"

	"github.com/chromedp/chromedp"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// readiness: from an extension to the findings for a cluster upgrade, by severity, and to the
// object of a finding. The page loads the steps of the upgrade when the user asks for them.
func readiness(i *installation, p *page) {
	i.roll("Succeeded", revision{extension: "guarded", number: 1, version: "1.0.0", phases: []phase{{"all", []object{
		configMap("shop", "guarded", "a", "b"),
		{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": object{"namespace": "shop", "name": "guarded"},
			"spec": object{"maxUnavailable": 0, "selector": object{"matchLabels": object{"app": "guarded"}}}},
	}}}})
	p.goTo("#/x/guarded")
	p.has(`a[href="#/ready?extension=guarded"]`)
	p.goTo("#/ready?extension=guarded")
	p.sees("Upgrade readiness of guarded", "Nothing found that blocks", "Act before the upgrade", "shop/guarded", "PodDisruptionBudget of guarded-1")
	p.checks("readiness")

	id, minor, _ := strings.Cut(i.MustKubectl("get", "upgradereadiness", "next", "-o", `jsonpath={.findings[?(@.revision=="guarded-1")].id} {.target}`), " ")
	i.MustKubectl("annotate", "cer", "guarded-1", "acknowledge.penstock.dev/"+id+"="+minor+" we drain by hand")
	p.run(chromedp.Reload())
	p.sees("Acknowledged by admin", "ago: we drain by hand")
	p.until("it is not marked any more", `document.querySelector(".findings tr.stopped")`)
	p.checks("acknowledged")

	// A link can contain the version. The page rejects an invalid version with a message.
	p.run(clear("#version"))
	p.types("#version", "1.x")
	p.click("#show")
	p.sees("The readiness cannot be shown", "is no version", "such as 1.38 or 4.22")
	p.goTo("#/ready?version=99.1&extension=guarded")
	p.sees("is no version to upgrade to")

	p.goTo("#/ready?extension=guarded")
	p.click("#steps")
	p.sees("The cluster, to Kubernetes")
	p.checks("readiness-steps")
	p.goTo("#/ready?extension=nothing-of-it")
	p.sees("Upgrade readiness of nothing-of-it")

	p.goTo("#/ready")
	p.sees("Upgrade readiness", "billing", "guarded")
	p.click(`a[href="#/object/guarded-1/PodDisruptionBudget.policy/shop/guarded"]`)
	p.sees("PodDisruptionBudget.policy shop/guarded", "maxUnavailable: 0")
	i.MustKubectl("delete", "cer", "guarded-1", poll.TimeoutFlag)
}
