//go:build integration

package chartkind_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// howTo follows docs/how-to/make-a-kind-of-a-chart.md: it runs the commands in order, and applies
// the page's ChartKind and rule.
func howTo(w shared) {
	root, err := plane.Root()
	if err != nil {
		w.t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "how-to", "make-a-kind-of-a-chart.md"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.name = "stackrox" // as on the page
	ran := 0
	for line := range strings.Lines(string(page)) {
		command, is := strings.CutPrefix(line, "    kubectl ")
		if !is {
			continue
		}
		command = strings.NewReplacer("artifacts/", filepath.Join(root, "artifacts")+"/", " -w\n", "\n").Replace(command)
		w.MustKubectl(strings.Fields(command)...)
		if ran++; strings.Contains(command, "central.yaml") {
			w.awaitCentral(columned, "the page's Central is installed", settled)
		}
	}
	if ran < 5 {
		w.t.Errorf("the page has %d commands", ran)
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(apiVersion.*?)```").FindAllStringSubmatch(string(page), -1) {
		// The ChartKind is renamed, because the example's name serves other scenarios.
		w.MustKubectlInput(strings.Replace(block[1], "name: central\n", "name: page\n", 1), "create", "--dry-run=server", "-f", "-")
	}
	header, row, _ := strings.Cut(strings.TrimSpace(w.MustKubectl("-n", w.name, "get", "centrals")), "\n")
	told := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if shown := told(string(page)); !strings.Contains(shown, told(header)) || !strings.Contains(shown, strings.TrimSuffix(told(row), " "+lastWord(row))) {
		w.t.Errorf("the page shows something else than\n%s\n%s", header, row)
	}
	// The text after the list of commands.
	w.patch(columned, `{"spec":{"central":{"db":{"size":"20Gi"}}}}`)
	w.awaitCentral(columned, "it is changed", settled)
	if diff := w.MustKubectl("get", "cer", "central-stackrox-2", "--subresource=diff"); !strings.Contains(diff, "central-config") {
		w.t.Errorf("the diff does not name what changes:\n%s", diff)
	}
	w.MustKubectl("-n", w.name, "annotate", "central", columned, "charts.penstock.dev/paused=true")
	w.awaitCentral(columned, "it is left alone", is(report.Paused, "True", ""))
	w.MustKubectl("-n", w.name, "delete", "central", columned, poll.TimeoutFlag)
}

func lastWord(text string) string {
	words := strings.Fields(text)
	return words[len(words)-1]
}
