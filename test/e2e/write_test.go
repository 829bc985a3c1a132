//go:build integration

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// small returns a revision of two phases with a Secret, in the namespace default.
func small(extension string, number int) draft {
	version := fmt.Sprintf("number=%d", number)
	return revision(extension, number).
		Phase("configuration", configMap("default", extension+"-first", version), secret("default", extension+"-secret", "hunter2")).
		Phase("deploy", configMap("default", extension+"-second", version))
}

// create: a user renders plain manifests and creates the revision.
func create(w sharedPlane) {
	dir := w.t.TempDir()
	for _, o := range []object{manifest("v1", "Namespace", "", "create"), configMap("create", "settings", "colour=red")} {
		file := filepath.Join(dir, strings.ToLower(o["kind"].(string))+".json")
		if err := os.WriteFile(file, []byte(o.String()), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	render := func(revision string) string {
		w.t.Helper()
		return w.program.MustRun(w.t, "", "render", dir, "--extension=create", "--revision="+revision, "--kubeconfig="+w.Kubeconfig())
	}
	rendered := render("next")
	w.says(w.MustKubectlInput(rendered, "create", "-f", "-"), "create-1 created")
	w.succeeded("create-1")
	w.says(w.read(".data.colour", "configmap", "settings", "--namespace=create"), "red")

	out := w.KubectlInput(rendered, "create", "-f", "-")
	w.says(out.Stderr, `clusterextensionrevisions.olm.operatorframework.io "create-1" already exists`)
	w.MustKubectl("delete", "cer", "create-1", poll.TimeoutFlag)
	w.absent("namespace", "create")
	// A number is never used twice.
	w.says(render("next"), "name: create-2")
}

// version returns the resourceVersion, which each effective write changes.
func (w sharedPlane) version(revision string) string {
	w.t.Helper()
	return w.read(".metadata.resourceVersion", "cer", revision)
}

// unchanged fails if do changes a revision.
func (w sharedPlane) unchanged(revision string, do func()) {
	w.t.Helper()
	before := w.version(revision)
	do()
	if after := w.version(revision); after != before {
		w.t.Errorf("resourceVersion %s became %s", before, after)
	}
}

func serverSideApply(w sharedPlane) {
	d := small("serverside", 1).String()
	w.MustKubectlInput(d, "apply", "--server-side", "-f", "-")
	w.succeeded("serverside-1")
	w.unchanged("serverside-1", func() { w.MustKubectlInput(d, "apply", "--server-side", "-f", "-") })

	// A second tool with the same content causes no conflict.
	w.says(w.MustKubectlInput(d, "apply", "--server-side", "--field-manager=flux", "-f", "-"), "serverside-applied")
	w.unchanged("serverside-1", func() {
		w.MustKubectlInput(d, "apply", "--server-side", "--field-manager=flux", "-f", "-")
		w.MustKubectlInput(d, "apply", "--server-side", "-f", "-")
	})
	w.refused(small("serverside", 1).With("progressDeadlineMinutes", 3).Phase("more").String(),
		[]string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, "spec.phases[more]", "the phase was added")

	// A revision can be read and applied again.
	read := w.MustKubectl("get", "cer", "serverside-1", "-o", "yaml")
	w.unchanged("serverside-1", func() { w.MustKubectlInput(read, "replace", "-f", "-") })
	w.MustKubectlInput(read, "apply", "--server-side", "--force-conflicts", "-f", "-")
}

func clientSideApply(w sharedPlane) {
	d := small("clientside", 1).String()
	w.says(w.MustKubectlInput(d, "apply", "-f", "-"), "clientside-1 created")
	w.succeeded("clientside-1")
	last := w.read(`.metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`, "cer", "clientside-1")
	if last == "" || strings.Contains(last, "hunter2") || strings.Contains(last, "number") {
		w.t.Errorf("the last applied configuration should have no manifests: %s", last)
	}
	w.unchanged("clientside-1", func() { w.MustKubectlInput(d, "apply", "-f", "-") })

	// kubectl's last-applied annotation still decides which fields are removed.
	w.MustKubectlInput(small("clientside", 1).With("progressDeadlineMinutes", 5).String(), "apply", "-f", "-")
	w.says(w.read(".spec.progressDeadlineMinutes", "cer", "clientside-1"), "5")
	w.MustKubectlInput(d, "apply", "-f", "-")
	if minutes := w.read(".spec.progressDeadlineMinutes", "cer", "clientside-1"); minutes != "" {
		w.t.Errorf("the deadline is still %s", minutes)
	}
}

func diff(w sharedPlane) {
	d := small("diff", 1)
	w.roll(d)
	for _, flag := range []string{"--server-side=false", "--server-side=true"} {
		if out := w.KubectlInput(d.String(), "diff", flag, "-f", "-"); out.ExitCode != 0 || out.Stdout != "" {
			w.t.Errorf("the same manifests differ: %s", out)
		}
		out := w.KubectlInput(d.With("progressDeadlineMinutes", 5).String(), "diff", flag, "-f", "-")
		if out.ExitCode != 1 {
			w.t.Errorf("want a difference for another deadline: %s", out)
		}
		w.says(out.Stdout, "+  progressDeadlineMinutes: 5")
	}
	out := w.KubectlInput(small("diff", 2).String(), "diff", "-f", "-")
	if out.ExitCode != 1 {
		w.t.Errorf("want a difference for a revision that does not exist: %s", out)
	}
	w.says(out.Stdout, "+  name: diff-2", "+    - apiVersion: v1\n+      digest: sha256:")
	other := d.Phase("more").String()
	out = w.KubectlInput(other, "diff", "-f", "-")
	if out.ExitCode < 2 {
		w.t.Errorf("want an error for other content, which cannot be applied: %s", out)
	}
	w.says(out.Stderr, "spec.phases[more]")
}

func edit(w sharedPlane) {
	w.roll(small("edit", 1))
	editor := filepath.Join(w.t.TempDir(), "editor")
	script := "#!/bin/sh\nsed -i 's/lifecycleState: Active/lifecycleState: Paused/' \"$1\"\n"
	if err := os.WriteFile(editor, []byte(script), 0o700); err != nil { //nolint:gosec // an editor must be executable
		w.t.Fatal(err)
	}
	w.says(w.kubectlWith("KUBE_EDITOR="+editor, "edit", "cer", "edit-1"), "edit-1 edited")
	w.says(w.read(".spec.lifecycleState", "cer", "edit-1"), "Paused")
	w.condition("edit-1", "Progressing", "False", "paused") // the last write by Penstock itself
	w.unchanged("edit-1", func() {
		w.says(w.kubectlWith("KUBE_EDITOR=true", "edit", "cer", "edit-1"), "no changes made")
	})
}

func immutable(w sharedPlane) {
	d := small("immutable", 1)
	w.roll(d)
	other := strings.ReplaceAll(d.String(), `"number": "1"`, `"number": "2"`)
	const sentence = "a revision's content never changes"
	for _, args := range [][]string{
		{"apply", "-f", "-"}, {"replace", "-f", "-"}, {"apply", "--server-side", "--force-conflicts", "-f", "-"},
		{"apply", "--dry-run=server", "-f", "-"},
	} {
		w.refused(other, args, "spec.phases[configuration]", sentence, "objects[0] (v1 ConfigMap default/immutable-first) has another manifest")
	}
	// This also holds for a Secret. The error does not show its content.
	out := w.KubectlInput(strings.ReplaceAll(d.String(), "hunter2", "hunter3"), "replace", "-f", "-")
	w.says(out.Stderr, "spec.phases[configuration]", "immutable-secret) has another manifest")
	if strings.Contains(out.Stderr, "hunter") {
		w.t.Errorf("the refusal has the content of a Secret: %s", out)
	}
	for field, patch := range map[string]string{
		"spec.phases[x]":                      `[{"op":"replace","path":"/spec/phases/0/name","value":"x"}]`,
		"spec.phases[configuration]":          `[{"op":"remove","path":"/spec/phases/0"}]`,
		"spec.phases[deploy]":                 `[{"op":"remove","path":"/spec/phases/1/objects/0"}]`,
		"spec.revision":                       `[{"op":"replace","path":"/spec/revision","value":2}]`,
		"spec.collisionProtection":            `[{"op":"replace","path":"/spec/collisionProtection","value":"None"}]`,
		"spec.previous":                       `[{"op":"add","path":"/spec/previous","value":[{"name":"immutable-0"}]}]`,
		"spec.progressionProbes":              `[{"op":"add","path":"/spec/progressionProbes","value":[{"selector":{"groupKind":{"group":"","kind":"ConfigMap"}},"assertions":[{"cel":{"expression":"true"}}]}]}]`,
		`metadata.labels[penstock.dev/chain]`: `[{"op":"replace","path":"/metadata/labels/penstock.dev~1chain","value":"other"}]`,
	} {
		w.refused("", []string{"patch", "cer", "immutable-1", "--type=json", "-p", patch}, "is invalid", field)
	}
	if got := w.read(".data.number", "configmap", "immutable-first", "--namespace=default"); got != "1" {
		w.t.Errorf("the object has number %s", got)
	}
}

func lifecycleChanges(w sharedPlane) {
	w.roll(small("lifecycle", 1))
	w.MustKubectl("patch", "cer", "lifecycle-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Paused"}}`)
	w.MustKubectl("patch", "cer", "lifecycle-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Active","progressDeadlineMinutes":10}}`)
	w.MustKubectl("patch", "cer", "lifecycle-1", "--type=merge", "-p", `{"spec":{"teardownPolicy":"Orphan"}}`)
	w.MustKubectl("patch", "cer", "lifecycle-1", "--type=merge", "-p", `{"spec":{"teardownPolicy":"Delete","lifecycleState":"Archived"}}`)
	w.acknowledge("lifecycle-1", "nothing would be left of the extension")
	w.gone("configmap/lifecycle-first", "configmap/lifecycle-second", "secret/lifecycle-secret", "--namespace=default")
	for _, state := range []string{"Active", "Paused"} {
		w.refused("", []string{"patch", "cer", "lifecycle-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"` + state + `"}}`},
			"spec.lifecycleState", "Archived is final")
	}
	w.condition("lifecycle-1", "Progressing", "False")
	w.says(w.MustKubectl("get", "cer", "lifecycle-1", "--no-headers"), "Archived", "False")
}

func numbers(w sharedPlane) {
	create := func(number int) { w.MustKubectlInput(small("numbers", number).String(), "create", "-f", "-") }
	refused := func(number int) {
		w.t.Helper()
		w.refused(small("numbers", number).String(), []string{"create", "-f", "-"},
			"spec.revision", "numbers of an extension only grow", "the next one is 4")
	}
	create(1)
	w.succeeded("numbers-1")
	create(3)
	refused(2)
	if previous := w.read(".spec.previous[*].name", "cer", "numbers-3"); previous != "numbers-1" {
		w.t.Errorf("numbers-3 follows %q", previous)
	}
	w.succeeded("numbers-3")
	w.value("Archived", ".spec.lifecycleState", "cer/numbers-1")
	w.MustKubectl("delete", "cer", "numbers-1", "numbers-3", poll.TimeoutFlag)
	for _, number := range []int{1, 2, 3} {
		refused(number)
	}
	create(4)
}

// dryRun: a dry-run answers as the write would and stores nothing. The store's revision, which
// every write increments, stays the same.
func dryRun(w sharedPlane) {
	w.roll(small("dryrun", 1))
	next := small("dryrun", 2).String()
	writes := [][]string{
		{"create", "--dry-run=server", "-o", "yaml", "-f", "-"},
		{"apply", "--server-side", "--dry-run=server", "-o", "yaml", "-f", "-"},
		{"apply", "--dry-run=server", "-o", "yaml", "-f", "-"},
	}
	attempt := func() bool {
		before := w.storeRevision()
		for _, args := range writes {
			out := w.MustKubectlInput(next, args...)
			w.says(out, "digest: sha256:", "name: dryrun-1", "penstock.dev/chain: dryrun")
			if strings.Contains(out, "hunter2") {
				w.t.Errorf("the answer has manifests:\n%s", out)
			}
		}
		w.MustKubectl("delete", "cer", "dryrun-1", "--dry-run=server")
		w.MustKubectl("patch", "cer", "dryrun-1", "--dry-run=server", "--type=merge", "-p", `{"spec":{"lifecycleState":"Archived"}}`)
		return w.storeRevision() == before
	}
	// Other writers may still write to the store. One quiet attempt is enough, because a dry-run
	// that stores something would do so each time.
	tries := 3
	for tries > 0 && !attempt() {
		tries--
	}
	if tries == 0 {
		w.t.Error("dry-runs wrote to the store")
	}
	w.absent("cer", "dryrun-2")
	w.says(w.MustKubectl("get", "cer", "dryrun-1", "--no-headers"), "Active")
	// The dry-run did not use the number.
	w.roll(small("dryrun", 2))
}

// storeRevision returns etcd's revision.
func (w sharedPlane) storeRevision() string {
	w.t.Helper()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	out := w.MustKubectl("get", "--raw", "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions?limit=1")
	if err := json.Unmarshal([]byte(out), &list); err != nil || list.Metadata.ResourceVersion == "" {
		w.t.Fatalf("reading the list's resourceVersion: %v\n%s", err, out)
	}
	return list.Metadata.ResourceVersion
}

// manyAtOnce: concurrent writes are all kept.
func manyAtOnce(w sharedPlane) {
	w.roll(small("many", 1))
	const writers = 8
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			if out := w.Kubectl("label", "cer", "many-1", fmt.Sprintf("writer-%d=was-here", n)); out.ExitCode != 0 {
				w.t.Error(out)
			}
		})
	}
	group.Wait()
	labels := w.read(".metadata.labels", "cer", "many-1")
	if found := strings.Count(labels, "was-here"); found != writers {
		w.t.Errorf("%d of %d labels were kept: %s", found, writers, labels)
	}
}

// statusIsNotOurs: a write to the main resource does not change status or its summary annotation,
// and no user can write status.
func statusIsNotOurs(w sharedPlane) {
	w.roll(small("status", 1))
	w.unchanged("status-1", func() {
		w.MustKubectl("patch", "cer", "status-1", "--type=merge", "-p",
			`{"status":{"conditions":[]},"metadata":{"annotations":{"penstock.dev/summary":"all is lost"}}}`)
	})
	for _, patch := range []string{`{"spec":{"lifecycleState":"Archived"}}`, `{"status":{"observedGeneration":0}}`} {
		out := w.Kubectl("patch", "cer", "status-1", "--subresource=status", "--type=merge", "-p", patch)
		w.says(out.Stderr, "Forbidden", "nobody but Penstock writes it")
	}
	w.says(w.MustKubectl("get", "cer", "status-1", "--no-headers"), "Active", "True")
}
