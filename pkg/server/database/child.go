package database

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/server/memory"
	"github.com/penstock-project/penstock/pkg/server/storeguard"
)

const (
	// childArgument makes this program run the embedded etcd for its parent process. It has the
	// form of a flag, so that a program that does not know it exits with an error.
	childArgument = "--embedded-etcd"
	// longOutage is the length of an outage of the embedded etcd after which the caller starts
	// over. After a longer outage, etcd clients wait too long between their retries.
	longOutage = 10 * time.Second
	outageLook = 2 * time.Second
	// hangPatience is the time that an embedded etcd may fail to answer while this process stops.
	// hangLook is the interval of the checks. Together with the end of etcd, this takes a third of
	// the 30 s that a Pod has.
	hangPatience = 5 * time.Second
	hangLook     = 500 * time.Millisecond
	// livenessKey is a key that Penstock never writes.
	livenessKey = "health"
)

// childCommand runs the embedded etcd with the program that this process runs.
func childCommand() ([]string, error) {
	if runtime.GOOS == "linux" {
		// This path works even if the program's file was replaced.
		return []string{"/proc/self/exe", childArgument}, nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, to run the embedded etcd with it: %w", err)
	}
	return []string{program, childArgument}, nil
}

// IsStoreProcess reports whether these arguments start the embedded etcd of another process. main
// must then call RunStoreProcess and nothing else.
func IsStoreProcess(args []string) bool { return len(args) == 2 && args[1] == childArgument }

// RunStoreProcess runs the embedded etcd for the parent process at the other end of standard input
// and output. It returns the exit code.
//
// It ignores signals to the process group: the parent still has to write, and ends this process
// afterwards.
func RunStoreProcess() int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return etcd.ServeChild(os.Stdin, os.Stdout, memory.New().GiveBack)
}

// Down returns the reason why the embedded etcd does not run, nil while it runs. It is nil for an
// external etcd (see package storehealth).
func (d *Database) Down() error {
	if d.Embedded == nil {
		return nil
	}
	_, reason := d.Embedded.Down()
	if reason == nil {
		return nil
	}
	return &storeguard.DownError{Reason: reason}
}

// AfterOutage calls again when the embedded etcd runs again after a long outage, and returns. The
// caller must start over: clients of etcd retry ever more rarely, up to every two minutes, and
// Penstock does not control all of them.
func (d *Database) AfterOutage(ctx context.Context, again func()) {
	if d.Embedded == nil {
		return
	}
	ticker := time.NewTicker(outageLook)
	defer ticker.Stop()
	var gone time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch since, reason := d.Embedded.Down(); {
		case reason != nil:
			gone = since
		case !gone.IsZero() && since.Sub(gone) > longOutage:
			klog.FromContext(ctx).Info("The embedded etcd is back; starting over", "after", since.Sub(gone).Round(time.Second))
			again()
			return
		default:
			gone = time.Time{}
		}
	}
}

// EndHung stops the embedded etcd if it does not answer for hangPatience, and reports whether it
// did. It asks until ctx ends. A stopping process calls it, because pending requests would wait for
// etcd longer than a Pod has to end.
func (d *Database) EndHung(ctx context.Context) bool {
	if d.Embedded == nil {
		return false
	}
	for deadline := time.Now().Add(hangPatience); ; {
		asked, cancel := context.WithDeadline(ctx, deadline)
		// This read needs the agreement of the member's raft log. The member could answer a
		// serializable read from memory while its disk hangs.
		_, err := d.Client.Get(asked, livenessKey, clientv3.WithCountOnly())
		cancel()
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			deadline = time.Now().Add(hangPatience)
		case !time.Now().Before(deadline):
			klog.FromContext(ctx).Info("The embedded etcd does not answer; stopping without it", "asked", hangPatience, "reason", err.Error())
			d.Embedded.Close()
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(hangLook):
		}
	}
}
