//go:build integration

package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/cluster"
)

// examplePolicies is the folder that docs/how-to/policy.md tells users to apply.
const examplePolicies = "../../artifacts/examples/policies"

const (
	wildRole   = `object: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: wild}, rules: [{apiGroups: ["*"], resources: [pods], verbs: [get]}]}`
	tameRole   = `object: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: tame}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`
	aggregated = `object: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: []}`
	jobObject  = `object: {apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: lighthouse}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`
	verbless   = `object: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: verbless}, rules: [{apiGroups: [""], resources: [pods]}]}`
	openPaths  = `object: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: paths}, rules: [{nonResourceURLs: ["*"], verbs: [get]}]}`
)

// bulk returns ConfigMaps with a total size in MiB.
func bulk(mib int) []string {
	objects := make([]string, mib)
	for i := range objects {
		objects[i] = fmt.Sprintf("object: {apiVersion: v1, kind: ConfigMap, metadata: {name: bulk-%d, namespace: lighthouse}, data: {a: %s}}", i, strings.Repeat("x", 1<<20))
	}
	return objects
}

// examples applies the example policies to a cluster that already has revisions. It tests them as
// several users.
func examples(t *testing.T, c *cluster.Cluster) {
	c.MustKubectlInput(`apiVersion: v1
kind: Namespace
metadata: {name: lighthouse}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: releases}
rules:
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions, clusterextensionrevisions/rollback], verbs: ["*"]}
- {apiGroups: [policy.penstock.dev], resources: [privilegechecks], verbs: [bypass]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: releases}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: releases}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: developers}]
`, "apply", "-f", "-")
	c.MustKubectlInput(drafted(1, "Active", wildRole), "create", "-f", "-")
	c.MustKubectlInput(drafted(2, "Active", tameRole), "create", "-f", "-")
	wildDigest := strings.TrimSpace(c.MustKubectl("get", "cer", "lighthouse-1", "-o", "jsonpath={.spec.phases[0].objects[0].digest}"))
	tameDigest := strings.TrimSpace(c.MustKubectl("get", "cer", "lighthouse-2", "-o", "jsonpath={.spec.phases[0].objects[0].digest}"))
	byDigest := func(number int, name, digest string) string {
		return drafted(number, "Active", fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: %s, digest: '%s'}", name, digest))
	}
	guideLetsRead(t, c)
	files, err := filepath.Glob(filepath.Join(examplePolicies, "*.yaml"))
	if err != nil || len(files) != 4 {
		t.Fatalf("found %v (%v)", files, err)
	}
	c.MustKubectl("apply", "-f", examplePolicies)

	create, dryRun := []string{"create", "-f", "-"}, []string{"create", "--dry-run=server", "-f", "-"}
	apply := []string{"apply", "--server-side", "-f", "-"}
	as := func(who string, groups ...string) []string {
		args := []string{"--as=" + who, "--as-group=developers"}
		for _, group := range groups {
			args = append(args, "--as-group="+group)
		}
		return args
	}
	dev, manager := as("dev"), as("meg", "release-managers")
	collection := func(extension string) []string {
		return []string{"delete", "--raw", "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions?dryRun=All&labelSelector=penstock.dev/chain=" + extension}
	}
	generated := func(extension string) string {
		return strings.Replace(drafted(7, "Active", mapObject), "name: lighthouse-7", "generateName: "+extension+"-", 1)
	}
	renamed := func(draft, extension string) string { return strings.ReplaceAll(draft, "lighthouse-", extension+"-") }
	const (
		kinds      = "this cluster takes no revision with Job once"
		wildcards  = `no ClusterRole of a revision may grant "*" or be aggregated: `
		extensions = "grafana is not an extension that this cluster takes"
		// The API rejects a generated name without a number, so no policy has to.
		generatedName = `The ClusterExtensionRevision "`
		users         = "revisions of argocd are for release-managers, and dev is none"
	)
	// A policy takes a moment to become effective.
	for says, draft := range map[string]string{
		kinds: drafted(3, "Active", jobObject), wildcards + "wild": drafted(3, "Active", wildRole),
		extensions: renamed(drafted(1, "Active", mapObject), "grafana"), users: renamed(drafted(1, "Active", mapObject), "argocd"),
	} {
		eventually(t, "the policy", func() error {
			return missing(c.KubectlInput(draft, append(dryRun, dev...)...).Stderr, []string{says})
		})
	}
	for _, tc := range []struct {
		reason string
		who    []string
		stdin  string
		args   []string
		// says is part of the refusal. It is empty if the request is accepted.
		says string
	}{
		{"a kind that is not listed", dev, drafted(3, "Active", mapObject, jobObject), create, kinds},
		{"also for administrators", nil, drafted(3, "Active", jobObject), create, kinds},
		{"by server-side apply", dev, drafted(3, "Active", jobObject), apply, kinds},
		{"beyond what is shown", dev, drafted(3, "Active", append(bulk(4), jobObject)...), create, kinds},
		{"a wildcard", dev, drafted(3, "Active", wildRole), create, wildcards + "wild"},
		{"paths", dev, drafted(3, "Active", tameRole, openPaths), create, wildcards + "paths"},
		{"an aggregated role", dev, drafted(3, "Active", aggregated), create, wildcards + "all"},
		{"a wildcard by digest", dev, byDigest(3, "wild", wildDigest), create, wildcards + "wild"},
		{"a wildcard by digest, applied", dev, byDigest(3, "wild", wildDigest), apply, wildcards + "wild"},
		{"a wildcard from before, by rollback", dev, "{}", rollbackTo(1), wildcards + "wild"},
		{"a role that cannot be shown", dev, drafted(3, "Active", append(bulk(4), tameRole)...), create, "too large for its ClusterRoles to be shown to policies: tame"},
		{"another extension", dev, renamed(drafted(1, "Active", mapObject), "grafana"), create, extensions},
		{"an extension whose name begins like it", dev, renamed(drafted(1, "Active", mapObject), "lighthouse-dev"), create, "lighthouse-dev is not an extension"},
		{"somebody else's extension", dev, renamed(drafted(1, "Active", mapObject), "argocd"), create, users},

		{"a role by digest", dev, byDigest(3, "tame", tameDigest), create, ""},
		{"close to all that is shown", dev, drafted(4, "Active", append(bulk(2), tameRole)...), create, ""},
		{"rolling back to what is allowed", dev, "{}", rollbackTo(2), ""},
		{"a release manager", manager, renamed(drafted(2, "Active", mapObject), "argocd"), create, ""},
		{"somebody else's pause", dev, "", []string{"patch", "cer", "argocd-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Paused"}}`}, users},
		{"somebody else's deletion", dev, "", []string{"delete", "cer", "argocd-1"}, users},
		{"somebody else's other changes", dev, "", []string{"label", "cer", "argocd-1", "a=b"}, users},
		{"somebody else's, in a collection", dev, "", collection("argocd"), users},
		{"somebody else's, with a name that is made", dev, generated("argocd"), create, generatedName},
		{"another extension, with a name that is made", dev, generated("lighthouse"), create, generatedName},
		{"one's own pause", dev, "", []string{"patch", "cer", "lighthouse-4", "--type=merge", "-p", `{"spec":{"lifecycleState":"Paused"}}`, "--dry-run=server"}, ""},
		{"one's own deletion", dev, "", []string{"delete", "cer", "lighthouse-4", "--dry-run=server"}, ""},
		{"one's own, in a collection", dev, "", collection("lighthouse"), ""},
		{"a phase without objects", dev, drafted(9, "Active"), dryRun, ""},
		{"nothing in it", dev, strings.Split(drafted(9, "Active"), "  phases:")[0], dryRun, ""},
		{"a rule without verbs", dev, drafted(9, "Active", verbless), dryRun, ""},
		{"the release manager's collection", manager, "", collection("argocd"), ""},
		{"the release manager's deletion", manager, "", []string{"delete", "cer", "argocd-1", "--dry-run=server"}, ""},
		{"the release manager's pause", manager, "", []string{"patch", "cer", "argocd-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Paused"}}`}, ""},
	} {
		out := c.KubectlInput(tc.stdin, append(tc.args, tc.who...)...)
		if (out.ExitCode == 0) != (tc.says == "") || !strings.Contains(out.Stderr, tc.says) {
			out.Args = nil
			t.Errorf("%s: want %q: %.2000s", tc.reason, tc.says, out)
		}
	}
}

// guideLetsRead runs the guide's commands that let a group read. A member of it then reads
// everything that the review of an upgrade needs.
func guideLetsRead(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	guide, err := os.ReadFile("../../docs/how-to/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(guide)) {
		if command, found := strings.CutPrefix(line, "$ kubectl "); found && strings.Contains(command, "release-readers") {
			c.MustKubectl(strings.Fields(command)...)
		}
	}
	const diff, revision = "revisiondiff/lighthouse-1..lighthouse-2", "cer/lighthouse-2"
	for _, read := range [][]string{
		{diff}, {revision, "--subresource=diff"}, {"revisionhistory/lighthouse"},
		{"--raw", "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/lighthouse-2/manifests"},
	} {
		eventually(t, strings.Join(read, " "), func() error {
			if out := c.Kubectl(append(append([]string{"get"}, read...), "--as=dev", "--as-group=developers")...); out.ExitCode != 0 {
				return missingError{out.String()}
			}
			return nil
		})
	}
}

// TestExamplePoliciesAreNamed: the published examples are exactly those that this test applies.
func TestExamplePoliciesAreNamed(t *testing.T) {
	guide, err := os.ReadFile("../../docs/how-to/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(examplePolicies, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.Contains(string(guide), filepath.Base(file)) {
			t.Errorf("docs/how-to/policy.md does not name %s", filepath.Base(file))
		}
	}
}
