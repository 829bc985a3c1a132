// Command demo shows Penstock on a real Kubernetes control plane, in acts with checked claims. If a
// claim does not hold, the demo exits with a non-zero code. `make demo` runs it. These variables
// change it:
//
//	FROM, TO   directories of plain manifests to install and to upgrade to
//	NAME       the name of the extension, with FROM
//	FLEET      1 runs the acts about one extension on many clusters instead
//	SILENCE    the seconds of silence to listen to at the end (60)
//	KEEP       1 leaves the cluster and Penstock running
//	PENSTOCK   the program (bin/penstock)
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// With SIGPIPE, the demo also cleans up when its reader exits, as in `make demo | head`.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	// A second Ctrl-C ends the demo at once.
	context.AfterFunc(ctx, stop)

	settings, err := readSettings(os.Getenv)
	if err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(2)
	}
	if err := newDemo(settings, newScreen(os.Stdout, os.Getenv)).run(ctx); err != nil {
		os.Exit(1)
	}
}
