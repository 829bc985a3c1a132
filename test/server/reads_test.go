//go:build integration

package server_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/client/check"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/test/framework/cluster"
)

const readsVersion = "v1.2.3-test"

// TestReads: clients read from this server through the aggregator.
func TestReads(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	options := newOptions(t, c, dataDir(t))
	options.Version = readsVersion
	p := start(t, options)
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	t.Run("VersionHeader", func(t *testing.T) { versionHeader(t, c.In(t), p) })
	t.Run("ApproverRights", func(t *testing.T) { approverRights(t, c.In(t), p) })
	// Check runs last because it breaks the installation.
	t.Run("Check", func(t *testing.T) { checkInstallation(t, c.In(t), p) })
}

// versionHeader: the answers of our API name the program's version, other answers do not.
func versionHeader(t *testing.T, c *cluster.Cluster, p *process) {
	const cers, plans = "/apis/olm.operatorframework.io/v1alpha1", "/apis/hco.kubevirt.io/v1alpha1"
	nobody := c.User("nobody-reads")
	for _, ask := range []struct {
		reason string
		config *rest.Config
		path   string
		code   int
		want   string
	}{
		{"a list", c.Config(), cers + "/clusterextensionrevisions", http.StatusOK, readsVersion},
		{"one", c.Config(), cers + "/clusterextensionrevisions/argocd-1", http.StatusOK, readsVersion},
		{"a watch", c.Config(), cers + "/clusterextensionrevisions?watch=true&timeoutSeconds=1", http.StatusOK, readsVersion},
		{"what is computed", c.Config(), cers + "/revisiondiffs/argocd-1..live", http.StatusOK, readsVersion},
		{"discovery", c.Config(), cers, http.StatusOK, readsVersion},
		{"the other group", c.Config(), plans + "/configurationplans", http.StatusOK, readsVersion},
		{"nothing there", c.Config(), cers + "/clusterextensionrevisions/none-1", http.StatusNotFound, readsVersion},
		{"a bad request", c.Config(), cers + "/clusterextensionrevisions?limit=x", http.StatusBadRequest, readsVersion},
		{"no such resource", c.Config(), cers + "/nothing", http.StatusNotFound, readsVersion},
		{"the host's answer", c.Config(), "/api/v1/namespaces/default", http.StatusOK, ""},
		{"the host refuses", nobody.Config(), cers + "/clusterextensionrevisions", http.StatusForbidden, ""},
		{"asked directly", p.Loopback(), cers + "/clusterextensionrevisions", http.StatusOK, readsVersion},
		{"other paths", p.Loopback(), "/readyz", http.StatusOK, ""},
		{"strangers are told nothing", rest.AnonymousClientConfig(p.Loopback()), cers + "/clusterextensionrevisions", http.StatusForbidden, ""},
	} {
		header, code := headerOf(t, ask.config, ask.path)
		if code != ask.code {
			t.Errorf("%s: %s returned %d, want %d", ask.reason, ask.path, code, ask.code)
		}
		if got := strings.Join(header.Values("Penstock-Version"), ","); got != ask.want {
			t.Errorf("%s: %s names version %q, want %q", ask.reason, ask.path, got, ask.want)
		}
	}

	// Clients learn the version from their ordinary requests.
	config := c.Config()
	var version client.ServerVersion
	version.Listen(config)
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.OlmV1alpha1().ClusterExtensionRevisions().Get(t.Context(), "argocd-1", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := version.Get(); got != readsVersion {
		t.Errorf("the client has learnt version %q", got)
	}
}

// headerOf sends a GET and returns headers and code of the answer.
func headerOf(t *testing.T, config *rest.Config, path string) (http.Header, int) {
	t.Helper()
	caller := newCaller(t, config)
	defer caller.client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, caller.host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := caller.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.Header, response.StatusCode
}

// approverRights: a user who approves a plan needs the rights to its changes. A dry-run lists the
// rights that the user lacks.
func approverRights(t *testing.T, c *cluster.Cluster, p *process) {
	c.MustKubectlInput("{apiVersion: hco.kubevirt.io/v1alpha1, kind: ConfigurationPlan, metadata: {name: a}, spec: {profile: LoadAwareRebalancing}}", "create", "-f", "-")
	inner, err := versioned.NewForConfig(p.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	plans := inner.HcoV1alpha1().ConfigurationPlans()
	plan, err := plans.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hash := "sha256:" + strings.Repeat("a", 64)
	item := func(name string, action v1alpha1.ItemAction) v1alpha1.PlanItem {
		return v1alpha1.PlanItem{Name: name, Action: action, TargetRef: v1alpha1.TargetRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name}}
	}
	plan.Status.Phase, plan.Status.PlanHash, plan.Status.InputsHash = v1alpha1.PhaseReviewRequired, hash, governance.InputsHash(plan.Spec)
	plan.Status.Items = []v1alpha1.PlanItem{item("made", v1alpha1.ItemCreate), item("changed", v1alpha1.ItemUpdate)}
	if _, err := plans.UpdateStatus(t.Context(), plan, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	// There are two users because answers about rights are cached for some seconds.
	for _, user := range []string{"reads-approver", "reads-able"} {
		c.MustKubectl("create", "clusterrolebinding", user, "--clusterrole=penstock-plan-approver", "--user="+user)
	}
	c.MustKubectlInput(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reads-able, namespace: default}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [create, patch]}]}`, "create", "-f", "-")
	c.MustKubectl("create", "rolebinding", "reads-able", "--role=reads-able", "--user=reads-able", "--namespace=default")
	approval := fmt.Sprintf(`{"apiVersion":"hco.kubevirt.io/v1alpha1","kind":"PlanApprovalRequest","spec":{"planHash":%q}}`, hash)
	approve := func(user, query string) cluster.Output {
		return c.User(user).KubectlInput(approval, "create", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/a/approve"+query, "-f", "-")
	}
	for _, query := range []string{"?dryRun=All", ""} {
		eventually(t, "the answer that names the rights", func() error {
			out := approve("reads-approver", query)
			return missing(out.Stderr, []string{"Forbidden", "you cannot create configmaps default/made, patch configmaps default/made, patch configmaps default/changed"})
		})
	}
	if plan, err = plans.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || plan.Status.Approval != nil {
		t.Errorf("the plan is approved: %+v, %v", plan.Status.Approval, err)
	}

	for _, query := range []string{"?dryRun=All", ""} {
		eventually(t, "an approval with all rights", func() error {
			if out := approve("reads-able", query); out.ExitCode != 0 {
				return missingError{out.String()}
			}
			return nil
		})
	}
	if plan, err = plans.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || plan.Status.Approval == nil {
		t.Errorf("the plan is not approved: %v", err)
	}
}

// checkInstallation: a client finds each part of an installation that the test breaks.
func checkInstallation(t *testing.T, c *cluster.Cluster, p *process) {
	const olm, hco = "apiservice v1alpha1.olm.operatorframework.io", "apiservice v1alpha1.hco.kubevirt.io"
	all := finds(t, c.Config())
	for _, name := range []string{
		"cluster", olm, hco, "certificate authority of v1alpha1.olm.operatorframework.io",
		"discovery olm.operatorframework.io/v1alpha1", "discovery hco.kubevirt.io/v1alpha1",
		"store of clusterextensionrevisions", "store of configurationplans", "may deploy and pause", "may approve plans", "version",
	} {
		if all[name].State != check.OK {
			t.Errorf("%s: %+v", name, all[name])
		}
	}
	if found := all["version"].Found; !strings.Contains(found, readsVersion) || !strings.Contains(found, "v9") {
		t.Errorf("the versions are %q", found)
	}
	// A caller who cannot see a part gets no error about it.
	few := finds(t, c.User("reads-nobody").Config())
	for name, state := range map[string]check.State{olm: check.Unknown, "store of configurationplans": check.Unknown, "may see extensions": check.Denied} {
		if few[name].State != state {
			t.Errorf("a user without rights: %s: %+v, want %s", name, few[name], state)
		}
	}

	becomes := func(what string, want ...string) {
		t.Helper()
		n := 0
		eventually(t, what, func() error {
			n++ // kube-apiserver checks again when the object changes
			c.Kubectl("annotate", "apiservice", "v1alpha1.olm.operatorframework.io", "--overwrite", fmt.Sprintf("look-again=%s-%d", what[:1], n))
			all := finds(t, c.Config())
			found, alone := all[olm]
			if !alone { // by now, the other APIService fails too
				found = all["penstock"]
			}
			if found.State != check.Failed {
				return missingError{fmt.Sprintf("%+v", found)}
			}
			return missing(found.Found+found.Next, want)
		})
	}
	port := fmt.Sprint(p.Port)
	p.halt(t)
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	_ = other.Listener.Close()
	other.Listener = listener
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	other.StartTLS()
	becomes("another certificate", "x509", "caBundle")
	other.Close()
	becomes("nobody there", "connection refused", "Pod of Penstock")
	c.MustKubectl("delete", "apiservice", "v1alpha1.olm.operatorframework.io")
	becomes("no registration", "it is not there", "--register")

	config := c.Config()
	config.Host = "https://127.0.0.1:1"
	if found := finds(t, config); len(found) != 1 || found["cluster"].State != check.Failed {
		t.Errorf("without a cluster: %+v", found)
	}
}

// finds runs all checks and returns their results by name.
func finds(t *testing.T, config *rest.Config) map[string]check.Result {
	t.Helper()
	results, err := check.Run(t.Context(), check.Options{Config: config, Version: "v9", Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]check.Result{}
	for _, result := range results {
		found[result.Name] = result
	}
	return found
}
