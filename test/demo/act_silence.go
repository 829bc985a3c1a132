package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/text"
)

// silence counts Penstock's requests to the cluster while nothing happens.
func silence(ctx context.Context, d *demo) {
	d.settle(ctx)
	audit := d.plane.Audit()
	mark := get(audit.Mark(ctx))
	d.note("listening to the audit log of kube-apiserver for %.0f s", d.Silence.Seconds())
	d.listen(ctx)
	requests := get(audit.Since(ctx, mark, ofPenstock))
	heard := classify(requests)
	for _, offender := range heard.offenders {
		d.output(offender.String())
	}
	d.claim(len(heard.offenders) == 0,
		fmt.Sprintf("%s from Penstock in %.0f s: %s", text.Count(len(requests), "request"), d.Silence.Seconds(), heard),
		"only watches, its lease, and access reviews for requests", heard.String())
	d.ok("none of the %s was read, none was written", text.Count(len(d.wanted), "object"))
	d.checkStore(ctx)
}

// checkStore checks the store while it is served: nothing is damaged, and no garbage is left.
func (d *demo) checkStore(ctx context.Context) {
	out := d.show(ctx, "penstock fsck --data-dir "+quoted(filepath.Join(d.dir, "data")))
	d.claim(strings.HasPrefix(out, "the store is sound"), "the store is sound, and has no leftover records", "no problem", out)
}

// settle waits for the writes after the last change. Seconds after it, Penstock writes the progress
// of its store into a ConfigMap of the cluster. Ten seconds after the last deletion, it also
// collects unreferenced data.
func (d *demo) settle(ctx context.Context) {
	const quiet = 14 * time.Second
	notes := get(d.cluster.core.CoreV1().ConfigMaps("penstock-system").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=penstock-store"}))
	defer notes.Stop()
	for {
		select {
		case <-ctx.Done():
			panic(stop{context.Cause(ctx)})
		case _, open := <-notes.ResultChan():
			if !open {
				panic(stop{errors.New("the watch of the ConfigMap penstock-store ended")})
			}
		case <-time.After(quiet):
			return
		}
	}
}

// listen waits for the time of silence.
func (d *demo) listen(ctx context.Context) {
	over := time.NewTimer(d.Silence)
	defer over.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	left := int(d.Silence.Seconds())
	for {
		d.pass("%d s", left)
		select {
		case <-ctx.Done():
			panic(stop{context.Cause(ctx)})
		case <-over.C:
			d.clear()
			must(d.server.alive())
			return
		case <-tick.C:
			left--
		}
	}
}
