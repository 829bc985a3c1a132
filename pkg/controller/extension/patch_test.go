package extension

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/extension"
)

// TestPatched: patches change the rendered objects before any other step reads them. A patch that
// does not match prevents the revision, and the installed content stays.
func TestPatched(t *testing.T) {
	p := installed(t)
	p.exact = true // a change of annotations does not change the generation
	const text = "[{target: {kind: ConfigMap, name: lamp}, type: Merge, patch: {data: {text: mine}}}]"
	p.set(extension.PatchesAnnotation, text)
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.0.0 alice")
	if got := p.annotation("lamp-2", extension.PatchedAnnotation); !strings.Contains(got, `"kind":"ConfigMap"`) || !strings.Contains(got, `"fields":["data.text"]`) {
		t.Errorf("the revision says of its patches: %s", got)
	}
	p.succeed("lamp-2")
	p.set(extension.PatchesAnnotation, strings.ReplaceAll(text, "name: lamp", "name: gone"))
	p.await("it names the patch", func() bool {
		return p.condition("Ready") == "False/InvalidConfiguration" && strings.Contains(p.message("Ready"), "annotation penstock.dev/patches: patch 1 matches no object: its target is ConfigMap gone")
	})
	if shown := p.shown(); shown != "2 Active 1.0.0 alice" {
		t.Errorf("there is %s", shown)
	}
	p.set(extension.PatchesAnnotation, text)
	p.await("it is as installed", func() bool { return p.condition("Ready") == "True/Succeeded" && p.shown() == "2 Active 1.0.0 alice" })
}

// TestPatchesCannotBeRead: admission refuses invalid patches. If they still exist, Penstock does
// not install without them.
func TestPatchesCannotBeRead(t *testing.T) {
	p := installed(t)
	p.exact = true
	p.set(extension.PatchesAnnotation, "{")
	p.await("it is said", func() bool {
		return p.condition("Ready") == "False/InvalidConfiguration" && p.condition("Stalled") == "True/InvalidConfiguration"
	})
	if shown := p.shown(); shown != "1 Active 1.0.0 alice" {
		t.Errorf("there is %s", shown)
	}
}
