package console

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// kubelet serves container logs like a node's kubelet. kube-apiserver reads them from it for
// authorized users.
type kubelet struct {
	*httptest.Server
	// more receives lines that are appended while the log is followed.
	more chan string
}

func startKubelet(t *testing.T) *kubelet {
	k := &kubelet{more: make(chan string)}
	k.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		container := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		asked := r.URL.Query()
		if asked.Get("previous") == "true" {
			fmt.Fprintf(w, "2026-11-28T08:00:00Z the last words of %s\n", container)
			return
		}
		for n, line := range append(hostile(), "listening on port 8080") {
			fmt.Fprintf(w, "2026-11-28T09:00:%02dZ %s: \x1b[31m%s\x1b[0m\n", n, container, line)
		}
		for asked.Get("follow") == "true" {
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case line := <-k.more:
				fmt.Fprintln(w, line)
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(k.Close)
	return k
}

// isOf registers this kubelet in the status of the node.
func (k *kubelet) isOf(i *installation, node string) {
	i.t.Helper()
	at, err := url.Parse(k.URL)
	if err != nil {
		i.t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(at.Host)
	if err != nil {
		i.t.Fatal(err)
	}
	i.MustKubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p",
		fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%s}}}}`, host, port))
}

// pods: from an extension to a Pod of its workload, the container's log, and the events of the
// cluster. Each step uses the caller's rights.
func pods(i *installation, p, carl *page) {
	kubelet := startKubelet(i.t)
	kubelet.isOf(i, i.field(".items[0].metadata.name", "nodes"))
	name := i.field(".items[0].metadata.name", "pods", "--namespace=shop", "--selector=app=shop-web")
	p.goTo("#/x/search")
	p.sees("Unschedulable")
	p.click(`.failing a[href^="#/pod/search-1/search/search-"]`)
	p.sees("Pod", "Pending", "0 of 1 container ready")
	p.goTo("#/x/shop")
	p.tabTo("#objects")
	p.presses(kb.Enter)
	p.click(fmt.Sprintf(`#now a[href$="/shop/%s"]`, name))
	p.sees("Pod", name, "1 of 1 container ready", "listening on port 8080", "Scheduled")
	p.sees(hostile()[0], hostile()[6])
	p.unsees("[31m")
	kubelet.more <- "2026-11-28T09:01:00Z a late line"
	p.sees("a late line")
	p.types("#lines-with", "LATE")
	p.until("only that line", "document.querySelectorAll('#lines span').length === 1")
	p.run(clear("#lines-with"))
	p.checks("pod")
	p.click("#previous")
	p.sees("the last words of", "it has ended")
	p.unsees("listening on port 8080")
	p.goTo("#/pod/shop-2/shop/nothing")
	p.sees("The Pod cannot be shown", `pods "nothing" not found`)

	p.goTo("#/x/shop")
	p.click("#noted")
	p.sees("Scaling replica set", "Scheduled", "the rollout of 3 objects in 2 phases is complete")
	p.checks("events")

	choose(p, "#theme", "dark")
	p.until("it is dark", "document.documentElement.matches('[data-theme=dark]')")
	choose(p, "#theme", "")

	carl.goTo("#/pod/shop-2/shop/" + name)
	carl.sees("The Pod cannot be shown", "cannot get resource")
	carl.goTo("#/x/shop")
	carl.click("#noted")
	carl.sees("Some are not shown", `cannot list resource "events"`)
}

// links: links open their page, also links to a different console and in a tab that gets its key
// later.
func links(p, led *page) {
	p.run(chromedp.Navigate(p.console.Origin + "/#/x/billing"))
	p.sees("This tab has no key")
	p.run(chromedp.Navigate(p.console.Origin + "/timeline?what=Repaired"))
	p.sees("This tab has no key")
	p.until("a path is a place", `location.pathname === "/" && location.hash === "#/timeline?what=Repaired"`)
	p.run(chromedp.Navigate(p.console.Origin + "/x/billing"))
	p.sees("This tab has no key")
	p.run(chromedp.Navigate(p.console.Address))
	p.sees("billing-1")
	p.until("the key is not in the address", "location.hash === '#/x/billing'")
	led.sees("There is no revision of argocd")
	led.until("nor in the other one", "location.hash === '#/x/argocd'")
}
