//go:build integration

package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// kubectlProgram returns a kubectl command that the test can stop.
func (w sharedPlane) kubectlProgram(ctx context.Context, args ...string) *exec.Cmd {
	w.t.Helper()
	tools, err := plane.Tools(ctx, os.Stderr)
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(tools, "kubectl"), args...)
	// By default kubectl caches discovery for hours, also of an earlier control plane on the same
	// port.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig(), "KUBECACHEDIR="+w.t.TempDir())
	return cmd
}

// kubectlWith runs kubectl with an environment variable.
func (w sharedPlane) kubectlWith(variable string, args ...string) string {
	w.t.Helper()
	out := w.KubectlEnv([]string{variable}, "", args...)
	if out.ExitCode != 0 {
		w.t.Fatal(out)
	}
	return out.Stdout + out.Stderr
}

// table: the columns that users and scripts rely on.
func table(w sharedPlane) {
	w.roll(small("table", 1))
	lines := strings.Split(w.MustKubectl("get", "cer", "table-1"), "\n")
	if want := "NAME      VERSION   STATE    READY   AVAILABLE   PROGRESSING   REASON      AGE"; lines[0] != want {
		w.t.Errorf("the columns are\n%s, want\n%s", lines[0], want)
	}
	if want := regexp.MustCompile(`^table-1             Active   3/3     True        False         RolledOut   \d+s$`); !want.MatchString(lines[1]) {
		w.t.Errorf("the row is\n%s, want\n%s", lines[1], want)
	}
	lines = strings.Split(w.MustKubectl("get", "cer", "table-1", "-o", "wide"), "\n")
	if want := "NAME      VERSION   STATE    READY   AVAILABLE   PROGRESSING   REASON      AGE   PHASE   SUCCEEDED   MESSAGE"; lines[0] != want {
		w.t.Errorf("the wide columns are\n%s, want\n%s", lines[0], want)
	}
	w.says(lines[1], "RolledOut", "3 objects in 2 phases are as rolled out")

	yaml := w.MustKubectl("get", "cer", "table-1", "-o", "yaml")
	w.says(yaml, "digest: sha256:", "digest: hmac-sha256:", "penstock.dev/chain: table", "username: admin", "size: ", "startedAt: ", "availableAt: ")
	for _, body := range []string{"number", "hunter2", "object:"} {
		if strings.Contains(yaml, body) {
			w.t.Errorf("%q, a part of a manifest, is in:\n%s", body, yaml)
		}
	}
	describe := w.MustKubectl("describe", "cer", "table-1")
	w.says(describe, "penstock.dev/summary: RolledOut: 3 objects in 2 phases are as rolled out", "Conditions:", "Digest:")
	w.says(w.MustKubectl("get", "olm", "-o", "name"), "clusterextensionrevision.olm.operatorframework.io/table-1")
	w.says(w.MustKubectl("get", "clusterextensionrevision/table-1", "--sort-by=.spec.revision"), "table-1")

	// kubectl lists installed extensions, one row each, like helm list. Completion finds them.
	extensions := w.MustKubectl("get", "revisionhistories")
	if row := regexp.MustCompile(`(?m)^table +1 +Active +Succeeded +1 +3 `); !strings.HasPrefix(extensions, "NAME") || !row.MatchString(extensions) {
		w.t.Errorf("the extensions are\n%s, want a row\n%s", extensions, row)
	}
	w.says(w.MustKubectl("__complete", "get", "revisionhistories", "tab"), "table")
}

// watchTable: kubectl get -w prints a line for every change, and a last line for the deletion.
func watchTable(w sharedPlane) {
	ctx, cancel := context.WithTimeout(w.t.Context(), poll.Patience)
	defer cancel()
	cmd := w.kubectlProgram(ctx, "get", "cer", "--selector=penstock.dev/chain=watch", "--watch", "--output-watch-events")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	want := []string{`watch-1 +Active +3/3 +True`, `watch-1 +Paused`, `watch-1 +Deleting`, `DELETED +watch-1`}
	var printed []string
	lines := bufio.NewScanner(stdout)
	until := func(left int) {
		for len(want) > left && lines.Scan() {
			printed = append(printed, lines.Text())
			if regexp.MustCompile(want[0]).MatchString(lines.Text()) {
				want = want[1:]
			}
		}
	}
	w.roll(small("watch", 1))
	// After three lines kubectl watches.
	until(3)
	w.MustKubectl("patch", "cer", "watch-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Paused"}}`)
	w.MustKubectl("patch", "cer", "watch-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Active"}}`)
	w.MustKubectl("delete", "cer", "watch-1", poll.TimeoutFlag)
	until(0)
	cancel()
	ended := cmd.Wait() // it was killed
	if len(want) > 0 {
		w.t.Errorf("no line says %q:\n%s\n%s (%v)", want[0], strings.Join(printed, "\n"), complaints.String(), ended)
	}
}

func selectors(w sharedPlane) {
	w.roll(small("select", 1))
	w.roll(small("select", 2))
	w.roll(small("selection", 1))
	w.value("Archived", ".spec.lifecycleState", "cer/select-1")
	const chain = "--selector=penstock.dev/chain=select"
	for selector, want := range map[string][]string{
		chain: {"select-1", "select-2"},
		"--selector=penstock.dev/chain in (select,selection),!other":             {"select-1", "select-2", "selection-1"},
		chain + " --field-selector=spec.revision=2":                              {"select-2"},
		chain + " --field-selector=spec.lifecycleState=Archived":                 {"select-1"},
		chain + " --field-selector=spec.lifecycleState!=Archived":                {"select-2"},
		chain + " --field-selector=spec.revision=2,spec.lifecycleState=Archived": {},
		"--field-selector=metadata.name=selection-1":                             {"selection-1"},
	} {
		args := []string{"get", "cer", "-o", "jsonpath={.items[*].metadata.name}"}
		for _, flag := range strings.Split(selector, " --") {
			args = append(args, "--"+strings.TrimPrefix(flag, "--"))
		}
		if got := strings.Fields(w.MustKubectl(args...)); strings.Join(got, " ") != strings.Join(want, " ") {
			w.t.Errorf("%s selects %v, want %v", selector, got, want)
		}
	}
	w.refused("", []string{"get", "cer", "--field-selector=spec.colour=red"},
		`field label not supported: "spec.colour"`, "supported are metadata.name, spec.revision and spec.lifecycleState")

	// Chunks of one object list the same revisions in the same order.
	all := w.MustKubectl("get", "cer", "-o", "name", chain)
	if chunks := w.MustKubectl("get", "cer", "-o", "name", "--chunk-size=1", chain); chunks != all {
		w.t.Errorf("with --chunk-size=1:\n%s, want\n%s", chunks, all)
	}
	w.MustKubectl("delete", "cer", chain, poll.TimeoutFlag)
	w.says(w.MustKubectl("get", "cer", "selection-1"), "True")
}

func explain(w sharedPlane) {
	// kube-apiserver merges Penstock's OpenAPI with a delay.
	out, _ := w.eventually(func() (string, string) {
		out := w.Kubectl("explain", "cer.spec.phases.objects")
		return out.Stdout, out.Stderr
	}, func(stdout string) bool { return stdout != "" })
	w.says(out, "KIND:       ClusterExtensionRevision", "object	<Manifest>", "subresource manifests")
	// The output fits on one screen: the schema of an object must not print Kubernetes' text about
	// raw extensions.
	if lines := strings.Count(out, "\n"); lines > 55 {
		w.t.Errorf("the output has %d lines:\n%s", lines, out)
	}
	w.says(w.MustKubectl("explain", "cer.spec.phases.objects.object"), "Manifest is any Kubernetes object")
	w.says(w.MustKubectl("explain", "cer.spec.lifecycleState"), "ENUM:", "Active", "Archived", "Paused", "Archived is")
	w.says(w.MustKubectl("explain", "cer.status", "--recursive"), "conditions", "requestedBy", "failing")
}

// manifests: the subresource returns the manifests as written, and kubectl accepts them.
func manifests(w sharedPlane) {
	w.roll(small("manifests", 1))
	yaml := w.MustKubectl("get", "cer", "manifests-1", "--subresource=manifests", "-o", "yaml")
	w.says(yaml, "kind: List", `number: "1"`, "password: hunter2")
	applied := w.MustKubectlInput(yaml, "apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-")
	w.says(applied, "configmap/manifests-first serverside-applied (server dry run)", "secret/manifests-secret", "configmap/manifests-second")
	out := w.KubectlInput(yaml, "apply", "--dry-run=server", "-f", "-")
	w.says(out.Stdout, "configmap/manifests-first configured (server dry run)")
	if out.ExitCode != 0 {
		w.t.Error(out)
	}
	w.says(w.MustKubectl("get", "cer", "manifests-1", "--subresource=manifests"), "KIND", "NAMESPACE", "NAME", "DIGEST", "SIZE", "manifests-second")

	path := "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/manifests-1/manifests"
	one := w.MustKubectl("get", "--raw", path+"?objectKind=ConfigMap&objectName=manifests-second")
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(one), &list); err != nil || len(list.Items) != 1 {
		w.t.Errorf("want exactly one manifest: %v\n%s", err, one)
	}
	w.refused("", []string{"get", "cer", "manifests-7", "--subresource=manifests"}, "NotFound")
}

// reader gives a user the rights to read revisions and their manifests, and no others.
func (w sharedPlane) reader(name string) {
	w.t.Helper()
	w.MustKubectl("create", "clusterrole", name, "--verb=get,list,watch",
		"--resource=clusterextensionrevisions.olm.operatorframework.io,clusterextensionrevisions.olm.operatorframework.io/manifests")
	w.MustKubectl("create", "clusterrolebinding", name, "--clusterrole="+name, "--user="+name)
}

// hiddenSecrets: users who cannot read a Secret in the cluster cannot read it in a revision.
func hiddenSecrets(w sharedPlane) {
	w.roll(small("hidden", 1))
	w.reader("hidden-reader")
	user := w.User("hidden-reader")
	read := func() (string, string) {
		out := user.Kubectl("get", "cer", "hidden-1", "--subresource=manifests", "-o", "yaml")
		return out.Stdout, out.Stderr
	}
	stdout, stderr := w.eventually(read, func(stdout string) bool { return strings.Contains(stdout, "hidden-first") })
	w.says(stderr, "Warning: 1 of the Secrets left out, as you cannot get them: default/hidden-secret")
	w.says(stdout, "hidden-first", "hidden-second")
	if strings.Contains(stdout, "hunter2") {
		w.t.Errorf("a Secret is shown:\n%s", stdout)
	}
	w.MustKubectl("create", "role", "hidden-reader", "--verb=get", "--resource=secrets", "--resource-name=hidden-secret")
	w.MustKubectl("create", "rolebinding", "hidden-reader", "--role=hidden-reader", "--user=hidden-reader")
	stdout, stderr = w.eventually(read, func(stdout string) bool { return strings.Contains(stdout, "hunter2") })
	w.says(stdout, "hidden-first", "hunter2", "hidden-second")
	if stderr != "" {
		w.t.Errorf("unexpected warnings: %s", stderr)
	}
}

// eventually repeats a command until its output passes. kube-apiserver learns of RBAC changes with
// a delay, and caches refusals for ten seconds. No watch reports either.
func (w sharedPlane) eventually(run func() (string, string), passes func(string) bool) (stdout, stderr string) {
	w.t.Helper()
	err := poll.Until(w.t.Context(), func(context.Context) bool {
		stdout, stderr = run()
		return passes(stdout)
	})
	if err != nil {
		w.t.Fatalf("%v:\n%s%s", err, stdout, stderr)
	}
	return stdout, stderr
}

// rights: revisions follow the cluster's RBAC.
func rights(w sharedPlane) {
	w.roll(small("rights", 1))
	w.reader("rights-reader")
	user := w.User("rights-reader")
	w.eventually(func() (string, string) {
		out := user.Kubectl("get", "cer", "rights-1")
		return out.Stdout, out.Stderr
	}, func(stdout string) bool { return strings.Contains(stdout, "rights-1") })
	forbidden := func(input string, args ...string) {
		w.t.Helper()
		out := user.KubectlInput(input, args...)
		if out.ExitCode == 0 {
			w.t.Errorf("a reader cannot read it: %s", out)
		}
		w.says(out.Stderr, "Error from server (Forbidden)", `User "rights-reader" cannot`)
	}
	forbidden(small("rights", 2).String(), "create", "-f", "-")
	forbidden(small("rights", 2).String(), "apply", "--server-side", "-f", "-")
	forbidden("", "patch", "cer", "rights-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Archived"}}`)
	forbidden("", "delete", "cer", "rights-1")
	forbidden("", "patch", "cer", "rights-1", "--subresource=status", "--type=merge", "-p", `{"status":{}}`)
	if out := user.Kubectl("auth", "can-i", "create", "cer"); strings.TrimSpace(out.Stdout) != "no" {
		w.t.Error(out)
	}
	// The status records the requester, and no user can change it.
	w.MustKubectl("create", "clusterrole", "rights-author", "--verb=get,create,patch", "--resource=clusterextensionrevisions.olm.operatorframework.io")
	w.MustKubectl("create", "clusterrolebinding", "rights-author", "--clusterrole=rights-author", "--user=rights-author")
	// A requester also needs the rights to the objects in the revision.
	w.MustKubectl("create", "clusterrole", "rights-content", "--verb=create,patch", "--resource=configmaps,secrets")
	w.MustKubectl("create", "clusterrolebinding", "rights-content", "--clusterrole=rights-content", "--user=rights-author")
	author := w.User("rights-author", "authors")
	for _, kind := range []string{"cer", "configmaps"} {
		w.eventually(func() (string, string) {
			out := author.Kubectl("auth", "can-i", "create", kind)
			return out.Stdout, out.Stderr
		}, func(stdout string) bool { return strings.HasPrefix(stdout, "yes") })
	}
	author.MustKubectlInput(small("rights", 2).String(), "create", "-f", "-")
	w.succeeded("rights-2")
	w.says(w.read(".status.requestedBy", "cer", "rights-2"), `"username":"rights-author"`, `"authors"`)

	nobody := w.User("rights-nobody")
	w.says(nobody.Kubectl("get", "cer").Stderr, "Forbidden")
}
