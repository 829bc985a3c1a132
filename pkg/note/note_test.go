package note

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPage: docs/reference/notes.md lists exactly these reasons.
func TestPage(t *testing.T) {
	content, err := os.ReadFile("../../docs/reference/notes.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, reason := range Reasons() {
		holds := "no"
		if reason.Holds {
			holds = "yes"
		}
		want = append(want, "| `"+reason.Name+"` | "+holds+" | "+reason.Says+" |")
	}
	_, page, _ := strings.Cut(string(content), "<!-- reasons -->\n| reason | holds by default | says |\n|---|---|---|\n")
	page, _, _ = strings.Cut(page, "\n<!-- end of reasons -->")
	if page != strings.Join(want, "\n") {
		t.Errorf("docs/reference/notes.md needs these rows:\n%s", strings.Join(want, "\n"))
	}
}

// TestReasons: the table has each reason constant once.
func TestReasons(t *testing.T) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "note.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var constants []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && spec.Type == nil && len(spec.Values) == 1 {
			constants = append(constants, spec.Names[0].Name)
		}
		return true
	})
	slices.Sort(constants)
	listed := names()
	slices.Sort(listed)
	if !slices.Equal(constants, listed) {
		t.Errorf("constants %v, in the table %v", constants, listed)
	}
}

func TestParseHoldOn(t *testing.T) {
	for text, want := range map[string]string{
		"":                            DefaultHoldOn().String(),
		" ":                           DefaultHoldOn().String(),
		"Deleted":                     "Deleted,Incomplete",
		"RightsGained:Info, Deleted":  "Deleted,Incomplete,RightsGained:Info",
		"Deleted:Critical,Incomplete": "Deleted:Critical,Incomplete",
		"Deleted,Deleted":             "error: Deleted is listed twice",
		"deleted":                     `error: "deleted" is no reason of a note: it must be one of Deleted, `,
		"Deleted,":                    `error: "" is no reason`,
		"Deleted:Fatal":               `error: "Fatal" is no severity of notes with the reason Deleted: it must be one of Critical, Warning, Info`,
		"Incomplete:":                 `error: "" is no severity`,
		"Deleted:Info:Info":           `error: "Info:Info" is no severity`,
	} {
		on, err := ParseHoldOn(SplitHoldOn(text))
		got := on.String()
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want && (!strings.HasPrefix(want, "error: ") || !strings.HasPrefix(got, want)) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		if err == nil && !on.Holds(Incomplete, Warning) {
			t.Errorf("%q: what is not shown does not hold", text)
		}
	}
}

func TestHolds(t *testing.T) {
	on := HoldOn{Deleted: Warning, RightsGained: Info, Image: Critical}
	for reason, want := range map[string]string{Deleted: "Critical Warning", RightsGained: "Critical Warning Info", Image: "Critical", Webhook: ""} {
		var got []string
		for _, severity := range append(Severities(), "Unheard") {
			if on.Holds(reason, severity) {
				got = append(got, string(severity))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s holds at %v, want %s", reason, got, want)
		}
	}
}
