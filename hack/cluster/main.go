// Command cluster starts and ends a Kubernetes control plane on loopback for
// people: make cluster-up and make cluster-down call it.
//
//	cluster [-dir DIR] up      starts it, or finds it running; the last line on
//	                           stdout is the export that points kubectl at it
//	cluster [-dir DIR] down    ends its processes and removes its folder
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/penstock-project/penstock/test/framework/plane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder of the control plane (default .local/cluster of the checkout)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		root, err := plane.Root()
		if err != nil {
			return err
		}
		*dir = filepath.Join(root, ".local", "cluster")
	}
	switch verb := flags.Arg(0); verb {
	case "up":
		return up(ctx, *dir)
	case "down":
		return down(ctx, *dir)
	default:
		return fmt.Errorf("unknown command %q: up and down exist", verb)
	}
}

func up(ctx context.Context, dir string) error {
	tools, err := plane.Tools(ctx, os.Stderr)
	if err != nil {
		return err
	}
	began := time.Now()
	running, err := plane.Up(ctx, plane.Options{
		Dir:      dir,
		Tools:    tools,
		Progress: func(line string) { say("%s", line) },
	})
	if err != nil {
		return err
	}
	say("a Kubernetes control plane with one simulated node is ready at %s (%.1f s)", running.Config().Host, time.Since(began).Seconds())
	say("its own kubectl is %s; `make cluster-down` ends it", filepath.Join(tools, "kubectl"))
	fmt.Printf("export KUBECONFIG=%s\n", quoted(running.Kubeconfig()))
	return nil
}

func down(ctx context.Context, dir string) error {
	_, err := os.Stat(dir)
	there := err == nil
	if err := plane.Down(ctx, dir); err != nil {
		return err
	}
	// .local is ours too, as long as nothing else is in it.
	if parent := filepath.Dir(dir); filepath.Base(parent) == ".local" {
		_ = os.Remove(parent)
	}
	if !there {
		say("there is no control plane in %s; nothing was done", dir)
		return nil
	}
	say("ended the control plane in %s, with everything that ran in it, and removed the folder", dir)
	return nil
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// quoted is a word for a shell.
func quoted(word string) string {
	if !strings.ContainsAny(word, " \t\"'$`\\*?[#~&|;<>()") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
