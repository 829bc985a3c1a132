package rollout

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/bench/rollout/order"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// system is one way to roll out, on one control plane. Its methods return the time until the work
// was done.
type system interface {
	measured
	apply(ctx context.Context, releases []release) (time.Duration, error)
	// rollback restores the state before the last apply, which is given.
	rollback(ctx context.Context, releases []release) (time.Duration, error)
	// repair reverts a foreign change of a release.
	repair(ctx context.Context, releases []release) (time.Duration, error)
	// remove deletes the releases. For Penstock it ends when their objects are deleted, for the
	// other systems when the server has accepted the last delete.
	remove(ctx context.Context, releases []release) (time.Duration, error)
}

type measured interface {
	name() string
	// usage returns the resource use of the system's processes so far. rest resets their peak.
	usage() (usage, error)
	rest() error
	sends(plane.Request) bool
}

type peer struct {
	w       *casePlane
	title   string
	kind    string
	workers int
	// images is the registry of the charts, or nil.
	images *registry.Registry

	pid     int
	orders  io.Writer
	answers *bufio.Scanner
}

func startPeer(w *casePlane, program, title, kind string, workers int) *peer {
	w.t.Helper()
	cmd := exec.Command(program, kind, w.kubeconfig)
	orders, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = orders.Close() // without orders the program exits
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("%s: %v\n%s", title, err, complaints.String())
		}
	})
	return &peer{w: w, title: title, kind: kind, workers: workers, pid: cmd.Process.Pid, orders: orders, answers: bufio.NewScanner(answers)}
}

func (p *peer) name() string { return p.title }

func (p *peer) apply(_ context.Context, releases []release) (time.Duration, error) {
	return p.order(order.Apply, releases)
}

// rollback of a loop applies the old manifests again.
func (p *peer) rollback(_ context.Context, releases []release) (time.Duration, error) {
	if p.kind == "loop" {
		return p.order(order.Apply, releases)
	}
	return p.order(order.Rollback, releases)
}

func (p *peer) repair(_ context.Context, releases []release) (time.Duration, error) {
	return p.order(order.Apply, releases)
}

func (p *peer) remove(_ context.Context, releases []release) (time.Duration, error) {
	return p.order(order.Remove, releases)
}

func (p *peer) order(verb order.Verb, releases []release) (time.Duration, error) {
	o := order.Order{Verb: verb, Workers: p.workers}
	if p.images != nil {
		o.CAFile, o.AuthFile = filepath.Join(p.images.Dir, registry.CAFile), filepath.Join(p.images.Dir, registry.AuthFile)
	}
	dir, err := os.MkdirTemp(p.w.t.TempDir(), "order")
	if err != nil {
		return 0, err
	}
	for _, r := range releases {
		raw, err := json.Marshal(r.objects())
		if err != nil {
			return 0, err
		}
		file := filepath.Join(dir, r.name+".json")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			return 0, err
		}
		o.Releases = append(o.Releases, order.Release{Name: r.name, Namespace: r.namespace, File: file, Chart: r.chart})
	}
	if err := json.NewEncoder(p.orders).Encode(o); err != nil {
		return 0, fmt.Errorf("sending an order: %w", err)
	}
	if !p.answers.Scan() {
		return 0, fmt.Errorf("waiting for an answer: %w", errors.Join(p.answers.Err(), io.ErrUnexpectedEOF))
	}
	var answer order.Answer
	if err := json.Unmarshal(p.answers.Bytes(), &answer); err != nil {
		return 0, fmt.Errorf("reading an answer: %w", err)
	}
	if answer.Error != "" {
		return 0, errors.New(answer.Error)
	}
	return time.Duration(answer.Millis * float64(time.Millisecond)), nil
}

func (p *peer) usage() (usage, error)      { return usageOf(p.pid) }
func (p *peer) rest() error                { return forgetPeak(p.pid) }
func (p *peer) sends(r plane.Request) bool { return strings.HasPrefix(r.UserAgent, "peer/") }

// kubectl applies all manifests at once, with one process per step.
type kubectl struct {
	w       *casePlane
	program string
	spent   usage
}

func startKubectl(w *casePlane) *kubectl {
	tools, err := plane.Tools(w.t.Context(), os.Stderr)
	if err != nil {
		w.t.Fatal(err)
	}
	return &kubectl{w: w, program: filepath.Join(tools, "kubectl")}
}

func (k *kubectl) name() string { return "kubectl" }

func (k *kubectl) apply(ctx context.Context, releases []release) (time.Duration, error) {
	return k.run(ctx, releases, "apply", "--server-side", "--force-conflicts")
}

func (k *kubectl) rollback(ctx context.Context, releases []release) (time.Duration, error) {
	return k.apply(ctx, releases)
}

func (k *kubectl) repair(ctx context.Context, releases []release) (time.Duration, error) {
	return k.apply(ctx, releases)
}

func (k *kubectl) remove(ctx context.Context, releases []release) (time.Duration, error) {
	return k.run(ctx, releases, "delete", "--wait=false")
}

func (k *kubectl) run(ctx context.Context, releases []release, args ...string) (time.Duration, error) {
	var items []any
	for _, r := range releases {
		for _, o := range r.objects() {
			items = append(items, o)
		}
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		return 0, err
	}
	file := filepath.Join(k.w.t.TempDir(), "manifests.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return 0, err
	}
	args = append(args, "--kubeconfig", k.w.kubeconfig, "-f", file)
	cmd := exec.CommandContext(ctx, k.program, args...)
	// kubectl caches the served kinds. Each case starts with an empty cache, as after an upgrade of
	// the cluster.
	cmd.Env = append(os.Environ(), "KUBECACHEDIR="+k.w.cluster.Plane().Dir()+"/kubectl-cache")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	k.spent.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if rusage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		k.spent.peak = max(k.spent.peak, uint64(rusage.Maxrss)<<10)
	}
	return took, nil
}

func (k *kubectl) usage() (usage, error)      { return k.spent, nil }
func (k *kubectl) rest() error                { k.spent.peak = 0; return nil }
func (k *kubectl) sends(r plane.Request) bool { return strings.HasPrefix(r.UserAgent, "kubectl") }

func buildPeer(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "peer")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./peer").CombinedOutput(); err != nil {
		t.Fatalf("building the peers: %v\n%s", err, out)
	}
	return path
}
