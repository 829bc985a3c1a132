//go:build integration

package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/penstock-project/penstock/pkg/app"
	"github.com/penstock-project/penstock/pkg/server"
	"github.com/penstock-project/penstock/pkg/server/leadership"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// serverUser is the user of the Deployment, with exactly the rights of
// artifacts/deploy/base/rbac.yaml. These do not include the rights to roll out objects.
const serverUser = "system:serviceaccount:penstock-system:penstock"

func serverAccount(c *cluster.Cluster) *cluster.Access {
	return c.User(serverUser, "system:serviceaccounts", "system:serviceaccounts:penstock-system")
}

func grant(t *testing.T, c *cluster.Cluster, change func(string) string) {
	t.Helper()
	rules, err := os.ReadFile(deployFolder + "base/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.MustKubectl("create", "namespace", "penstock-system")
	c.MustKubectlInput(change(string(rules)), "apply", "-f", "-")
}

// TestLeastRights: the documented rights are enough, also for writes, and each right is used.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	var granted string
	grant(t, c, func(rules string) string { granted = rules; return rules })
	o := newObserver()
	options := newOptions(t, serverAccount(c), dataDir(t))
	catalogs := app.NewCatalogs()
	catalogs.Addr, catalogs.Dir = "127.0.0.1:0", filepath.Join(options.DataDir, "catalogs")
	options.Companions = []server.Companion{catalogs}
	options.Controllers = []leadership.Controller{o.controller(t), catalogs.Controller()}
	p := start(t, options)
	await(t, "the controllers", o.began)
	// No registry can serve this catalog.
	eventually(t, "a catalog is created", func() error {
		if out := c.KubectlInput(catalogOf("wrong", "registry.example.com/aB:v1"), "apply", "-f", "-"); out.ExitCode != 0 {
			return missingError{out.Stderr}
		}
		return nil
	})
	c.MustKubectl("wait", "--for=condition=Progressing=False", poll.TimeoutFlag, "clustercatalog/wrong")
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	// Penstock restores deleted objects with these rights.
	c.MustKubectl("delete", "service", "penstock", system)
	eventually(t, "the Service", func() error {
		if out := c.Kubectl("get", "service", "penstock", system); out.ExitCode != 0 {
			return missingError{out.Stderr}
		}
		return nil
	})
	// Live diffs request the token of another identity. Without the Service our API was
	// unavailable, and kube-apiserver notices its return with a delay.
	eventually(t, "a live diff", func() error {
		if out := c.Kubectl("get", "revisiondiff", "argocd-1..live"); out.ExitCode != 0 {
			return missingError{out.Stderr}
		}
		return nil
	})
	sharedName(t, c, p)
	p.halt(t)
	done := c.Audit().Since(0, plane.ByUser(serverUser))
	if denied := done.Where(func(r plane.Request) bool { return r.Code == 403 }); len(denied) > 0 {
		t.Errorf("requests without a right:\n%s", denied)
	}
	documents := split(t, granted)
	var cluster rbacv1.ClusterRole
	decode(t, documents["ClusterRole"][0], &cluster)
	var local rbacv1.Role
	decode(t, documents["Role"][0], &local)
	if diff := cmp.Diff(rarelyUsed(), unused(append(cluster.Rules, local.Rules...), done)); diff != "" {
		t.Errorf("rights that the server does not use (-want +got):\n%s", diff)
	}
}

// sharedName: OLM v1 has a resource with the same name in version v1. kubectl then uses OLM's
// resource. A user who creates a revision gets a warning with the right command, as long as OLM's
// resource exists.
func sharedName(t *testing.T, c *cluster.Cluster, p *process) {
	t.Helper()
	const name, gauge = "clusterextensionrevisions.olm.operatorframework.io", `penstock_resource_name_shared{resource="clusterextensionrevisions.olm.operatorframework.io"} `
	definition := `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "` + name + `",
		"annotations": {"api-approved.kubernetes.io": "unapproved"}},
	"spec": {"group": "olm.operatorframework.io", "scope": "Cluster",
		"names": {"plural": "clusterextensionrevisions", "singular": "clusterextensionrevision", "kind": "ClusterExtensionRevision"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`
	const advice = "use clusterextensionrevisions.v1alpha1.olm.operatorframework.io"
	warned := func(want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("advice on names (%t)", want), func() error {
			out := c.KubectlInput(revision("argocd", 2), "create", "--dry-run=server", "-f", "-")
			metrics, _, err := tryGet(t.Context(), p.Loopback(), "/metrics")
			if err != nil {
				return err
			}
			if strings.Contains(out.Stderr, advice) != want || strings.Contains(metrics, gauge+"1") != want {
				return missingError{out.String()}
			}
			return nil
		})
	}
	warned(false)
	c.MustKubectlInput(definition, "create", "-f", "-")
	warned(true)
	fresh := "--cache-dir=" + t.TempDir() // kubectl caches the served versions for hours
	eventually(t, "the other resource", func() error {
		if out := c.Kubectl("get", "clusterextensionrevisions", fresh); !strings.Contains(out.Stderr, "No resources found") {
			return missingError{out.String()}
		}
		return nil
	})
	if out := c.MustKubectl("get", "clusterextensionrevisions.v1alpha1.olm.operatorframework.io"); !strings.Contains(out, "argocd-1") {
		t.Errorf("reading our resource by its full name: %s", out)
	}
	c.MustKubectl("delete", "crd", name)
	warned(false)
}

// rarelyUsed are rights that no request of this test needs.
func rarelyUsed() []string {
	return []string{
		// kube-apiserver checks bind and escalate when a role and its binding are written.
		// Controllers and rollbacks, which do not run here, need events, owners, definitions and
		// the freeze. The end-to-end tests also run with these rights. ClusterExtensions have their
		// own suite, and so have image templates, ChartKinds, ClusterExtensionSets and maintenance
		// windows. Roles of namespaces are read for revisions with a binding. A flow schema is
		// patched if it names a missing priority level. The Secret is patched a year before the
		// authority expires. kube-apiserver checks delete before a user can set an owner
		// (TestLeave).
		"bind clusterroles.rbac.authorization.k8s.io penstock-engine",
		"bind clusterroles.rbac.authorization.k8s.io penstock-executor",
		"bind clusterroles.rbac.authorization.k8s.io penstock-reader",
		"bind clusterroles.rbac.authorization.k8s.io penstock-templates",
		"create clusterextensions.olm.operatorframework.io",
		"create events.",
		"create serviceaccounts/token. penstock-templates",
		"delete apiservices.apiregistration.k8s.io v1alpha1.catalog.penstock.dev",
		"delete apiservices.apiregistration.k8s.io v1alpha1.hco.kubevirt.io",
		"delete apiservices.apiregistration.k8s.io v1alpha1.olm.operatorframework.io",
		"delete clusterextensions.olm.operatorframework.io",
		"delete mutatingwebhookconfigurations.admissionregistration.k8s.io penstock",
		"delete validatingwebhookconfigurations.admissionregistration.k8s.io penstock",
		"escalate clusterroles.rbac.authorization.k8s.io penstock-engine",
		"escalate clusterroles.rbac.authorization.k8s.io penstock-executor",
		"escalate clusterroles.rbac.authorization.k8s.io penstock-reader",
		"escalate clusterroles.rbac.authorization.k8s.io penstock-templates",
		"get clusterextensions.olm.operatorframework.io",
		"get roles.rbac.authorization.k8s.io",
		"list catalogsources.operators.coreos.com",
		"list chartkinds.charts.penstock.dev",
		"list clusterextensions.olm.operatorframework.io",
		"list clusterextensionsets.penstock.dev",
		"list configmaps. penstock-freeze",
		"list leases.coordination.k8s.io 9c4404e7.operatorframework.io",
		"list maintenancewindows.penstock.dev",
		"list metricchecks.penstock.dev",
		"patch catalogsources.operators.coreos.com",
		"patch catalogsources/status.operators.coreos.com",
		"patch chartkinds.charts.penstock.dev",
		"patch chartkinds/status.charts.penstock.dev",
		"patch clustercatalogs/status.olm.operatorframework.io",
		"patch events.",
		"patch flowschemas/status.flowcontrol.apiserver.k8s.io",
		"patch maintenancewindows/status.penstock.dev",
		"update clusterextensions.olm.operatorframework.io",
		"update clusterextensions/status.olm.operatorframework.io",
		"update clusterextensionsets.penstock.dev",
		"update clusterextensionsets/status.penstock.dev",
		"update secrets. penstock-ca",
		"watch catalogsources.operators.coreos.com",
		"watch chartkinds.charts.penstock.dev",
		"watch clusterextensions.olm.operatorframework.io",
		"watch clusterextensionsets.penstock.dev",
		"watch configmaps. penstock-freeze",
		"watch leases.coordination.k8s.io 9c4404e7.operatorframework.io",
		"watch maintenancewindows.penstock.dev",
		"watch metricchecks.penstock.dev",
	}
}

// TestMissingRights: Penstock names a missing right at its start. Otherwise each write would fail
// after ten seconds.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	grant(t, c, func(rules string) string {
		return strings.NewReplacer("[mutatingadmissionpolicybindings]", "[none]", "[prioritylevelconfigurations]", "[none]").Replace(rules)
	})
	user := serverAccount(c)
	p := begin(t, newOptions(t, user, dataDir(t)))
	await(t, "the refusal", p.done)
	want := "list mutatingadmissionpolicybindings.admissionregistration.k8s.io (for admission plugin MutatingAdmissionPolicy)"
	if p.err == nil || !strings.Contains(p.err.Error(), want) {
		t.Errorf("the error does not say %q: %v", want, p.err)
	}

	// The plugin is disabled on purpose.
	start(t, newOptions(t, user, dataDir(t), "--disable-admission-plugins=MutatingAdmissionPolicy"))
	writes(t, c)
}

// TestOlderHost: Penstock supports a host that lacks optional features of the library.
func TestOlderHost(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.APIServerArgs("--emulated-version=1.34"))
	start(t, newOptions(t, c, dataDir(t)))
	writes(t, c)
}

// writes creates a revision. If an admission plugin never becomes ready, a write fails after 10 s.
func writes(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
}

// TestHostPolicies: the host's policies apply to the content of a revision.
func TestHostPolicies(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	start(t, newOptions(t, c, dataDir(t)))
	c.MustKubectlInput(policy, "apply", "-f", "-")
	eventually(t, "the policy", func() error {
		out := c.KubectlInput(strings.ReplaceAll(revision("argocd", 1), "first", "forbidden"), "create", "--dry-run=server", "-f", "-")
		return missing(out.Stderr, []string{"no object may be called forbidden"})
	})
	// A mutating policy with an apply configuration needs our schemas. The order in which the two
	// policies take effect is not fixed.
	eventually(t, "the mutating policy", func() error {
		out := c.KubectlInput(revision("argocd", 1), "create", "--dry-run=server", "-f", "-", "-o", "jsonpath={.metadata.labels.mutated}")
		if out.Stdout != "yes" {
			return fmt.Errorf("label mutated is not set: %s", out)
		}
		return nil
	})
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	t.Run("Examples", func(t *testing.T) { examples(t, c.In(t)) })
}

const policy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: names}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [olm.operatorframework.io], apiVersions: [v1alpha1], operations: [CREATE], resources: [clusterextensionrevisions]}
  validations:
  - expression: "!has(object.spec.phases) || object.spec.phases.all(p, !has(p.objects) || p.objects.all(o, !has(o.object) || o.object.metadata.name != 'forbidden'))"
    message: no object may be called forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: names}
spec: {policyName: names, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labels}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [olm.operatorframework.io], apiVersions: [v1alpha1], operations: [CREATE], resources: [clusterextensionrevisions]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: "Object{metadata: Object.metadata{labels: {'mutated': 'yes'}}}"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: labels}
spec: {policyName: labels}
`

// idleWindow returns the duration of the idle test. PENSTOCK_IDLE sets it, to find requests at
// longer intervals.
func idleWindow(t *testing.T) time.Duration {
	t.Helper()
	window, err := time.ParseDuration(os.Getenv("PENSTOCK_IDLE"))
	if err != nil {
		return 12 * time.Second
	}
	return window
}

// TestIdle: an idle server sends only lease requests to the host. Watches stay open, and access
// reviews answer the host's own polling.
func TestIdle(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	began := c.Audit().Mark()
	o := newObserver()
	options := newOptions(t, c, dataDir(t))
	options.Version = "test"
	options.Controllers = []leadership.Controller{o.controller(t)}
	// More often than with an embedded store, so that the window includes lease requests.
	options.Lease = leadership.Times{Duration: 6 * time.Second, RenewDeadline: 5 * time.Second, RetryPeriod: 2 * time.Second}
	start(t, options)
	await(t, "the controllers", o.began)
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")

	// Watches that are starting do not count as idle.
	eventually(t, "silence", func() error {
		mark := c.Audit().Mark()
		time.Sleep(time.Second)
		if begun := c.Audit().Since(mark, plane.ByAgent("penstock/test/"), plane.ByVerb("watch", "list", "get")); len(begun) > 0 {
			return missingError{begun.String()}
		}
		return nil
	})
	mark, window := c.Audit().Mark(), idleWindow(t)
	time.Sleep(window)
	all := c.Audit().Since(mark, plane.ByAgent("penstock/test/"))
	reviews := all.Where(plane.ByResource("subjectaccessreviews", "tokenreviews"))
	renewals := all.Where(plane.ByResource("leases"), plane.ByVerb("update"))
	watches := all.Where(plane.ByVerb("watch"))
	t.Logf("in %s: %d renewals of the lease, %d access reviews, %d watches begun anew", window, len(renewals), len(reviews), len(watches))
	unexpected := all.Where(
		plane.Not(plane.ByResource("subjectaccessreviews", "tokenreviews")),
		plane.Not(plane.ByVerb("watch")),
		func(r plane.Request) bool { return r.Resource != "leases" || r.Verb != "update" })
	// The high-water mark follows the revision that was just created, once.
	marks := unexpected.Where(plane.ByResource("configmaps"))
	if len(marks) > 3 {
		t.Errorf("the witness cost %d requests:\n%s", len(marks), marks)
	}
	if rest := unexpected.Where(plane.Not(plane.ByResource("configmaps"))); len(rest) > 0 {
		t.Errorf("requests of an idle server:\n%s", rest)
	}
	if len(renewals) == 0 {
		t.Error("not even the lease was renewed: the test sees nothing")
	}
	if agents := c.Audit().Since(began, plane.ByAgent("penstock"), plane.Not(plane.ByAgent("penstock/test/"))); len(agents) > 0 {
		t.Errorf("clients without a user agent of their own:\n%s", agents)
	}
}
