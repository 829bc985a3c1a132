//go:build integration

package e2e_test

import (
	"encoding/json"
	"strings"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/widgets"
)

// evaluation returns a request for the changes that a plan of the profile would make.
func evaluation(options string) string {
	return `{"apiVersion":"hco.kubevirt.io/v1alpha1","kind":"ProfileEvaluation","spec":{"options":` + options + `}}`
}

const evaluatePath = "/apis/hco.kubevirt.io/v1alpha1/configurationprofiledefinitions/large-widgets/evaluate"

// ownProfile tests a user's profile from its definition to its deletion: rights of the author,
// evaluation, a plan that ignores later edits of the definition, the profile's identity, drift, and
// undo.
func ownProfile(w sharedPlane) {
	w.namespace("own-profile")
	w.MustKubectlInput(widgets.Definition, "create", "-f", "-")
	w.MustKubectl("wait", "--for=condition=Established", "crd/widgets.own.example.com", poll.TimeoutFlag)
	w.MustKubectlInput(widgets.One("own-profile"), "create", "-f", "-")
	author := ownAuthor(w)
	refusedDefinitions(w)

	// 1. The author needs the rights that the definition declares. Penstock creates an identity
	// with exactly these rights.
	out := author.KubectlInput(widgets.Profile("own-profile"), "create", "-f", "-")
	if out.ExitCode == 0 || !strings.Contains(out.Stderr, "you cannot") || !strings.Contains(out.Stderr, "delete widgets.own.example.com") || strings.Contains(out.Stderr, "you cannot get") {
		w.t.Fatalf("an author without the rights: %s", out)
	}
	w.MustKubectlInput(widgets.Profile("own-profile"), "create", "-f", "-")
	w.MustKubectl("wait", "--for=condition=AccessGranted", "configprofiledef/large-widgets", poll.TimeoutFlag)
	ownIdentity(w)
	if out := author.Kubectl("patch", "configprofiledef", "large-widgets", "--type=merge", "-p", `{"spec":{"items":[]}}`); out.ExitCode == 0 || !strings.Contains(out.Stderr, "spec.items") && !strings.Contains(out.Stderr, "you cannot") {
		w.t.Errorf("an edit without the rights: %s", out)
	}

	// 2. Evaluation shows the profile's changes without a plan, with the rights of the caller.
	answer := w.MustKubectlInput(evaluation(`{"size": 5}`), "create", "--raw", evaluatePath, "-f", "-")
	w.says(answer, `+  size: 5`, `"impactSeverity":"Medium"`, "it grows to 5", `"options":{"size":5}`, "the widget grows")
	if out := w.KubectlInput(evaluation(`{"size": 0}`), "create", "--raw", evaluatePath, "-f", "-"); !strings.Contains(out.Stderr, "spec.options.size") {
		w.t.Errorf("options that are not allowed: %s", out)
	}
	w.MustKubectl("create", "clusterrolebinding", "own-author-evaluates", "--clusterrole=own-evaluate", "--user=own-author")
	w.eventually(func() (string, string) {
		out := author.KubectlInput(evaluation(`{}`), "create", "--raw", evaluatePath, "-f", "-")
		return out.Stdout + out.Stderr, ""
	}, func(said string) bool { return strings.Contains(said, "you cannot list widgets.own.example.com") })

	ownPlan(w)

	// 5. The definition stays as long as a plan of it is in effect. The identity stays as long as
	// the definition.
	if out := w.Kubectl("delete", "configprofiledef", "large-widgets"); out.ExitCode == 0 || !strings.Contains(out.Stderr, "ConfigurationPlan widgets is active") {
		w.t.Errorf("a definition in use was deleted: %s", out)
	}
	w.MustKubectl("delete", "configplan", "widgets")
	w.eventually(func() (string, string) {
		out := w.Kubectl("delete", "configprofiledef", "large-widgets", "--ignore-not-found")
		return out.Stdout, out.Stderr
	}, func(string) bool { return w.Kubectl("get", "configprofiledef", "large-widgets").ExitCode != 0 })
	w.MustKubectl("wait", "--for=delete", "clusterrole/penstock-profile-large-widgets", poll.TimeoutFlag)
}

// ownAuthor returns a user who can write definitions, and get widgets but not list them.
func ownAuthor(w sharedPlane) *cluster.Access {
	w.MustKubectlInput(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: own-author}
rules:
- {apiGroups: [hco.kubevirt.io], resources: [configurationprofiledefinitions], verbs: [create, get, patch]}
- {apiGroups: [own.example.com], resources: [widgets], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: own-evaluate}
rules:
- {apiGroups: [hco.kubevirt.io], resources: [configurationprofiledefinitions/evaluate], verbs: [create]}
`, "create", "-f", "-")
	w.MustKubectl("create", "clusterrolebinding", "own-author", "--clusterrole=own-author", "--user=own-author")
	author := w.User("own-author")
	w.eventually(func() (string, string) {
		out := author.Kubectl("auth", "can-i", "create", "configurationprofiledefinitions.hco.kubevirt.io")
		return out.Stdout, out.Stderr
	}, func(stdout string) bool { return strings.HasPrefix(stdout, "yes") })
	return author
}

// refusedDefinitions: the error of an invalid definition names the field.
func refusedDefinitions(w sharedPlane) {
	for _, c := range []struct{ from, to, says string }{
		{"widgets.own.example.com", "secrets.", "plural.group"},
		{"widgets.own.example.com", "clusterroles.rbac.authorization.k8s.io", "spec.requirements[0].definition: Forbidden"},
		{"widgets.own.example.com", "configurationplans.hco.kubevirt.io", "spec.requirements[0].definition: Forbidden"},
		{"options.size}}", "options.sise}}", "undefined field 'sise'"},
		{"{\"size\": options.size}", "{\"n\": facts.widgets.objects.map(a, facts.widgets.objects.map(b, facts.widgets.objects.map(c, a == b && b == c)))}", "may cost"},
		{"large-widgets", "large.widgets", "metadata.name"},
	} {
		if out := w.KubectlInput(strings.ReplaceAll(widgets.Profile("own-profile"), c.from, c.to), "create", "--dry-run=server", "-f", "-"); out.ExitCode == 0 || !strings.Contains(out.Stderr, c.says) {
			w.t.Errorf("%s is not refused with %q: %s", c.to, c.says, out)
		}
	}
	// A mismatch with the cluster's schema is only a warning, because the schema may change.
	out := w.KubectlInput(strings.ReplaceAll(widgets.Profile("own-profile"), "live.?spec.?size.orValue(0) == options.size", "live.spec.weight == 1"), "create", "--dry-run=server", "-f", "-")
	if out.ExitCode != 0 || !strings.Contains(out.Stderr, "undefined field 'weight'") {
		w.t.Errorf("a field that the cluster does not know: %s", out)
	}
}

// ownIdentity: the identity has exactly the verbs on the declared kinds.
func ownIdentity(w sharedPlane) {
	var role struct {
		Rules []struct{ APIGroups, Resources, ResourceNames, Verbs []string }
	}
	if err := json.Unmarshal([]byte(w.MustKubectl("get", "clusterrole", "penstock-profile-large-widgets", "-o", "json")), &role); err != nil {
		w.t.Fatal(err)
	}
	got, err := json.Marshal(role.Rules)
	if err != nil {
		w.t.Fatal(err)
	}
	want := `[{"APIGroups":["apiextensions.k8s.io"],"Resources":["customresourcedefinitions"],"ResourceNames":["widgets.own.example.com"],"Verbs":["get","list","watch"]},` +
		`{"APIGroups":["own.example.com"],"Resources":["widgets"],"ResourceNames":null,"Verbs":["get","list","watch","create","patch","delete"]}]`
	if string(got) != want {
		w.t.Errorf("its rights are %s, want %s", got, want)
	}
	account := "system:serviceaccount:" + strings.Replace(w.read(".status.serviceAccount", "configprofiledef", "large-widgets"), "/", ":", 1)
	for _, c := range []struct {
		may  string
		args []string
	}{
		{"yes", []string{"patch", "widgets.own.example.com"}}, {"no", []string{"get", "secrets"}}, {"no", []string{"create", "pods"}},
		{"no", []string{"update", "widgets.own.example.com"}}, {"no", []string{"patch", "widgets.own.example.com", "--subresource=status"}}, {"no", []string{"patch", "machineconfigs.machineconfiguration.openshift.io"}},
	} {
		if out := w.Kubectl(append([]string{"auth", "can-i", "--as=" + account, "-n", "own-profile"}, c.args...)...); !strings.HasPrefix(out.Stdout, c.may) {
			w.t.Errorf("%v: %s, want %s", c.args, out, c.may)
		}
	}
}

// ownPlan tests a plan of the profile.
func ownPlan(w sharedPlane) {
	const file = "{apiVersion: hco.kubevirt.io/v1alpha1, kind: ConfigurationPlan, metadata: {name: widgets}, spec: {profile: large-widgets, onConflict: Take, options: {values: {size: 5}}}}"
	if out := w.KubectlInput(strings.ReplaceAll(file, "size: 5", "size: 0"), "create", "-f", "-"); out.ExitCode == 0 || !strings.Contains(out.Stderr, "spec.options.values.size") {
		w.t.Errorf("options that are not allowed: %s", out)
	}
	w.says(w.KubectlInput(strings.ReplaceAll(file, "large-widgets", "large-widget"), "create", "--dry-run=server", "-f", "-").Stderr, "there is no ConfigurationProfileDefinition large-widget yet")
	w.says(w.MustKubectl("get", "configprofile", "large-widgets", "-o", "yaml"), "default: \"3\"", "How large they are.", "allowed: at least 1", "impactSeverity: Medium", "state: Inactive")

	w.MustKubectlInput(file, "create", "-f", "-")
	w.phase("widgets", "ReviewRequired")
	w.planSays("widgets", ".status.diff", "+  size: 5")
	digest := w.read(".status.definition.digest", "configplan", "widgets")
	w.approveAsRead("widgets")
	w.untilPlan("widgets", ".status.items[0].message", "the widget grows")
	if size := w.read(".spec.size", "widget", "one", "-n", "own-profile"); size != "5" {
		w.t.Fatalf("size %s", size)
	}
	if managers := w.read(".metadata.managedFields[*].manager", "widget", "one", "-n", "own-profile", "--show-managed-fields"); !strings.Contains(managers, "hco-governance/large-widgets") {
		w.t.Errorf("managers %s", managers)
	}

	// 3. Editing the definition does not change an approved plan or its wait conditions.
	w.MustKubectlInput(strings.NewReplacer("live.status.ready == options.size", "live.status.ready == 100", `{"size": options.size}`, `{"size": options.size + 1}`).Replace(widgets.Profile("own-profile")), "replace", "-f", "-")
	w.untilPlan("widgets", ".status.phase", "InProgress")
	w.MustKubectl("patch", "widget", "one", "-n", "own-profile", "--subresource=status", "--type=merge", "-p", `{"status":{"ready":2}}`)
	w.untilPlan("widgets", ".status.items[0].message", "2 are ready")
	w.MustKubectl("patch", "widget", "one", "-n", "own-profile", "--subresource=status", "--type=merge", "-p", `{"status":{"ready":5}}`)
	w.phase("widgets", "Completed")
	w.MustKubectl("wait", "--for=condition=UpgradeAvailable", "configplan/widgets", poll.TimeoutFlag)
	if now := w.read(".status.definition.digest", "configplan", "widgets"); now != digest {
		w.t.Errorf("the plan has digest %s, and was approved with %s", now, digest)
	}

	// 4. The plan reports drift, and a rollback restores the old value.
	w.MustKubectl("patch", "widget", "one", "-n", "own-profile", "--type=merge", "-p", `{"spec":{"size":9}}`)
	w.phase("widgets", "Drifted")
	w.mustPost("widgets", "rollback", "PlanRollbackRequest", "{}")
	w.phase("widgets", "ReviewRequired")
	w.approveAsRead("widgets")
	w.phase("widgets", "Completed")
	w.value("1", ".spec.size", "widget", "one", "-n", "own-profile")
}
