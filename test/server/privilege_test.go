//go:build integration

package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// deployer is a role that may only write revisions.
const deployer = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: deployer}
rules:
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: ["*"]}
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions/rollback, clusterextensionrevisions/status], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: deployer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: deployer}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:apiserver"}
---
apiVersion: v1
kind: Namespace
metadata: {name: lighthouse}
`

// requesters tests users who may write revisions, on a real control plane.
type requesters struct {
	t *testing.T
	*cluster.Cluster
}

// as runs kubectl as a user.
func (p requesters) as(who, stdin string, args ...string) cluster.Output {
	p.t.Helper()
	return p.KubectlInput(stdin, append(args, "--as="+who)...)
}

// refuse fails the test unless the answer is 403 and names the rights that the user lacks.
func (p requesters) refuse(reason, who, stdin string, args []string, lacks ...string) {
	p.t.Helper()
	out := p.as(who, stdin, args...)
	for _, text := range append([]string{"forbidden", "a revision may only do what its requester may do"}, lacks...) {
		if !strings.Contains(out.Stderr, text) {
			p.t.Errorf("%s: the answer does not say %q: %s", reason, text, out)
		}
	}
	if out.ExitCode == 0 {
		p.t.Errorf("%s: the request was accepted: %s", reason, out)
	}
}

func (p requesters) allow(reason, who, stdin string, args ...string) {
	p.t.Helper()
	if out := p.as(who, stdin, args...); out.ExitCode != 0 {
		p.t.Errorf("%s: %s", reason, out)
	}
}

// grant gives a user rights and returns when they are effective.
func (p requesters) grant(name, namespace, who, rules, probe string) {
	p.t.Helper()
	kind, scope := "Cluster", ""
	if namespace != "" {
		kind, scope = "", ", namespace: "+namespace
	}
	p.MustKubectlInput(fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: %[1]sRole
metadata: {name: %[2]s%[3]s}
rules: %[4]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: %[1]sRoleBinding
metadata: {name: %[2]s%[3]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %[1]sRole, name: %[2]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[5]s}]
`, kind, name, scope, rules, who), "create", "-f", "-")
	args := append([]string{"auth", "can-i", "--as=" + who}, strings.Fields(probe)...)
	if namespace != "" {
		args = append(args, "-n", namespace)
	}
	eventually(p.t, "the rights of "+who, func() error {
		if out := p.Kubectl(args...); out.ExitCode != 0 {
			return missingError{out.String()}
		}
		return nil
	})
}

// drafted returns a revision of the extension lighthouse. Each object is one line of YAML.
func drafted(number int, state string, objects ...string) string {
	text := fmt.Sprintf(`apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata: {name: lighthouse-%[1]d}
spec:
  revision: %[1]d
  lifecycleState: %[2]s
  phases:
  - name: all
    objects:
`, number, state)
	for _, object := range objects {
		text += "    - " + object + "\n"
	}
	return text
}

const (
	webObject = `object: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: lighthouse}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`
	mapObject = `object: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: lighthouse}, data: {a: b}}`
	// secretReader is a ClusterRole with rights that no user of this test has.
	secretReader = `object: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get, list]}]}`
	adminBinding = `object: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: me}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]}`
)

func patchOf(number int, spec string) []string {
	return []string{"patch", "cer", fmt.Sprint("lighthouse-", number), "--type=merge", "-p", `{"spec":{` + spec + `}}`}
}

func rollbackTo(number int) []string {
	return []string{"create", "--raw", fmt.Sprintf("/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/lighthouse-%d/rollback", number), "-f", "-"}
}

// TestPrivileges: a user who may only write revisions cannot change the cluster with them. A user
// with the rights to the objects can.
func TestPrivileges(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	options := newOptions(t, c, dataDir(t))
	options.Version = "test"
	start(t, options)
	p := requesters{t, c}
	c.MustKubectlInput(deployer, "apply", "-f", "-")
	eventually(t, "the deployer's rights", func() error {
		if out := c.Kubectl("auth", "can-i", "create", "clusterextensionrevisions.olm.operatorframework.io", "--as=alice"); out.ExitCode != 0 {
			return missingError{out.String()}
		}
		return nil
	})

	t.Run("Nothing", func(t *testing.T) { p.in(t).nothing() })
	t.Run("Grants", func(t *testing.T) { p.in(t).grants() })
	t.Run("Chain", func(t *testing.T) { p.in(t).chain() })
	t.Run("Bypass", func(t *testing.T) { p.in(t).bypass() })
	t.Run("Questions", func(t *testing.T) { p.in(t).questions() })
	t.Run("Requester", func(t *testing.T) { p.in(t).requester() })
}

func (p requesters) in(t *testing.T) requesters { return requesters{t, p.In(t)} }

// nothing: without rights to the objects, no way to have them created works.
func (p requesters) nothing() {
	lacks := "alice cannot create,patch deployments.apps lighthouse/web"
	draft := drafted(1, "Active", webObject)
	p.refuse("create", "alice", draft, []string{"create", "-f", "-"}, lacks)
	p.refuse("server-side apply", "alice", draft, []string{"apply", "--server-side", "-f", "-"}, lacks)
	p.refuse("client-side apply", "alice", draft, []string{"apply", "-f", "-"}, lacks)
	p.refuse("dry-run", "alice", draft, []string{"create", "--dry-run=server", "-f", "-"}, lacks)
	p.refuse("a paused one", "alice", drafted(1, "Paused", webObject), []string{"create", "-f", "-"}, lacks)
	p.refuse("an object without a namespace", "alice", drafted(1, "Active", `object: {apiVersion: v1, kind: Namespace, metadata: {name: shore}}`),
		[]string{"create", "-f", "-"}, "create,patch namespaces shore")
	p.refuse("the name of the server itself", "system:apiserver", draft, []string{"create", "-f", "-"}, "system:apiserver cannot create")
	if out := p.MustKubectl("get", "cer", "-o", "name"); out != "" {
		p.t.Errorf("a revision was stored: %s", out)
	}
}

// grants: a requester can pass on only their own rights by roles and bindings.
func (p requesters) grants() {
	p.grant("rbac-writer", "", "bob", `[{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles, clusterrolebindings], verbs: [create, patch, delete]}]`,
		"create clusterrolebindings")
	p.refuse("a role", "bob", drafted(1, "Active", secretReader), []string{"create", "-f", "-"}, "get,list secrets (granted by ClusterRole reader)")
	p.refuse("a binding", "bob", drafted(1, "Active", adminBinding), []string{"create", "-f", "-"}, "bob lacks 2 rights on objects that they cannot read")
	p.grant("role-reader", "", "bob", `[{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [get]}]`, "get clusterroles")
	p.refuse("a binding of a role that they may read", "bob", drafted(1, "Active", adminBinding), []string{"create", "-f", "-"},
		"* *.* (granted by ClusterRoleBinding me, through ClusterRole cluster-admin)")
	p.grant("secret-reader", "", "bob", `[{apiGroups: [""], resources: [secrets], verbs: [get, list]}]`, "list secrets -A")
	p.allow("a role of what they have", "bob", drafted(1, "Active", secretReader), "create", "--dry-run=server", "-f", "-")
}

// chain: users change revisions of other users.
func (p requesters) chain() {
	p.MustKubectlInput(drafted(1, "Active", webObject, mapObject), "create", "-f", "-")
	p.MustKubectlInput(drafted(2, "Active", mapObject), "create", "-f", "-")
	p.MustKubectlInput(drafted(3, "Paused", webObject), "create", "-f", "-")
	digest := strings.TrimSpace(p.MustKubectl("get", "cer", "lighthouse-1", "-o", `jsonpath={.spec.phases[0].objects[0].digest}`))
	byDigest := drafted(4, "Active", "{apiVersion: apps/v1, kind: Deployment, namespace: lighthouse, name: web, digest: '"+digest+"'}")

	web, settings := "deployments.apps lighthouse/web", "configmaps lighthouse/settings"
	p.refuse("somebody else's content by digest", "alice", byDigest, []string{"create", "-f", "-"}, "create,patch "+web)
	p.refuse("pruning somebody else's objects", "alice", drafted(4, "Active"), []string{"create", "-f", "-"}, "delete "+settings, "delete "+web)
	p.refuse("rollback", "alice", "{}", rollbackTo(1), "create,patch "+web)
	p.refuse("un-pausing", "alice", "", patchOf(3, `"lifecycleState":"Active"`), "create,patch "+web, "delete "+settings)
	p.MustKubectl(patchOf(2, `"lifecycleState":"Archived"`)...)
	p.refuse("archiving", "alice", "", patchOf(1, `"lifecycleState":"Archived"`), "delete "+settings)
	p.refuse("deleting", "alice", "", []string{"delete", "cer", "lighthouse-1"}, "delete "+settings)
	p.refuse("orphaning", "alice", "", []string{"delete", "cer", "lighthouse-1", "--cascade=orphan"}, "patch "+settings)
	p.allow("pausing", "alice", "", patchOf(1, `"lifecycleState":"Paused"`)...)
	p.refuse("and going on", "alice", "", patchOf(1, `"lifecycleState":"Active"`), "create,patch "+web)
	p.allow("a label", "alice", "", "label", "cer", "lighthouse-1", "some=thing")
	if got := p.MustKubectl("get", "cer", "-o", "jsonpath={range .items[*]}{.metadata.name}={.spec.lifecycleState} {end}"); got != "lighthouse-1=Paused lighthouse-2=Archived lighthouse-3=Paused " {
		p.t.Errorf("revisions were changed: %s", got)
	}

	p.grant("web", "lighthouse", "alice", `[{apiGroups: ["", apps], resources: [configmaps, deployments], verbs: [create, patch]}]`, "patch deployments.apps")
	p.refuse("with create and patch there is still what goes", "alice", "", patchOf(3, `"lifecycleState":"Active"`), "delete "+settings)
	p.grant("web-delete", "lighthouse", "alice", `[{apiGroups: ["", apps], resources: [configmaps, deployments], verbs: [delete]}]`, "delete configmaps")
	p.allow("un-pausing, with the rights", "alice", "", patchOf(3, `"lifecycleState":"Active"`)...)
	p.allow("creating", "alice", byDigest, "create", "-f", "-")
	p.allow("rollback", "alice", "{}", rollbackTo(1)...)
	p.allow("archiving", "alice", "", patchOf(4, `"lifecycleState":"Archived"`)...)
	p.allow("deleting", "alice", "", "delete", "cer", "lighthouse-4", "--wait=false")
	p.refuse("another namespace", "alice", drafted(9, "Active", strings.Replace(mapObject, "namespace: lighthouse", "namespace: default", 1)),
		[]string{"create", "-f", "-"}, "create,patch configmaps default/settings")
}

// bypass: the right to bypass replaces all other rights, for one extension or for all.
func (p requesters) bypass() {
	escalating := strings.Replace(drafted(1, "Active", adminBinding), "lighthouse-1", "argocd-1", 1)
	p.refuse("without", "alice", escalating, []string{"create", "-f", "-"})
	p.grant("wildcards", "", "alice", `[{apiGroups: [olm.operatorframework.io, apps, ""], resources: ["*"], verbs: ["*"]}]`, "list secrets -A")
	p.refuse("wildcards of other groups are no bypass", "alice", escalating, []string{"create", "-f", "-"})
	p.grant("bypass", "", "alice", `[{apiGroups: [policy.penstock.dev], resources: [privilegechecks], resourceNames: [argocd], verbs: [bypass]}]`,
		"bypass privilegechecks.policy.penstock.dev/argocd")
	p.allow("bypass", "alice", escalating, "create", "--dry-run=server", "-f", "-")
	p.refuse("of another extension", "alice", strings.Replace(escalating, "argocd-1", "other-1", 1), []string{"create", "-f", "-"})
}

// questions: a create takes two access reviews per object and one more. An administrator's create
// takes one request.
func (p requesters) questions() {
	p.grant("carol", "lighthouse", "carol", `[{apiGroups: [""], resources: [configmaps], verbs: [create, patch, delete]}]`, "create configmaps")
	p.grant("carol-deployer", "", "carol", `[{apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: ["*"]}]`,
		"create clusterextensionrevisions.olm.operatorframework.io")
	for _, objects := range []int{60, 500} {
		var entries []string
		for i := range objects {
			entries = append(entries, fmt.Sprintf("object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: lighthouse}}", i))
		}
		draft := strings.ReplaceAll(drafted(1, "Active", entries...), "lighthouse-1", fmt.Sprintf("bundle%d-1", objects))
		mark, begin := p.Audit().Mark(), time.Now()
		p.allow("a large one", "carol", draft, "create", "-f", "-")
		took := time.Since(begin)
		asked := p.Audit().Since(mark, plane.ByAgent("penstock/test/privilege"))
		reviews := asked.Where(plane.ByResource("subjectaccessreviews"))
		p.t.Logf("%d objects: %d access reviews, %d requests in all, %s", objects, len(reviews), len(asked), took)
		if want := 1 + 2*objects; len(reviews) != want {
			p.t.Errorf("%d objects took %d access reviews, want %d", objects, len(reviews), want)
		}
		if rest := len(asked) - len(reviews); rest != 1 {
			p.t.Errorf("%d requests besides access reviews, want only discovery of v1: %s", rest, asked.Where(plane.Not(plane.ByResource("subjectaccessreviews"))))
		}
	}
	mark := p.Audit().Mark()
	p.MustKubectlInput(strings.ReplaceAll(drafted(1, "Active", webObject, mapObject), "lighthouse-1", "admins-1"), "create", "-f", "-")
	if asked := p.Audit().Since(mark, plane.ByAgent("penstock/test/privilege")); len(asked) != 1 {
		p.t.Errorf("an administrator's create took %d requests, want one: %s", len(asked), asked)
	}
}

// requester: the requester is recorded in status, and no user can change it.
func (p requesters) requester() {
	for _, draft := range []string{drafted(1, "Active", mapObject), drafted(2, "Active")} {
		draft = strings.ReplaceAll(draft, "lighthouse-", "stamped-")
		p.MustKubectlInput(strings.Replace(draft, "spec:", "status: {requestedBy: {username: mallory}}\nspec:", 1), "create", "-f", "-")
	}
	raw := "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/stamped-1/rollback"
	p.KubectlInput("{}", "create", "--raw", raw, "-f", "-", "--as=dave", "--as-group=system:masters", "--as-uid=42")
	forged := `{"status":{"requestedBy":{"username":"mallory","groups":["system:masters"]}}}`
	p.Kubectl("patch", "cer", "stamped-1", "--type=merge", "-p", forged)
	p.Kubectl("patch", "cer", "stamped-1", "--subresource=status", "--type=merge", "-p", forged)
	p.KubectlInput(`{apiVersion: olm.operatorframework.io/v1alpha1, kind: ClusterExtensionRevision, metadata: {name: stamped-1}, status: {requestedBy: {username: mallory}}}`,
		"apply", "--server-side", "--force-conflicts", "--subresource=status", "-f", "-")
	for name, want := range map[string]string{"stamped-1": "admin", "stamped-2": "admin", "stamped-3": "dave"} {
		if got := p.MustKubectl("get", "cer", name, "-o", "jsonpath={.status.requestedBy.username}"); got != want {
			p.t.Errorf("%s was requested by %q, want %q", name, got, want)
		}
	}
}

// TestPrivilegesWithoutHost: while the host does not answer, all writes are refused.
func TestPrivilegesWithoutHost(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	line := newLine(t, c)
	start(t, newOptions(t, line, dataDir(t)))
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	line.cut()
	for _, args := range [][]string{{"create", "-f", "-"}, {"apply", "--server-side", "-f", "-"}} {
		out := c.KubectlInput(revision("argocd", 2), args...)
		for _, text := range []string{"ServiceUnavailable", "your rights cannot be checked at the moment", "bypass privilegechecks.policy.penstock.dev argocd"} {
			if !strings.Contains(out.Stderr, text) {
				t.Errorf("the answer does not say %q: %s", text, out)
			}
		}
	}
	if got := c.MustKubectl("get", "cer", "-o", "name"); strings.Contains(got, "argocd-2") {
		t.Errorf("the revision was stored: %s", got)
	}
}

// TestPrivilegesForgedHeaders: headers of the front proxy need its certificate, and impersonation
// headers need the right to impersonate. Without them, a user does not become Penstock itself.
func TestPrivilegesForgedHeaders(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	serving := start(t, newOptions(t, c, dataDir(t)))
	c.MustKubectlInput(deployer, "apply", "-f", "-")
	alice := c.User("alice").Config()
	alice.Host, alice.ServerName = fmt.Sprintf("https://127.0.0.1:%d", serving.Port), "localhost"
	alice.CAData, alice.CAFile = serving.CABundle, ""
	body := `{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"evil-1"},"spec":{"revision":1,"phases":[{"name":"all","objects":[{"object":{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"evil"}}}]}]}}`
	client, err := rest.HTTPClientFor(alice)
	if err != nil {
		t.Fatal(err)
	}
	try := func(headers map[string]string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, alice.Host+"/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		for name, value := range headers {
			request.Header.Set(name, value)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	eventually(t, "alice's right to create revisions", func() error {
		if _, text := try(nil); !strings.Contains(text, "alice cannot create,patch namespaces evil") {
			return missingError{text}
		}
		return nil
	})
	for reason, headers := range map[string]map[string]string{
		"front proxy":         {"X-Remote-User": "system:apiserver", "X-Remote-Group": "system:masters"},
		"impersonation":       {"Impersonate-User": "system:apiserver", "Impersonate-Group": "system:masters"},
		"somebody else's key": {"Authorization": "Bearer guess"},
	} {
		if code, text := try(headers); code != http.StatusForbidden && code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", reason, code, text)
		}
	}
}

// line is a connection to the host that the test can cut.
type line struct {
	kubeconfig string
	listener   net.Listener
	mu         sync.Mutex
	open       []net.Conn
	down       bool
}

// Kubeconfig returns an administrator's kubeconfig with the address of the line.
func (l *line) Kubeconfig() string { return l.kubeconfig }

func newLine(t *testing.T, c *cluster.Cluster) *line {
	t.Helper()
	host, err := url.Parse(c.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	l := &line{listener: listener, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	redirected := strings.ReplaceAll(string(kubeconfig), host.Host, listener.Addr().String())
	if err := os.WriteFile(l.kubeconfig, []byte(redirected), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.cut)
	go l.serve(host.Host)
	return l
}

func (l *line) serve(host string) {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", host)
		if err != nil || !l.keep(near, far) {
			_ = near.Close()
			continue
		}
		go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
		go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
	}
}

func (l *line) keep(ends ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, ends...)
	return !l.down
}

// cut closes all connections and accepts no new ones.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	_ = l.listener.Close()
	for _, end := range l.open {
		_ = end.Close()
	}
}
