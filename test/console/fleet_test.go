package console

import (
	"fmt"
	"os"

	"github.com/chromedp/chromedp/kb"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/packages"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// edge registers a new control plane as a cluster that sets can select.
func (i *installation) edge(name, ring string) *cluster.Cluster {
	i.t.Helper()
	target := cluster.Start(i.t)
	kubeconfig, err := os.ReadFile(target.User("penstock", "system:masters").Kubeconfig())
	if err != nil {
		i.t.Fatal(err)
	}
	i.create(object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": name, "namespace": "penstock-system", "labels": object{"penstock.dev/cluster": "", "tier": "edge", "ring": ring}}, "stringData": object{"kubeconfig": string(kubeconfig)}})
	target.MustKubectl("create", "namespace", "lamps")
	return target
}

// lamps returns a set that rolls out a version of lamps. From version 2 on it has one more object.
func (i *installation) lamps(version int) string {
	lamp := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lamp, namespace: lamps}\ndata: {version: '%d'}\n", version)
	if version > 1 {
		lamp += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shade, namespace: lamps}\n"
	}
	return fmt.Sprintf(`
apiVersion: penstock.dev/v1alpha1
kind: ClusterExtensionSet
metadata: {name: lamps}
spec:
  clusterSelector: {matchLabels: {tier: edge}}
  template: {spec: {namespace: lamps, source: {sourceType: Image, image: {ref: %q}}}}
  strategy:
    deadlineSeconds: 60
    waves:
    - {name: canary, clusterSelector: {matchLabels: {ring: "0"}}, soakSeconds: 1}
    - {name: rest}
`, packages.PushFiles(i.t, i.images, fmt.Sprintf("plain/lamps-%d", version), map[string]string{"lamp.yaml": lamp}))
}

// fleet: the author reviews a change to many clusters and cannot approve it. Another user approves
// it. A cluster that fails halts the next change, and the rollout can continue without that
// cluster.
func fleet(i *installation, author *cluster.Access, first, second *page) {
	i.edge("edge-1", "0")
	failing := i.edge("edge-2", "1")
	author.MustKubectlInput(i.lamps(1), "apply", "--server-side", "-f", "-")
	first.goTo("#/")
	first.sees("Many clusters", "lamps-1 waits for an approval", "0/2")
	first.checks("overview-fleet")
	first.click(`#needs + ul a[href="#/fleet/lamps-1"]`)
	first.sees("Rollout lamps-1", "To review", "written by anna", "0 of 2 clusters succeeded", "canary 0/1", "at most 1 changing or unhealthy, no failed, ", "2 clusters: nothing → ", "1 added", "ConfigMap lamps/lamp")
	first.refuses("#approve", "another user must approve its change")
	first.refuses("#resume", "no user halted it")
	first.refuses("#retry", "choose failed clusters")

	second.goTo("#/fleet/lamps-1")
	second.types("#comment", "CHG-3001")
	second.tabTo("#approve")
	second.works("#approve")
	second.presses(kb.Enter)
	second.sees("Approve rollout lamps-1?", "It changes 2 clusters, in 2 waves:", "1 of 1 object not looked at")
	second.checks("fleet-approve")
	second.click("#yes")
	for _, p := range []*page{first, second} {
		p.sees("✓ bert", "CHG-3001", "Completed", "2 of 2 clusters succeeded")
	}
	first.tabTo(`.waves [data-row]`)
	first.presses(kb.Enter)
	first.until("the extension of the cluster is shown", `location.hash === "#/x/lamps.edge-1"`)

	failing.MustKubectl("-n", "lamps", "create", "configmap", "shade")
	author.MustKubectlInput(i.lamps(2), "apply", "--server-side", "-f", "-")
	i.MustKubectl("wait", "--for=jsonpath={.status.phase}=ReviewRequired", "--for=create", poll.TimeoutFlag, "clusterextensionrollout/lamps-2")
	first.goTo("#/fleet/lamps-1")
	first.sees("Superseded")
	first.refuses("#halt", "another rollout took its place")
	second.goTo("#/fleet/lamps-2")
	second.click("#halt")
	second.click("#yes")
	second.sees("To review", "bert halted it")
	second.click("#resume")
	second.sees("Resume rollout lamps-2?", "The halt ends")
	second.click("#yes")
	second.refuses("#resume", "no user halted it")
	second.click("#approve")
	second.click("#yes")
	second.sees("Halted", "Wave rest: more clusters failed than maxFailures allows (edge-2).", "canary 1/1", "rest 0/1")
	second.unsees("kubectl")
	second.checks("fleet")
	second.until("the cluster that failed can be chosen", `document.querySelector('[aria-label="Choose edge-2"]').click() || true`)
	second.works("#retry")
	second.click("#skip")
	second.sees("Skip rollout lamps-2?", "The rollout continues without these clusters.", "edge-2")
	second.click("#yes")
	second.sees("Completed", "Skipped", "by bert", "1 of 2 clusters succeeded")
	author.MustKubectl("delete", "clusterextensionset", "lamps", poll.TimeoutFlag)
	first.goTo("#/")
	first.unsees("Many clusters")
}
