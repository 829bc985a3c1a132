// Package penstock runs the real program in a test. The program is built from this source tree,
// runs against the test's cluster, and can be stopped, killed and restarted.
//
//	program := penstock.Build(t)
//	server := program.Serve(t, c, penstock.DataDir(t)) // the host serves our API
//	out := program.Run(t, "", "render", dir, "--extension=x", "--revision=1")
//
// It fails the test instead of returning errors, and always stops its processes, however the test
// ends.
package penstock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// Program is a built program.
type Program struct{ path string }

// Build returns the program at $PENSTOCK_PROGRAM, which hack/test.sh builds once for all tests.
// Without it, Build builds the program and removes it when the test ends; a test with subtests
// should build it once.
func Build(t testing.TB) *Program {
	t.Helper()
	if path := os.Getenv("PENSTOCK_PROGRAM"); path != "" {
		return &Program{path: path}
	}
	dir, err := os.MkdirTemp("", "penstock-program-")
	if err != nil {
		t.Fatalf("penstock: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "penstock")
	root, err := plane.Root()
	if err != nil {
		t.Fatalf("penstock: %v", err)
	}
	tags, err := os.ReadFile(filepath.Join(root, "hack", "tags"))
	if err != nil {
		t.Fatalf("penstock: %v", err)
	}
	// The state of the work tree is no input of a test. With -buildvcs=false the version is always
	// "devel".
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-tags="+strings.TrimSpace(string(tags)), "-o", path,
		"github.com/penstock-project/penstock/cmd/penstock")
	// Build in the program's own module, so that it has its released dependencies. A test may be in
	// another module.
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("penstock: building the program: %v\n%s", err, out)
	}
	return &Program{path: path}
}

// At returns an existing program, such as a release's.
func At(path string) *Program { return &Program{path: path} }

// Path returns the path of the program.
func (p *Program) Path() string { return p.path }

// DataDir returns a directory for the store, which is removed when the test ends. Its path is short
// enough for a unix socket, unlike a path of t.TempDir.
func DataDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "penstock-data-")
	if err != nil {
		t.Fatalf("penstock: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "data")
}

// Output is the output of a run of the program and its exit code.
type Output struct {
	Args     []string
	Stdout   string
	Stderr   string
	ExitCode int
}

// String shows the run as a terminal would.
func (o Output) String() string {
	return fmt.Sprintf("$ penstock %s\n%s%s(exit %d)", strings.Join(o.Args, " "), o.Stdout, o.Stderr, o.ExitCode)
}

// Run runs a command until it exits. A non-zero exit code does not fail the test.
func (p *Program) Run(t testing.TB, stdin string, args ...string) Output {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), poll.Patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("penstock: running penstock %s: %v", strings.Join(args, " "), err)
	}
	return Output{Args: args, Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: cmd.ProcessState.ExitCode()}
}

// MustRun is like Run, fails the test on a non-zero exit code, and returns stdout.
func (p *Program) MustRun(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	out := p.Run(t, stdin, args...)
	if out.ExitCode != 0 {
		t.Fatal(out)
	}
	return out.Stdout
}
