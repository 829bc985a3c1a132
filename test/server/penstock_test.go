//go:build integration

// Package server_test runs Penstock's server against a real kube-apiserver, in
// this process and as a program.
package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/registry/encoding"
	"github.com/penstock-project/penstock/pkg/server"
	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/port"
)

// TestMain prepares the process as the program does before it serves.
func TestMain(m *testing.M) {
	if database.IsStoreProcess(os.Args) {
		os.Exit(database.RunStoreProcess())
	}
	encoding.StreamTables()
	status := m.Run()
	if err := clusters.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// user has a kubeconfig file: a *cluster.Cluster, or one of its users.
type user interface{ Kubeconfig() string }

// process is a server running in this process.
type process struct {
	Port     int
	CABundle []byte
	// serving has the current address and credentials of the server. After an outage of its store,
	// the server starts again at the same port, with new credentials.
	serving atomic.Pointer[server.Serving]
	stop    context.CancelFunc
	// done is closed when Run has returned err.
	done chan struct{}
	err  error
}

// dataDir returns a directory whose path is short enough for a unix socket.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "penstock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "data")
}

// newOptions returns the options of `penstock serve --register`, with a free port.
func newOptions(t *testing.T, host user, dir string, more ...string) *server.Options {
	t.Helper()
	options, err := server.NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	for _, set := range options.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	own, err := port.Free() // the test's next program may use the same port
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"--kubeconfig", host.Kubeconfig(), "--data-dir=" + dir,
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(own), "--register",
	}, more...)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return options
}

// start runs a server and returns when it is ready and registered. It is
// stopped when the test ends.
func start(t *testing.T, options *server.Options) *process {
	t.Helper()
	p := &process{done: make(chan struct{})}
	ready := make(chan struct{})
	first := sync.OnceFunc(func() { close(ready) })
	options.Ready = func(serving server.Serving) {
		p.serving.Store(&serving)
		first()
	}
	p.begin(t, options)
	select {
	case <-ready:
		serving := p.serving.Load()
		p.Port, p.CABundle = serving.Port, serving.CABundle
	case <-p.done:
		t.Fatalf("the server ended: %v", p.err)
	case <-time.After(poll.Patience):
		t.Fatal("the server did not become ready")
	}
	return p
}

// begin runs a server without waiting until it is ready.
func begin(t *testing.T, options *server.Options) *process {
	t.Helper()
	p := &process{done: make(chan struct{})}
	p.begin(t, options)
	return p
}

func (p *process) begin(t *testing.T, options *server.Options) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() {
		defer close(p.done)
		p.err = server.Run(ctx, options)
	}()
	t.Cleanup(func() { p.halt(t) })
}

// Loopback returns a client configuration with all rights.
func (p *process) Loopback() *rest.Config { return p.serving.Load().Loopback }

// halt stops the server as a signal does. It returns how long that took.
func (p *process) halt(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	p.stop()
	select {
	case <-p.done:
		return time.Since(begin)
	case <-time.After(poll.Patience):
		t.Fatal("the server did not stop")
		return 0
	}
}

// eventually repeats a check until it passes.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var last error
	// Cleanups call this too, after the test's context has ended.
	err := poll.Until(context.Background(), func(context.Context) bool {
		last = check()
		return last == nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

// missingError names a text that an output lacks.
type missingError struct{ text string }

func (e missingError) Error() string { return "missing in the output: " + e.text }

// missing returns nil if an output contains all texts.
func missing(output string, wanted []string) error {
	for _, want := range wanted {
		if !strings.Contains(output, want) {
			return missingError{want}
		}
	}
	return nil
}

// revision returns a small revision: a ConfigMap in each of two phases.
func revision(extension string, number int) string {
	return fmt.Sprintf(`apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata:
  name: %[1]s-%[2]d
spec:
  revision: %[2]d
  phases:
  - name: configuration
    objects:
    - object: {apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: default}, data: {number: "%[2]d"}}
  - name: deploy
    objects:
    - object: {apiVersion: v1, kind: ConfigMap, metadata: {name: second, namespace: default}, data: {number: "%[2]d"}}
`, extension, number)
}
