package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

func plugin(t *testing.T) *cobra.Command {
	t.Helper()
	root, err := New(session.New(session.Process{
		Name: "kubectl-penstock", Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{},
		Getenv: func(string) string { return "" }, Terminal: func(any) (screen.Size, bool) { return screen.Size{}, false },
	}))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// each calls a function for all commands below a command, in the order of the help.
func each(command *cobra.Command, do func(*cobra.Command)) {
	for _, child := range command.Commands() {
		if child.Name() != "help" && !child.Hidden {
			do(child)
			each(child, do)
		}
	}
}

func examples(command *cobra.Command) []string {
	return regexp.MustCompile(`kubectl penstock .*`).FindAllString(command.Example, -1)
}

// TestExamples: each command has an example, and test/e2e, test/extension, test/console or
// test/smoke runs it literally. For commands that the server's program has too, tests run that
// program (package verbs). hack/release-test.sh runs verify-release.
func TestExamples(t *testing.T) {
	var run strings.Builder
	files, err := filepath.Glob("../../../test/[ecs]*/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		run.Write(source)
	}
	each(plugin(t), func(command *cobra.Command) {
		lines := examples(command)
		if len(lines) == 0 {
			t.Errorf("%s has no example", command.CommandPath())
		}
		for _, line := range lines {
			if !strings.HasPrefix(line, strings.Replace(command.CommandPath(), "kubectl-penstock", "kubectl penstock", 1)) {
				t.Errorf("%s has an example of another command: %s", command.CommandPath(), line)
			}
			if slices.ContainsFunc([]string{"adopt", "render", "unregister", "verify-release"}, func(name string) bool { return strings.HasPrefix(line, "kubectl penstock "+name+" ") }) {
				continue
			}
			// The tour of test/smoke omits the name of the plugin.
			short := strings.TrimPrefix(line, "kubectl penstock ")
			if !slices.ContainsFunc([]string{"`" + line + "`", "`" + short + "`", `"` + short + `"`}, func(typed string) bool { return strings.Contains(run.String(), typed) }) {
				t.Errorf("no test of test/e2e, test/extension, test/console or test/smoke runs %s", line)
			}
		}
	})
}

// TestNamedCommands: the commands that other packages mention exist.
func TestNamedCommands(t *testing.T) {
	root := plugin(t)
	named := regexp.MustCompile(`kubectl penstock ([a-z]+(?:-[a-z]+)*)(?: ([a-z]+))?`)
	for _, pattern := range []string{"../../client/*/*.go", "*.go", "../*/*.go", "../../../docs/*/*.md", "../../../docs/*/*/*.md", "../../../README.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, words := range named.FindAllStringSubmatch(string(source), -1) {
				found, _, err := root.Find(words[1:2])
				if words[1] == "plan" && words[2] != "" && err == nil {
					found, _, err = root.Find(words[1:])
				}
				if err != nil || found == root || words[1] == "plan" && words[2] != "" && found.Name() == "plan" {
					t.Errorf("%s names %q, which does not exist", file, words[0])
				}
			}
		}
	}
}

// mark begins the generated part of the reference page.
const mark = "<!-- UPDATE=1 go test ./pkg/plugin/command writes the following list. -->\n"

// TestReference: docs/reference/plugin.md has an item for every command. The help of a command has its flags.
func TestReference(t *testing.T) {
	const path = "../../../docs/reference/plugin.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), mark)
	have, after, closed := strings.Cut(rest, "\n\n")
	if !found || !closed {
		t.Fatalf("%s has no mark with rows", path)
	}
	var rows []string
	each(plugin(t), func(command *cobra.Command) { rows = append(rows, row(command)) })
	want := strings.Join(rows, "\n")
	if have == want {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Fatalf("%s does not say what the help says: UPDATE=1 go test ./pkg/plugin/command", path)
	}
	if err := os.WriteFile(path, []byte(before+mark+want+"\n\n"+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// row returns a table row of a command: its arguments and its purpose.
func row(command *cobra.Command) string {
	usage := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(command.UseLine()), "kubectl penstock "), " [flags]")
	return fmt.Sprintf("- `%s`: %s", usage, command.Short)
}
