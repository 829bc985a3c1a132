//go:build integration

package server_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

func kubectlManners() map[string]manner {
	return map[string]manner{
		"KubectlApply": {do: kubectlApply, deviations: []deviation{{
			of: "ClusterExtensionRevision", what: "again", host: "exit0 RESOURCE/kubectlapply-a-1 unchanged", ours: "exit0 RESOURCE/kubectlapply-a-1 configured",
			why: "kubectl compares manifests with digests, sends the manifests, and nothing changes: see the next line",
		}}},
		"KubectlServer": {do: kubectlServerSide},
		"KubectlWrite":  {do: kubectlWrite, deviations: []deviation{keptStatus("status"), keptStatus("replace status")}},
		"KubectlRead":   {do: kubectlRead},
		"KubectlPrune":  {do: kubectlPrune, clusterWide: true},
		"KubectlDelete": {do: kubectlDelete},
	}
}

// libraryLog matches client-go's log lines in kubectl's output, for instance about a watch that
// ended at once. They depend on timing.
var libraryLog = regexp.MustCompile(`(?m)^[IWE]\d{4} [^\n]*reflector\.go[^\n]*\n?`)

// said returns the exit code and the output of a run, without the help text after an error.
func said(out cluster.Output) string {
	text := fmt.Sprintf("exit%d %s", out.ExitCode, strings.TrimSpace(out.Stdout))
	if errs := strings.TrimSpace(libraryLog.ReplaceAllString(out.Stderr, "")); errs != "" {
		text += " / " + errs
	}
	return strings.ReplaceAll(text, "\n", " | ")
}

// file returns an object as a user writes it, with a label.
func (s *subject) file(letter string, knob int) string {
	object := with(s.applied(letter, knob), map[string]any{"scenario": s.base}, "metadata", "labels")
	return describe(object)
}

// run runs kubectl and records its output.
func (s *subject) run(what, stdin string, args ...string) cluster.Output {
	s.t.Helper()
	out := s.KubectlInput(stdin, args...)
	s.note(what, "%s", said(out))
	return out
}

// changes returns the changed lines of a diff, sorted.
func changes(out cluster.Output) string {
	var all []string
	for line := range strings.SplitSeq(out.Stdout, "\n") {
		if len(line) > 1 && strings.Contains("+-", line[:1]) && !strings.HasPrefix(line, "+++") && !strings.HasPrefix(line, "---") {
			all = append(all, line[:1]+strings.TrimSpace(line[1:]))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " | ")
}

func kubectlApply(s *subject) {
	s.note("diff of a new one", "%d", s.KubectlInput(s.file("a", 1), "diff", "-f", "-").ExitCode)
	s.run("apply", s.file("a", 1), "apply", "-f", "-")
	before := s.get("a").version()
	s.run("again", s.file("a", 1), "apply", "-f", "-")
	s.note("again, changed", "%t", s.get("a").version() != before)
	s.run("diff of the same", s.file("a", 1), "diff", "-f", "-")
	different := s.KubectlInput(s.file("a", 2), "diff", "-f", "-")
	s.note("diff of a change", "exit%d lines %d", different.ExitCode, strings.Count(changes(different), "|"))
	s.run("dry run", s.file("a", 2), "apply", "--dry-run=server", "-f", "-")
	s.run("client's dry run", s.file("a", 2), "apply", "--dry-run=client", "-f", "-")
	s.run("change", s.file("a", 2), "apply", "-f", "-")
	s.run("view", "", "apply", "view-last-applied", s.qualified(), s.name("a"), "-o", "jsonpath={.metadata.name}")
	s.run("unknown field", strings.Replace(s.file("b", 1), `"spec":{`, `"spec":{"nonsense":1,`, 1), "apply", "-f", "-")
	s.run("unknown field, not validated", strings.Replace(s.file("b", 1), `"spec":{`, `"spec":{"nonsense":1,`, 1), "apply", "--validate=warn", "--dry-run=server", "-f", "-")
	s.run("prune by label", s.file("c", 1), "apply", "--prune", "-l", "scenario="+s.base, "--prune-allowlist="+s.resource.GroupVersion().String()+"/"+s.kind, "-f", "-")
	s.note("pruned", "%t", at(s.get("a").body, "metadata", "deletionTimestamp") != nil)
}

func kubectlServerSide(s *subject) {
	server := func(what, file string, more ...string) {
		s.run(what, file, append([]string{"apply", "--server-side", "-f", "-"}, more...)...)
	}
	server("apply", s.file("a", 1))
	before := s.get("a").version()
	server("again", s.file("a", 1))
	s.note("again, changed", "%t", s.get("a").version() != before)
	server("another's", s.file("a", 2), "--field-manager=other")
	server("another's by force", s.file("a", 2), "--field-manager=other", "--force-conflicts")
	s.run("diff of the same", s.file("a", 2), "diff", "--server-side", "--field-manager=other", "-f", "-")
	s.note("diff of a change", "exit%d", s.KubectlInput(s.file("a", 3), "diff", "--server-side", "--field-manager=other", "-f", "-").ExitCode)
	s.note("diff with a conflict", "exit%d", s.KubectlInput(s.file("a", 3), "diff", "--server-side", "-f", "-").ExitCode)
	s.note("diff by force", "exit%d", s.KubectlInput(s.file("a", 3), "diff", "--server-side", "--force-conflicts", "-f", "-").ExitCode)
	// From client-side apply.
	s.run("client-side", s.file("b", 1), "apply", "-f", "-")
	server("then server-side", s.file("b", 1))
	server("change", s.file("b", 2))
	s.run("and back", s.file("b", 3), "apply", "-f", "-")
}

func kubectlWrite(s *subject) {
	a := s.qualified() + "/" + s.name("a")
	s.run("create", s.file("a", 1), "create", "-f", "-")
	s.run("create again", s.file("a", 1), "create", "-f", "-")
	s.run("label", "", "label", a, "x=y")
	s.run("label again", "", "label", a, "x=z")
	patch := describe(s.turned(2))
	s.run("merge", "", "patch", a, "--type=merge", "-p", patch)
	s.run("merge again", "", "patch", a, "--type=merge", "-p", patch)
	s.run("strategic", "", "patch", a, "-p", describe(s.turned(3)))
	s.run("json", "", "patch", a, "--type=json", "-p", `[{"op":"add","path":"/metadata/labels/note","value":"1"}]`)
	s.run("status", "", "patch", a, "--subresource=status", "--type=merge", "-p", describe(s.judged(1)))
	s.run("replace", s.file("a", 4), "replace", "-f", "-")
	s.run("replace status", describe(s.get("a").body), "replace", "--subresource=status", "-f", "-")
	s.note("edit", "%s", said(s.KubectlEnv([]string{"KUBE_EDITOR=sed -i 's/x: y/x: edited/'"}, "", "edit", a)))
	s.note("edited", "%v", at(s.get("a").body, "metadata", "labels", "x"))
	s.note("edit of nothing", "%s", said(s.KubectlEnv([]string{"KUBE_EDITOR=true"}, "", "edit", a)))
	s.run("scale what cannot be scaled", "", "scale", a, "--replicas=2")
}

func kubectlRead(s *subject) {
	s.several("a b")
	a, selector := s.qualified()+"/"+s.name("a"), []string{"-l", "scenario=" + s.base}
	s.run("names", "", append([]string{"get", s.qualified(), "-o", "name"}, selector...)...)
	s.run("sorted", "", append([]string{"get", s.qualified(), "--sort-by={.metadata.name}", "-o", "name"}, selector...)...)
	s.run("nothing", "", "get", s.qualified(), "-l", "scenario=nothing-there")
	s.run("not there", "", "get", s.qualified(), s.name("z"))
	s.note("sorted table", "%d lines", strings.Count(s.MustKubectl(append([]string{"get", s.qualified(), "--sort-by=.metadata.creationTimestamp"}, selector...)...), "\n"))
	s.note("described", "%t", strings.Contains(s.MustKubectl("describe", a), s.name("a")))
	// kube-apiserver fetches schemas at its own intervals.
	var explained cluster.Output
	eventually(s.t, "explain", func() error {
		if explained = s.Kubectl("explain", s.singular+"."+strings.Join(s.knob, "."), "--api-version="+s.resource.GroupVersion().String()); explained.ExitCode != 0 {
			return errors.New(explained.Stderr)
		}
		return nil
	})
	s.note("explained", "%t %t", strings.Contains(explained.Stdout, "FIELD: "+s.knob[len(s.knob)-1]), strings.Contains(explained.Stdout, "DESCRIPTION:"))
	s.run("wait for a value", "", "wait", a, "--for=jsonpath={.metadata.labels.letter}=a", poll.TimeoutFlag)
	s.run("wait for its creation", "", "wait", a, "--for=create", poll.TimeoutFlag)
	s.run("wait for nothing", "", "wait", s.qualified()+"/"+s.name("z"), "--for=delete", poll.TimeoutFlag)
}

// kubectlPrune tests an apply set. kubectl finds its members by discovery and label.
func kubectlPrune(s *subject) {
	parent := s.base + "-" + s.singular
	set := func(what string, files ...string) {
		out := s.KubectlEnv([]string{"KUBECTL_APPLYSET=true"}, strings.Join(files, "\n---\n"),
			"apply", "--server-side", "--prune", "--applyset="+parent, "--namespace=default", "-f", "-")
		s.note(what, "%s", said(out))
	}
	set("two", s.file("a", 1), s.file("b", 1))
	s.note("kinds of the set", "%s", s.MustKubectl("get", "secret", parent, "-o", `jsonpath={.metadata.annotations.applyset\.kubernetes\.io/contains-group-kinds}`))
	// kubectl waits for pruned objects, so no finalizer may hold them.
	s.run("let go", "", "delete", s.qualified(), s.name("b"), "--wait=false")
	s.release("b")
	set("one", s.file("a", 1))
	s.note("left", "%s", s.living())
}

func kubectlDelete(s *subject) {
	// The finalizer holds deleted objects, so kubectl must not wait.
	remove := func(letter string, args ...string) {
		s.labelled(letter, "scenario="+s.base, "letter="+letter)
		s.run(strings.Join(args, " "), "", append([]string{"delete", s.qualified(), s.name(letter), "--wait=false"}, args...)...)
	}
	remove("a", "--cascade=background")
	remove("b", "--cascade=foreground")
	remove("c", "--cascade=orphan")
	remove("d", "--dry-run=server")
	s.labelled("f", "scenario="+s.base, "letter=f")
	s.run("by label", "", "delete", s.qualified(), "-l", "scenario="+s.base+",letter=f", "--wait=false")
	s.run("not there", "", "delete", s.qualified(), s.name("z"))
	s.run("not there, ignored", "", "delete", s.qualified(), s.name("z"), "--ignore-not-found")
	// kubectl's message depends on its state when the second ends.
	s.note("wait in vain", "exit%d", s.KubectlInput("", "delete", s.qualified(), s.name("d"), "--timeout=1s").ExitCode)
	s.release("d")
	s.run("gone", "", "wait", "--for=delete", s.qualified()+"/"+s.name("d"), poll.TimeoutFlag)
}
