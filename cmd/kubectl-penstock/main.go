// Command kubectl-penstock is the kubectl plugin: kubectl penstock. Called as
// kubectl_complete-penstock, it returns completions to kubectl.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/plugin/command"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
)

// version is set by the linker: -X main.version=v1.2.3.
var version string

func main() {
	if template.IsProcess(os.Args) {
		os.Exit(template.RunProcess(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second interrupt ends the process at once.
	context.AfterFunc(ctx, stop)
	return command.Main(ctx, session.Process{
		Name: os.Args[0], Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Terminal: screen.RealTerminal, Clock: clock.RealClock{}, Executable: os.Executable,
		Version: programVersion(),
	})
}

// programVersion returns the version that the linker has set, or else the version in Go's build
// information.
func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return "devel-" + setting.Value[:12]
		}
	}
	return "devel"
}
