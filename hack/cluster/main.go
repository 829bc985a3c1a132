// Command cluster starts and ends a Kubernetes control plane on loopback for
// people: make cluster-up and make cluster-down call it.
//
//	cluster [-dir DIR] [-node real] up
//	                           starts it, or finds it running; the last line on
//	                           stdout is the export that points kubectl at it
//	cluster [-dir DIR] load LAYOUT REFERENCE
//	                           gives its real node the image of a folder, as if it had
//	                           pulled REFERENCE
//	cluster [-dir DIR] down    ends its processes and removes its folder
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/penstock-project/penstock/hack/release/layout"
	"github.com/penstock-project/penstock/test/framework/plane"
)

func main() {
	plane.Hold()
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
	node := flags.String("node", "simulated", "simulated, or real: kubelet and containers, in namespaces of their own; needs Linux and root")
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
	if *node != "simulated" && *node != "real" {
		return fmt.Errorf("unknown node %q: simulated and real exist", *node)
	}
	switch verb := flags.Arg(0); verb {
	case "up":
		return up(ctx, *dir, *node)
	case "load":
		if flags.NArg() != 3 {
			return errors.New("want: load LAYOUT REFERENCE, for instance load bin/image registry.example.com/penstock:v0.1.0")
		}
		return load(ctx, *dir, flags.Arg(1), flags.Arg(2))
	case "down":
		return down(ctx, *dir)
	default:
		return fmt.Errorf("unknown command %q: up, load and down exist", verb)
	}
}

func up(ctx context.Context, dir, kind string) error {
	tools, err := plane.Tools(ctx, os.Stderr)
	if err != nil {
		return err
	}
	programs := ""
	if kind == "real" {
		if err := plane.Isolates(); err != nil {
			return err
		}
		if programs, err = plane.NodeTools(ctx, os.Stderr); err != nil {
			return err
		}
	}
	began := time.Now()
	running, err := plane.Up(ctx, plane.Options{
		Dir:      dir,
		Tools:    tools,
		Node:     programs,
		Progress: func(line string) { say("%s", line) },
	})
	if err != nil {
		return err
	}
	say("a Kubernetes control plane with one %s node is ready at %s (%.1f s)", kind, running.Config().Host, time.Since(began).Seconds())
	say("its own kubectl is %s; `make cluster-down` ends it", filepath.Join(tools, "kubectl"))
	fmt.Printf("export KUBECONFIG=%s\n", quoted(running.Kubeconfig()))
	return nil
}

// load imports the image of an OCI layout into the real node of a control plane.
func load(ctx context.Context, dir, folder, reference string) error {
	image, err := layout.Index(folder)
	if err != nil {
		return fmt.Errorf("%w: make image makes the folder bin/image", err)
	}
	running, err := plane.Open(ctx, dir)
	if err != nil {
		return fmt.Errorf("%w: make cluster-up NODE=real starts one", err)
	}
	if err := running.Import(ctx, reference, image); err != nil {
		return err
	}
	say("the node has the image %s", reference)
	return nil
}

func down(ctx context.Context, dir string) error {
	_, err := os.Stat(dir)
	there := err == nil
	if err := plane.Down(ctx, dir); err != nil {
		return err
	}
	// Remove .local too if it is empty.
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

func quoted(word string) string {
	if !strings.ContainsAny(word, " \t\"'$`\\*?[#~&|;<>()") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
