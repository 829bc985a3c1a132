// Package plugin runs kubectl-penstock in the process of a test, as a user types it: with a
// terminal and a user's answers, or without a terminal.
package plugin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/plugin/command"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// Output is the output of a run and its exit code.
type Output struct {
	Line           string
	Stdout, Stderr string
	ExitCode       int
}

// String shows the run as a terminal would.
func (o Output) String() string {
	return fmt.Sprintf("$ %s\n%s%s(exit %d)", o.Line, o.Stdout, o.Stderr, o.ExitCode)
}

// User is a user of the plugin.
type User struct {
	// Kubeconfig is the path of the cluster's kubeconfig.
	Kubeconfig string
	// Answer is the text that the user types at a prompt. If Answer and Input are empty, there is
	// no terminal.
	Answer string
	// Input replaces Answer, for input that is not a fixed text.
	Input io.Reader
	// Folder is the folder of the plugin's executable.
	Folder string
}

// Yes is the input of a user who answers yes to every question.
type Yes struct{}

// Read implements io.Reader.
func (Yes) Read(into []byte) (int, error) { return copy(into, "y\n"), nil }

// Run runs a command such as `kubectl penstock status`. Quotes group words as in a shell.
func (u User) Run(t testing.TB, line string) Output {
	t.Helper()
	return u.RunContext(t, t.Context(), line)
}

// RunContext is like Run. The end of ctx interrupts the command.
func (u User) RunContext(t testing.TB, ctx context.Context, line string) Output {
	t.Helper()
	words, err := split(line)
	if err != nil {
		t.Fatalf("plugin: %v", err)
	}
	var stdout, stderr bytes.Buffer
	args := append([]string{"--kubeconfig", u.Kubeconfig}, words[2:]...)
	if words[2] == cobra.ShellCompRequestCmd {
		args = append([]string{words[2], "--kubeconfig", u.Kubeconfig}, words[3:]...)
	}
	process := session.Process{
		Name: "kubectl-penstock", Args: args,
		Stdin: u.input(), Stdout: &stdout, Stderr: &stderr,
		Getenv:   func(name string) string { return map[string]string{"TERM": "dumb"}[name] },
		Terminal: func(any) (screen.Size, bool) { return screen.Size{}, u.Answer != "" || u.Input != nil },
		Clock:    clock.RealClock{}, Version: "v0.0.0-test",
		Executable: func() (string, error) { return filepath.Join(u.Folder, "kubectl-penstock"), nil },
	}
	code := command.Main(ctx, process)
	return Output{Line: line, Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: code}
}

func (u User) input() io.Reader {
	if u.Input != nil {
		return u.Input
	}
	return strings.NewReader(u.Answer + "\n")
}

// split splits a command into words. Double quotes work as in a shell.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quoted, begun := false, false
	for _, r := range line {
		switch {
		case r == '"':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	if quoted || len(words) < 3 || words[0] != "kubectl" || words[1] != "penstock" {
		return nil, fmt.Errorf("%q is no line of kubectl penstock", line)
	}
	return words, nil
}
