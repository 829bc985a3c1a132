package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// user is Penstock's user name in the cluster. No other client has it, so the audit log shows which
// requests are Penstock's.
const user = "penstock"

// ofPenstock matches requests of Penstock, and of the identities that it uses.
func ofPenstock(r plane.Request) bool {
	return r.User == user || strings.HasPrefix(r.User, "system:serviceaccount:penstock-system:") ||
		strings.HasPrefix(r.User, "system:serviceaccount:"+kindAccount+":")
}

type demo struct {
	settings
	*screen
	began time.Time

	// dir is the folder of the cluster, the store and the logs.
	dir   string
	plane *plane.Plane
	// edges are the control planes of the other clusters, with FLEET=1.
	edges    map[string]*plane.Plane
	server   *server
	shell    *shell
	registry *registry.Registry
	cluster  *cluster

	plan string
	// stopPools stops the simulated pools.
	stopPools context.CancelFunc

	number int
	// current is the revision whose content is in the cluster, and wanted are its objects.
	current string
	wanted  []manifest.Ref
	seen    map[manifest.ID]bool
}

func newDemo(settings settings, screen *screen) *demo {
	return &demo{settings: settings, screen: screen, began: time.Now(), plan: planName, seen: map[manifest.ID]bool{}}
}

// run runs all acts and always cleans up. It prints an error before it returns it.
func (d *demo) run(ctx context.Context) (err error) {
	var requests plane.Requests
	complete := false
	// Deferred, so that it runs also when an act panics.
	defer func() {
		interrupted := ctx.Err() != nil
		d.explain(err, interrupted)
		if d.Keep && d.server != nil && !interrupted {
			d.sayHowToReach(complete, len(requests))
			return
		}
		if closing := d.close(); closing != nil {
			d.wrong(closing.Error())
			err = errors.Join(err, closing)
		}
		if complete && err == nil {
			d.line("")
			d.ok("%s; nothing left running.", d.sum(len(requests)))
		}
	}()
	if err := d.begin(ctx); err != nil {
		return err
	}
	if err := d.perform(ctx); err != nil {
		return err
	}
	requests, err = d.plane.Audit().Since(ctx, 0, ofPenstock)
	complete = err == nil
	return err
}

// begin prints an overview, tries to render the manifests, and creates the folder of the demo.
func (d *demo) begin(ctx context.Context) error {
	what := "the manifests of " + d.From
	if d.Fleet {
		what = "one extension on " + text.Count(len(edges()), "cluster")
	}
	if d.To != "" {
		what += ", then of " + d.To
	}
	d.line(d.paint(bold, "Penstock demo: "+d.Name))
	d.detail(what)
	for _, from := range []string{d.From, d.To, d.Stuck} {
		if from == "" {
			continue
		}
		out, err := exec.CommandContext(ctx, d.Penstock, "render", from, "--extension="+d.Name, "--revision=1").Output()
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			return &failure{claim: from + " can be rendered", want: "manifests", got: strings.TrimSpace(string(exit.Stderr))}
		}
		if err != nil || len(out) == 0 {
			return fmt.Errorf("running %s render: %w", d.Penstock, err)
		}
	}
	dir, err := os.MkdirTemp("", "penstock-demo-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	// The folder is searched in the process table, so it needs a unique spelling.
	if d.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return fmt.Errorf("resolving %s: %w", dir, err)
	}
	return nil
}

func (d *demo) perform(ctx context.Context) error {
	all := d.acts()
	if d.Acts > 0 {
		all = all[:d.Acts]
	}
	for i, act := range all {
		d.title(fmt.Sprintf("act %d of %d: %s", i+1, len(all), act.title))
		d.why(act.why)
		if reason := act.skip(d); reason != "" {
			d.note("skipped: %s", reason)
			continue
		}
		if err := d.play(ctx, act); err != nil {
			return err
		}
	}
	return nil
}

// play runs one act, and returns the reason if it stopped early.
func (d *demo) play(ctx context.Context, act act) (err error) {
	defer func() {
		switch end := recover().(type) {
		case nil:
		case stop:
			err = end.error
		default:
			panic(end)
		}
	}()
	act.play(ctx, d)
	return nil
}

func (d *demo) explain(err error, interrupted bool) {
	if err == nil {
		return
	}
	d.line("")
	if interrupted {
		d.note("interrupted; stopping everything")
		return
	}
	if wrong := new(failure); errors.As(err, &wrong) {
		d.wrong(wrong.claim)
		d.detail("expected  " + wrong.want)
		d.detail("found     " + wrong.got)
	} else {
		d.wrong(err.Error())
	}
	if d.server == nil {
		return
	}
	d.line("")
	d.detail("the end of penstock's log:")
	d.line(d.server.end(20))
	if !d.Keep {
		d.line("")
		d.note("KEEP=1 leaves everything running for a look")
	}
}

func (d *demo) close() error {
	var errs []error
	if d.stopPools != nil {
		d.stopPools()
	}
	if d.server != nil {
		errs = append(errs, d.server.stop())
	}
	if d.registry != nil {
		errs = append(errs, d.registry.Close())
	}
	if d.plane != nil {
		errs = append(errs, d.plane.Stop())
	}
	for _, edge := range d.edges {
		errs = append(errs, edge.Stop())
	}
	if d.dir == "" {
		return errors.Join(errs...)
	}
	left, err := leftovers(d.dir)
	if len(left) > 0 {
		err = &failure{claim: "nothing is left running", want: "no process of this demo", got: fmt.Sprint(left)}
	}
	return errors.Join(append(errs, err, os.RemoveAll(d.dir))...)
}

// sum summarizes the run in one line.
func (d *demo) sum(requests int) string {
	if d.Fleet {
		return fmt.Sprintf("%s of %s to %s; %s to the host in all, %.0f s", text.Count(d.number, "rollout"), d.Name, text.Count(len(edges()), "cluster"),
			text.Count(requests, "request"), time.Since(d.began).Seconds())
	}
	return fmt.Sprintf("%s of %s, with %d different objects; %s to the host in all, %.0f s", text.Count(d.number, "revision"), d.Name,
		len(d.seen), text.Count(requests, "request"), time.Since(d.began).Seconds())
}

// sayHowToReach prints the addresses of everything that keeps running.
func (d *demo) sayHowToReach(complete bool, requests int) {
	d.line("")
	if complete {
		d.ok("%s.", d.sum(requests))
	}
	d.note("the cluster and Penstock go on running (KEEP=1). To reach them:")
	d.line("    export KUBECONFIG=" + quoted(d.plane.Kubeconfig()) + " PATH=" + quoted(filepath.Join(d.dir, "bin")) + ":$PATH")
	d.line("    tail -f " + quoted(d.server.log))
	d.note("to stop them, in this checkout:")
	if d.server.running != nil {
		d.line(fmt.Sprintf("    kill %d", d.server.pid()))
	}
	for _, edge := range d.edges {
		d.line("    go run ./hack/cluster -dir " + quoted(edge.Dir()) + " down")
	}
	d.line("    go run ./hack/cluster -dir " + quoted(d.plane.Dir()) + " down && rm -r " + quoted(d.dir))
	d.note("to look at it in a browser:")
	d.line("    KUBECONFIG=" + quoted(d.plane.Kubeconfig()) + " " + quoted(filepath.Join(d.dir, "bin", "kubectl-penstock")) + " console")
}
