package console

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// required reports whether missing programs fail the tests.
func required() bool { return os.Getenv("PENSTOCK_CONSOLE") == "required" }

// lacking skips the test, or fails it if the programs are required.
func lacking(t *testing.T, what string) {
	t.Helper()
	if required() {
		t.Fatal(what)
	}
	t.Skip(what)
}

// startBrowser starts Chromium until the test ends.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		lacking(t, "there is no chromium: the console is not tested in a browser; apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("headless", "new"), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 860), chromedp.WSURLReadTimeout(poll.Patience))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	// A browser newer than chromedp sends events that chromedp cannot parse. These errors are
	// harmless.
	browser, end := chromedp.NewContext(allocated, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(end)
	if err := chromedp.Run(browser); err != nil {
		t.Fatalf("starting chromium: %v", err)
	}
	return browser
}

// page is a browser tab.
type page struct {
	t       *testing.T
	ctx     context.Context
	console *served
	// others are URL prefixes that the page may request besides the console.
	others []string

	mu sync.Mutex
	// problems are script errors, violations of the content security policy, and requests to other
	// hosts. Any problem fails the test.
	problems []string
}

// tab opens a console in a new tab. Errors in the tab fail the test when it ends.
func tab(t *testing.T, browser context.Context, console *served) *page {
	t.Helper()
	p := blank(t, browser, console)
	p.run(chromedp.Navigate(console.Address))
	return p
}

// blank returns a tab in which no console is open yet.
func blank(t *testing.T, browser context.Context, console *served) *page {
	t.Helper()
	// Each tab has its own key, because each tab has its own sessionStorage.
	ctx, stop := chromedp.NewContext(browser)
	t.Cleanup(stop)
	p := &page{t: t, ctx: ctx, console: console}
	chromedp.ListenTarget(ctx, p.hear)
	// The tab lives as long as the context of the first run, so that context has no deadline.
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	// A tab in the background counts as hidden, and the page closes its stream then.
	p.run(log.Enable(), network.Enable(), runtime.Enable(), emulation.SetFocusEmulationEnabled(true))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.problems) > 0 {
			t.Errorf("the page had problems:\n%s", strings.Join(p.problems, "\n"))
		}
	})
	return p
}

func (p *page) hear(event any) {
	said := ""
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		said = "script: " + event.ExceptionDetails.Error()
	case *log.EventEntryAdded:
		// The page itself reports refused requests.
		if event.Entry.Level == log.LevelError && event.Entry.Source != log.SourceNetwork {
			said = fmt.Sprintf("%s: %s", event.Entry.Source, event.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		ours := slices.ContainsFunc(append(p.others, p.console.Origin+"/"), func(of string) bool { return strings.HasPrefix(event.Request.URL, of) })
		if !ours && event.Request.URL != "about:blank" {
			said = "a request to " + event.Request.URL
		}
	}
	if said != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, said)
	}
}

// run runs actions in the tab.
func (p *page) run(actions ...chromedp.Action) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.ctx, poll.Patience+5*time.Second)
	defer stop()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatalf("in the browser: %v", err)
	}
}

// goTo opens a screen by its hash.
func (p *page) goTo(place string) {
	p.t.Helper()
	p.run(chromedp.Evaluate("location.hash = "+quoted(place), nil))
}

func quoted(text string) string {
	raw, _ := json.Marshal(text) // marshalling a string cannot fail
	return string(raw)
}

// until waits until a JavaScript expression is true. It evaluates the expression after each change
// of the DOM, and every 100 ms because scrolling does not change the DOM.
func (p *page) until(what, expression string) {
	p.t.Helper()
	holds := false
	script := fmt.Sprintf(`new Promise((done) => {
		let over;
		const look = () => { let is = false; try { is = !!(%s) } catch {} if (is) { watch.disconnect(); clearInterval(again); clearTimeout(over); done(true) } };
		const watch = new MutationObserver(look);
		const again = setInterval(look, 100);
		watch.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
		over = setTimeout(() => { watch.disconnect(); clearInterval(again); done(false) }, %d);
		look();
	})`, expression, poll.Patience.Milliseconds())
	ctx, stop := context.WithTimeout(p.ctx, poll.Patience+5*time.Second)
	defer stop()
	look := chromedp.Evaluate(script, &holds, func(params *runtime.EvaluateParams) *runtime.EvaluateParams { return params.WithAwaitPromise(true) })
	err := chromedp.Run(ctx, look)
	for err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "-32000") { // the page was reloaded meanwhile
		err = chromedp.Run(ctx, look)
	}
	if err != nil {
		p.t.Fatalf("%s: in the browser: %v", what, err)
	}
	if !holds {
		p.t.Fatalf("%s: not within %s; the page shows:\n%s", what, poll.Patience, p.text())
	}
}

// sees waits until the page shows each text.
func (p *page) sees(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.until("seeing "+text, "document.body.innerText.replace(/\\s+/g, ' ').includes("+quoted(text)+")")
	}
}

// unsees waits until the page does not show the text.
func (p *page) unsees(text string) {
	p.t.Helper()
	p.until("not seeing "+text, "!document.body.innerText.replace(/\\s+/g, ' ').includes("+quoted(text)+")")
}

// has waits for an element.
func (p *page) has(selector string) {
	p.t.Helper()
	p.until("having "+selector, "document.querySelector("+quoted(selector)+")")
}

// works waits until a button exists and is enabled.
func (p *page) works(selector string) {
	p.t.Helper()
	p.until("a button that works: "+selector, "document.querySelector("+quoted(selector)+")?.getAttribute('aria-disabled') !== 'true' && document.querySelector("+quoted(selector)+")")
}

// click waits until a button is enabled, and clicks it.
func (p *page) click(selector string) {
	p.t.Helper()
	p.works(selector)
	// A click hits a position in the window: content that arrives meanwhile can move the element.
	p.until("an element that stands still: "+selector, `(() => {
		const one = document.querySelector(`+quoted(selector)+`);
		one.scrollIntoView({block: "center"});
		const {x, y} = one.getBoundingClientRect(), place = [x, y].join(), now = performance.now();
		if (window.stood?.place !== place) window.stood = {place, since: now};
		const stands = now - window.stood.since >= 50;
		if (stands) delete window.stood;
		return stands;
	})()`)
	p.run(chromedp.Click(selector, chromedp.ByQuery))
}

// ticksAll ticks all checkboxes of the open dialog.
func (p *page) ticksAll() {
	p.t.Helper()
	p.until("all is ticked", "document.querySelector('dialog') && [...document.querySelectorAll('dialog input[type=checkbox]')].every((one) => one.checked || (one.click(), true))")
}

// refuses waits until a button is disabled and shows the reason.
func (p *page) refuses(selector, why string) {
	p.t.Helper()
	p.until(selector+" says why not: "+why, "document.querySelector("+quoted(selector)+")?.getAttribute('aria-disabled') === 'true' && document.querySelector("+quoted(selector+"-why")+")?.innerText.includes("+quoted(why)+")")
}

// types writes into a field.
func (p *page) types(selector, text string) {
	p.t.Helper()
	p.has(selector)
	p.run(chromedp.SendKeys(selector, text, chromedp.ByQuery))
}

// presses presses keys in sequence.
func (p *page) presses(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.run(chromedp.KeyEvent(key))
	}
}

// tabTo presses Tab until an element has the focus.
func (p *page) tabTo(selector string) {
	p.t.Helper()
	p.has(selector)
	for range 120 {
		reached := false
		p.run(chromedp.Evaluate("document.activeElement?.matches("+quoted(selector)+")", &reached))
		if reached {
			return
		}
		p.presses(kb.Tab)
	}
	p.t.Fatalf("Tab does not lead to %s; the page shows:\n%s", selector, p.text())
}

func (p *page) text() string {
	said := ""
	p.run(chromedp.Evaluate("document.body.innerText", &said))
	return said
}

// clear empties a field and fires its input event.
func clear(selector string) chromedp.Action {
	return chromedp.Evaluate("(() => { const field = document.querySelector("+quoted(selector)+"); field.value = ''; field.dispatchEvent(new Event('input', {bubbles: true})) })()", nil)
}
