package console

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// look is a window size with a theme.
type look struct {
	name          string
	width, height int64
	features      []*emulation.MediaFeature
}

// shownToPeople lists the screens of docs/console.
func shownToPeople() []string {
	return []string{"overview", "review", "review-fields", "rollout", "extension", "objects", "tree", "timeline", "search", "rollback", "plan", "plan-run", "fleet", "catalog", "package", "install", "version", "profiles", "object", "pod", "readiness", "sign-in", "sign-in-provider", "me"}
}

// looks returns the two most different looks. With FULL=1 and for pictures it returns all looks.
func looks() []look {
	scheme := func(is string) *emulation.MediaFeature {
		return &emulation.MediaFeature{Name: "prefers-color-scheme", Value: is}
	}
	if os.Getenv("FULL") != "1" && os.Getenv("SCREENSHOTS") == "" {
		return []look{
			{"light", 1280, 860, []*emulation.MediaFeature{scheme("light")}},
			{"dark, narrow", 390, 844, []*emulation.MediaFeature{scheme("dark")}},
		}
	}
	return []look{
		{"light", 1280, 860, []*emulation.MediaFeature{scheme("light")}},
		{"dark", 1280, 860, []*emulation.MediaFeature{scheme("dark")}},
		{"narrow", 390, 844, []*emulation.MediaFeature{scheme("light")}},
		{"forced", 1280, 860, []*emulation.MediaFeature{scheme("dark"), {Name: "forced-colors", Value: "active"}}},
	}
}

// checks tests a screen in each look: the rules of accessibility, and that the page fits its
// window. With SCREENSHOTS it also takes pictures.
func (p *page) checks(name string) {
	p.t.Helper()
	axe := axeCore(p.t)
	for _, look := range looks() {
		p.run(emulation.SetEmulatedMedia().WithFeatures(look.features), emulation.SetDeviceMetricsOverride(look.width, look.height, 1, false))
		if axe != "" {
			p.accessible(axe, name+", "+look.name)
		}
		wider := ""
		p.run(chromedp.Evaluate(`document.documentElement.scrollWidth <= innerWidth ? "" : [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML.slice(0, 200)).join("\n")`, &wider))
		if wider != "" {
			p.t.Errorf("%s, %s: the page is wider than its window:\n%s", name, look.name, wider)
		}
		if os.Getenv("SCREENSHOTS") != "" && look.name != "forced" && slices.Contains(shownToPeople(), name) {
			// The picture begins at the top of the page or of its subject. No element has the focus
			// or the pointer.
			p.run(input.DispatchMouseEvent(input.MouseMoved, 0, 0), chromedp.Evaluate(`(() => { document.activeElement?.blur(); scrollTo(0, 0);
				const of = document.querySelector("#preview:is(h2), .fields, #written, #tree")?.closest(".decision, .objects > li, section, .all");
				if (of && !document.querySelector("dialog")) scrollTo(0, of.getBoundingClientRect().top - 12) })()`, nil))
			p.picture(name + "-" + look.name)
		}
	}
	p.run(emulation.SetEmulatedMedia(), emulation.ClearDeviceMetricsOverride())
}

func (p *page) accessible(axe, where string) {
	p.t.Helper()
	var there bool
	p.run(chromedp.Evaluate("!!globalThis.axe", &there))
	if !there {
		p.run(chromedp.Evaluate(axe+";0", nil))
	}
	var found struct {
		// Passes is the number of rules that checked at least one element without a finding.
		Passes     int
		Violations []struct {
			ID, Help string
			Nodes    []struct {
				HTML           string
				FailureSummary string
			}
		}
	}
	p.run(chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations", "passes"], runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}}).then(({passes, violations}) => ({passes: passes.length, violations}))`,
		&found, func(params *runtime.EvaluateParams) *runtime.EvaluateParams { return params.WithAwaitPromise(true) }))
	if found.Passes < 10 {
		p.t.Errorf("%s: only %d rules of accessibility were checked", where, found.Passes)
	}
	for _, violation := range found.Violations {
		for _, node := range violation.Nodes {
			p.t.Errorf("%s: %s: %s\n%s\n%s", where, violation.ID, violation.Help, node.HTML, node.FailureSummary)
		}
	}
}

// axeCore returns the script of axe-core, or "" if it is missing.
func axeCore(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("PENSTOCK_NODE_MODULES")
	raw, err := os.ReadFile(filepath.Join(folder, "axe-core", "axe.min.js"))
	if err != nil || folder == "" {
		if required() {
			t.Fatalf("axe-core is missing, run hack/console-tools.sh: %v", err)
		}
		t.Log("there is no axe-core: accessibility is not checked; hack/console-tools.sh gets it")
		return ""
	}
	return string(raw)
}
