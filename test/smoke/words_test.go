//go:build integration

package smoke_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/test/framework/client"
	"github.com/penstock-project/penstock/test/framework/drafts"
	"github.com/penstock-project/penstock/test/framework/objects"
	"github.com/penstock-project/penstock/test/framework/plugin"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/reference"
)

// The helpers of the scenarios, in addition to those of package client.

// revision drafts a revision of the scenario's extension.
func (s scenario) revision(number int) drafts.Draft { return drafts.Revision(s.name, number) }

// configMap drafts a ConfigMap. Data has the form key=value.
func (s scenario) configMap(name string, data ...string) drafts.Object {
	return objects.ConfigMap(s.name, name, data...)
}

func (s scenario) secret(name string, data ...string) drafts.Object {
	return objects.Secret(s.name, name, data...)
}

func (s scenario) deployment(name, image string) drafts.Object {
	return objects.Deployment(s.name, name, image)
}

// roll creates a revision and returns when it has succeeded.
func (s scenario) roll(d drafts.Draft) {
	s.t.Helper()
	s.Create(d.String())
	s.succeeds("cer/" + d.Name)
}

func (s scenario) succeeds(revision string) {
	s.t.Helper()
	s.Condition(revision, "Succeeded", "True")
}

// types runs a command of the plugin as an administrator who answers yes. It fails unless the
// command exits with code. It returns all output.
func (s scenario) types(code int, line string) string {
	s.t.Helper()
	return s.typesAs(plugin.User{Input: plugin.Yes{}}, code, line)
}

// command returns the command that the reference page lists for a reason, without "kubectl
// penstock".
func (s scenario) command(heading, reason string) string {
	s.t.Helper()
	return strings.TrimPrefix(reference.Commands(s.t, "reasons.md", heading, reason)[0], "kubectl penstock ")
}

// runs is like types, but without a terminal: the plugin asks no questions.
func (s scenario) runs(code int, line string) string {
	s.t.Helper()
	return s.typesAs(plugin.User{}, code, line)
}

func (s scenario) typesAs(user plugin.User, code int, line string) string {
	s.t.Helper()
	if user.Kubeconfig == "" {
		user.Kubeconfig = s.cluster.Kubeconfig()
	}
	out := user.Run(s.t, "kubectl penstock "+line)
	if out.ExitCode != code {
		s.t.Fatalf("want exit %d: %s", code, out)
	}
	return out.Stdout + out.Stderr
}

// person returns a client and a plugin user for a user with rights in all namespaces. A right has
// the form "verbs resource.group".
func (s scenario) person(name string, rights ...string) (*client.Client, plugin.User) {
	s.t.Helper()
	name += "-" + s.name
	s.grant(name, rights...)
	access := s.cluster.In(s.t).User(name)
	return client.New(s.t, access.Config(), s.name), plugin.User{Kubeconfig: access.Kubeconfig(), Input: plugin.Yes{}}
}

// grant replaces the rights of a user, and returns when kube-apiserver has observed them.
func (s scenario) grant(user string, rights ...string) {
	s.t.Helper()
	var rules []string
	for _, right := range rights {
		verbs, resource, _ := strings.Cut(right, " ")
		resource, group, _ := strings.Cut(resource, ".")
		rules = append(rules, fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%s]}", group, resource, `"`+strings.ReplaceAll(verbs, ",", `", "`)+`"`))
	}
	s.Apply(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: [%[2]s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`, user, strings.Join(rules, ", ")))
	verbs, resource, _ := strings.Cut(rights[len(rights)-1], " ")
	verb, _, _ := strings.Cut(verbs, ",")
	resource, group, _ := strings.Cut(resource, ".")
	s.eventually("the cluster knows the rights of "+user, func() bool {
		return strings.Contains(s.Raw("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", fmt.Sprintf(
			`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":%q,"resourceAttributes":{"verb":%q,"group":%q,"resource":%q}}}`, user, verb, group, resource)), `"allowed":true`)
	})
}

// eventually polls for a state that no watch reports.
func (s scenario) eventually(what string, is func() bool) {
	s.t.Helper()
	if err := poll.Until(s.t.Context(), func(context.Context) bool { return is() }); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}
