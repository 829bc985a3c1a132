//go:build integration

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// storeLost: only an archive of the store is left. The cluster keeps the rolled-out objects.
func storeLost(w sharedPlane) {
	server := w.program.Serve(w.t, w, w.dataDir)
	ns := w.namespace("lost")
	first := revision("lost", 1).Phase("all", configMap(ns, "a", "x=1"), secret(ns, "s", "hunter2"), deployment(ns, "d", "example.com/d:v1"))
	second := revision("lost", 2).Phase("all", configMap(ns, "a", "x=2"), secret(ns, "s", "hunter2"), deployment(ns, "d", "example.com/d:v1"))
	third := revision("lost", 3).Phase("all", configMap(ns, "a", "x=3"), configMap(ns, "b", "x=3"), secret(ns, "s", "hunter2"))
	w.roll(first)
	w.roll(second)
	w.value("Archived", ".spec.lifecycleState", "cer/lost-1")
	w.MustKubectl("delete", "cer", "lost-1", poll.TimeoutFlag)
	w.MustKubectlInput(third.With("lifecycleState", "Paused").String(), "create", "-f", "-")
	// givenup-1 is archived. The object of moved-1 will be missing at the import.
	w.roll(revision("givenup", 1).Phase("all", configMap(ns, "given-up", "x=1")))
	w.MustKubectl("patch", "cer", "givenup-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Archived"}}`)
	w.acknowledge("givenup-1", "nothing would be left of the extension")
	w.gone("configmap/given-up", "--namespace="+ns)
	w.roll(revision("moved", 1).Phase("all", configMap(ns, "moved", "x=1")))

	archive := w.exported("--extension=lost", "--extension=givenup,moved")
	history := w.MustKubectl("get", "revisionhistory", "lost")
	w.says(history, "Deleted", "Active", "Paused")
	objects := func() map[string]string {
		return map[string]string{
			"configmap":  w.read(".metadata.uid} {.metadata.resourceVersion", "configmap/a", "--namespace="+ns),
			"deployment": w.read(".metadata.uid} {.metadata.generation", "deployment/d", "--namespace="+ns),
			// The new store has another key, so the digest in the Secret's annotation changes.
			"secret": w.read(".metadata.uid} {.data", "secret/s", "--namespace="+ns),
		}
	}
	before := objects()

	server.Stop(w.t)
	w.MustKubectl("delete", "configmap/moved", "--namespace="+ns)
	empty := penstock.DataDir(w.t)
	server = w.accepted(empty, "the store is empty")

	mark := w.Audit().Mark()
	w.says(w.imported(archive, "--check").Stderr, "3 extensions can be imported; nothing was written")
	w.absent("cer", "lost-2")
	w.says(w.imported(archive).Stderr, "lost: 2 revisions, 3 rows of history", "3 extensions imported")
	w.succeeded("lost-2")
	w.succeeded("moved-1")
	w.condition("lost-2", "Ready", "True")
	w.condition("givenup-1", "Progressing", "False")
	w.condition("lost-3", "Progressing", "False", "paused")
	if diff := cmp.Diff(before, objects()); diff != "" {
		w.t.Errorf("the restored objects differ (-before +after):\n%s", diff)
	}
	w.absent("configmap", "b", "--namespace="+ns)
	w.absent("configmap", "given-up", "--namespace="+ns)
	written := map[string]bool{}
	for _, r := range w.Audit().Since(mark, ours, plane.Writes(), func(r plane.Request) bool { return !strings.Contains(r.URI, "dryRun=") }) {
		switch {
		case r.Verb == "delete" || r.Verb == "deletecollection":
			w.t.Errorf("an import deletes: %s", r)
		case r.Resource != "events":
			written[r.Resource+" "+r.Name] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"configmaps a": true, "secrets s": true, "deployments d": true, "configmaps moved": true}, written); diff != "" {
		w.t.Errorf("changed objects (-want +got):\n%s", diff)
	}

	// The history is the same as before.
	if diff := cmp.Diff(w.rows(history), w.rows(w.MustKubectl("get", "revisionhistory", "lost"))); diff != "" {
		w.t.Errorf("history (-before +after):\n%s", diff)
	}
	// Numbers of existing and of deleted revisions cannot be used again.
	for _, taken := range []draft{third, first} {
		if out := w.KubectlInput(taken.String(), "create", "-f", "-"); out.ExitCode == 0 {
			w.t.Errorf("%s was created again", taken.Name)
		}
	}
	w.says(w.imported(archive).Stderr, "lost: was imported from this archive before", "0 extensions imported")
	other := w.exported("--extension=lost")
	out := w.program.Run(w.t, "", "import", "--kubeconfig", w.Kubeconfig(), other)
	if out.ExitCode == 0 || !strings.Contains(out.Stderr, "nothing imported: lost:") || !strings.Contains(out.Stderr, "only extensions that it never had") {
		w.t.Errorf("importing an extension that exists: %s", out)
	}

	// The extension continues from there.
	digest := w.read(".summary.removedDigest", "revisiondiff", "lost-2..lost-3")
	w.says(digest, "1-")
	w.MustKubectl("patch", "cer", "lost-3", "--type=merge", "-p",
		`{"spec":{"lifecycleState":"Active"},"metadata":{"annotations":{"penstock.dev/acknowledge-deletion":"`+digest+`"}}}`)
	w.succeeded("lost-3")
	w.value("Archived", ".spec.lifecycleState", "cer/lost-2")
	w.MustKubectl("get", "configmap", "b", "--namespace="+ns)
	w.gone("deployment/d", "--namespace="+ns) // Penstock rolled it out, so Penstock deletes it
	w.MustKubectl("delete", "cer", "--all", poll.TimeoutFlag)
	w.absent("configmap", "a", "--namespace="+ns)
	// Stop releases the lease, so the next store need not wait for it to expire.
	server.Stop(w.t)
}

// accepted serves a data directory that the cluster does not know, with --accept-identity. The
// refusal before must contain the text.
func (w sharedPlane) accepted(dataDir, says string) *penstock.Server {
	w.t.Helper()
	refused := w.program.Launch(w.t, w, dataDir)
	refused.Await(w.t, "--accept-identity=")
	w.says(refused.Log(), says)
	_, token, _ := strings.Cut(refused.Log(), "--accept-identity=")
	token = token[:strings.IndexFunc(token, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) })]
	refused.Await(w.t, "The host cluster serves our API")
	refused.Stop(w.t)
	server := w.program.Serve(w.t, w, dataDir, "--accept-identity="+token)
	w.t.Cleanup(func() {
		if w.t.Failed() || strings.Contains(server.Log(), "panic") {
			w.t.Errorf("errors of the new server:\n%s", server.Complaints())
		}
	})
	return server
}

// exported exports twice, compares the files, and returns a path.
func (w sharedPlane) exported(flags ...string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	var contents []string
	path := ""
	for _, name := range []string{"one.tar.zst", "two.tar.zst"} {
		path = filepath.Join(dir, name)
		out := w.program.Run(w.t, "", append([]string{"export", "--kubeconfig", w.Kubeconfig(), "-o", path}, flags...)...)
		if out.ExitCode != 0 {
			w.t.Fatal(out)
		}
		w.says(out.Stderr, "CAUTION: the archive has", "in clear text")
		data, err := os.ReadFile(path)
		if err != nil {
			w.t.Fatal(err)
		}
		contents = append(contents, string(data))
	}
	if contents[0] != contents[1] {
		w.t.Error("two backups of the same store differ")
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		w.t.Errorf("the archive has the mode %s, error %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		w.t.Errorf("the folder has %v, error %v", left, err)
	}
	return path
}

func (w sharedPlane) imported(path string, flags ...string) penstock.Output {
	w.t.Helper()
	out := w.program.Run(w.t, "", append([]string{"import", "--kubeconfig", w.Kubeconfig(), path}, flags...)...)
	if out.ExitCode != 0 {
		w.t.Fatal(out)
	}
	return out
}

// rows returns the cells of a table, without ages.
func (w sharedPlane) rows(table string) []string {
	w.t.Helper()
	encoded, err := json.Marshal(strings.Fields(table))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Split(string(encoded), ",")
}

// exportRights: a user who cannot read a Secret gets no archive, and no part of an archive.
func exportRights(w sharedPlane) {
	ns := w.namespace("export-rights")
	w.roll(revision("export-rights", 1).Phase("all", secret(ns, "s", "hunter2"), configMap(ns, "a", "x=1")))
	user := w.User("exporter", "exporters")
	w.MustKubectl("create", "clusterrole", "exporter", "--verb=get,list",
		"--resource=clusterextensionrevisions.olm.operatorframework.io,clusterextensionrevisions.olm.operatorframework.io/manifests,revisionhistories.olm.operatorframework.io")
	w.MustKubectl("create", "clusterrolebinding", "exporter", "--clusterrole=exporter", "--group=exporters")
	path := filepath.Join(w.t.TempDir(), "archive")
	export := func() penstock.Output {
		return w.program.Run(w.t, "", "export", "--kubeconfig", user.Kubeconfig(), "--extension=export-rights", "-o", path)
	}
	out := export()
	if out.ExitCode == 0 || !strings.Contains(out.Stderr, "nothing exported") || !strings.Contains(out.Stderr, "export-rights/s") {
		w.t.Errorf("without the right to the Secret: %s", out)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		w.t.Errorf("an archive was written (error %v)", err)
	}
	w.MustKubectl("create", "role", "exporter", "--verb=get", "--resource=secrets", "--namespace="+ns)
	w.MustKubectl("create", "rolebinding", "exporter", "--role=exporter", "--group=exporters", "--namespace="+ns)
	// kube-apiserver learns of RBAC changes from a watch, with a delay.
	w.eventually(func() (string, string) {
		out := export()
		return strconv.Itoa(out.ExitCode), out.Stderr
	}, func(code string) bool { return code == "0" })
	out = w.program.Run(w.t, "", "import", "--kubeconfig", user.Kubeconfig(), path)
	if out.ExitCode == 0 || !strings.Contains(out.Stderr, "revisionhistories/import") {
		w.t.Errorf("importing without the right: %s", out)
	}
}
