//go:build integration

package e2e_test

import (
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// restore is the restore drill: the store returns to a snapshot, and the cluster is newer. Penstock
// restores the objects of the snapshot. It deletes nothing, because the store does not know the
// later objects.
func restore(w sharedPlane) {
	lost := penstock.DataDir(w.t)
	server := w.accepted(lost, "the store is empty")
	ns := w.namespace("drill")
	w.roll(revision("drill", 1).Phase("all", configMap(ns, "a", "x=1"), configMap(ns, "c", "x=1"), deployment(ns, "d", "example.com/d:v1")))
	server.Stop(w.t)
	snapshots := filepath.Join(w.t.TempDir(), "snapshots")
	server = w.program.Serve(w.t, w, lost, "--snapshot-dir="+snapshots)
	server.Await(w.t, "Took a snapshot of the store")
	files, err := filepath.Glob(filepath.Join(snapshots, "penstock-*.db"))
	if err != nil || len(files) != 1 {
		w.t.Fatalf("snapshots: %v, error %v", files, err)
	}
	w.roll(revision("drill", 2).Phase("all", configMap(ns, "a", "x=2"), configMap(ns, "b", "x=2"), deployment(ns, "d", "example.com/d:v1")))
	w.gone("configmap/c", "--namespace="+ns)
	objects := func() map[string]string {
		return map[string]string{
			"a": w.read(".metadata.uid", "configmap/a", "--namespace="+ns),
			"b": w.read(".metadata.uid} {.metadata.resourceVersion", "configmap/b", "--namespace="+ns),
			"d": w.read(".metadata.uid} {.metadata.generation", "deployment/d", "--namespace="+ns),
		}
	}
	before := objects()
	server.Stop(w.t)

	if out := w.program.Run(w.t, "", "restore", files[0], "--data-dir", lost); out.ExitCode == 0 || !strings.Contains(out.Stderr, "has a store") {
		w.t.Errorf("restoring over an existing store: %s", out)
	}
	restored := penstock.DataDir(w.t)
	out := w.program.Run(w.t, "", "restore", files[0], "--data-dir", restored)
	if out.ExitCode != 0 {
		w.t.Fatal(out)
	}
	w.says(out.Stderr, "with 1 revision, is in "+restored)

	mark := w.Audit().Mark()
	server = w.accepted(restored, "was restored from a snapshot, and the host cluster has seen it at etcd revision")
	w.absent("cer", "drill-2")
	w.value("1", ".data.x", "configmap/a", "--namespace="+ns)
	w.value("1", ".data.x", "configmap/c", "--namespace="+ns)
	w.condition("drill-1", "Ready", "True")
	if diff := cmp.Diff(before, objects()); diff != "" {
		w.t.Errorf("what was there is another (-before +after):\n%s", diff)
	}
	for _, r := range w.Audit().Since(mark, ours, plane.Writes()) {
		if r.Verb == "delete" || r.Verb == "deletecollection" {
			w.t.Errorf("a restored store deletes: %s", r)
		}
	}

	// The extension continues from there, and can use the number that the store lost.
	w.roll(revision("drill", 2).Phase("all", configMap(ns, "a", "x=3"), deployment(ns, "d", "example.com/d:v1")))
	w.gone("configmap/c", "--namespace="+ns)
	w.MustKubectl("delete", "cer", "--all", poll.TimeoutFlag)
	w.absent("configmap", "a", "--namespace="+ns)
	w.value("2", ".data.x", "configmap/b", "--namespace="+ns)
	// Stop releases the lease, so the next store need not wait for it to expire.
	server.Stop(w.t)
}
