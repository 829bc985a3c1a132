//go:build integration

package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

const (
	// readerUser is the user that live diffs read the cluster as.
	readerUser = "system:serviceaccount:penstock-system:penstock-reader"
	// liveSecret and otherSecret must not appear in any answer.
	liveSecret, otherSecret = "hunter2-as-rolled-out", "hunter3-as-changed"
)

// The objects of the revisions, in the namespaces a and b.
const (
	liveSettings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: a, labels: {team: red}}, data: {colour: %q, size: "1"}}`
	liveCreds    = `{apiVersion: v1, kind: Secret, metadata: {name: creds, namespace: a}, stringData: {password: %q}}`
	liveDoomed   = `{apiVersion: v1, kind: ConfigMap, metadata: {name: doomed, namespace: a}, data: {k: v}}`
	liveElse     = `{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: b}, data: {k: %q}}`
	liveFresh    = `{apiVersion: v1, kind: ConfigMap, metadata: {name: fresh, namespace: a}, data: {k: v}}`
	liveLater    = `{apiVersion: v1, kind: ConfigMap, metadata: {name: later, namespace: later}, data: {k: v}}`
	liveSpace    = `{apiVersion: v1, kind: Namespace, metadata: {name: later}}`
	liveKind     = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gizmos.example.com}, spec: {group: example.com, scope: Namespaced, names: {kind: Gizmo, listKind: GizmoList, plural: gizmos, singular: gizmo}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
	liveGizmo    = `{apiVersion: example.com/v1, kind: Gizmo, metadata: {name: gizmo, namespace: a}, spec: {k: v}}`
	liveRole     = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: live-wide}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`
	liveTaken    = `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: a}, data: {k: v}}`
	liveInvalid  = `{apiVersion: v1, kind: Service, metadata: {name: invalid, namespace: a}, spec: {ports: [{port: 99999999, targetPort: 80}]}}`
)

func liveRevision(number int, lifecycle string, objects ...string) string {
	out := fmt.Sprintf("apiVersion: olm.operatorframework.io/v1alpha1\nkind: ClusterExtensionRevision\nmetadata: {name: live-%d}\nspec:\n  revision: %d\n  lifecycleState: %s\n  phases:\n  - name: all\n    objects:\n", number, number, lifecycle)
	for _, object := range objects {
		out += "    - object: " + object + "\n"
	}
	return out
}

// liveHost is a cluster with the program and one extension. One revision of it was rolled out and
// is paused. The next one is not rolled out.
type liveHost struct {
	*cluster.Cluster
	program *penstock.Program
	dir     string
	server  *penstock.Server
}

func (w *liveHost) in(t *testing.T) *liveHost {
	return &liveHost{Cluster: w.Cluster.In(t), program: w.program, dir: w.dir, server: w.server}
}

// TestLive: diffs between a revision and the cluster, through the aggregator, as several users.
func TestLive(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	w := &liveHost{Cluster: c, program: penstock.Build(t), dir: dataDir(t)}
	w.server = w.program.Serve(t, c, w.dir)
	for _, ns := range []string{"a", "b"} {
		c.MustKubectl("create", "namespace", ns)
	}
	first := []string{fmt.Sprintf(liveSettings, "red"), fmt.Sprintf(liveCreds, liveSecret), liveDoomed, fmt.Sprintf(liveElse, "1")}
	c.MustKubectlInput(liveRevision(1, "Active", first...), "create", "-f", "-")
	c.MustKubectl("wait", "--for=condition=Succeeded", "cer/live-1", poll.TimeoutFlag)
	c.MustKubectl("patch", "cer", "live-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Paused"}}`)
	c.MustKubectlInput(liveRevision(2, "Paused", fmt.Sprintf(liveSettings, "blue"), fmt.Sprintf(liveCreds, otherSecret), fmt.Sprintf(liveElse, "2"),
		liveFresh, liveSpace, liveLater, liveKind, liveGizmo, liveRole, liveTaken, liveInvalid), "create", "-f", "-")
	c.MustKubectl("create", "configmap", "theirs", "--namespace=a", "--from-literal=k=theirs")
	grantReaders(t, c)

	for _, step := range []struct {
		name string
		do   func(*testing.T, *liveHost)
	}{
		{"AtRest", liveAtRest}, {"Upgrade", liveUpgrade}, {"Drift", liveDrift}, {"Conflict", liveConflict},
		{"Withheld", liveWithheld}, {"Narrowed", liveNarrowed}, {"Formats", liveFormats}, {"Objects", liveObjects},
		{"Identity", liveIdentity}, {"OnlyDryRuns", liveOnlyDryRuns}, {"EngineLimit", engineLimit},
	} {
		t.Run(step.name, func(t *testing.T) { step.do(t, w.in(t)) })
	}
}

// grantReaders creates users with different rights. All of them may read live diffs.
func grantReaders(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	rules := `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: live-diffs}
rules:
- {apiGroups: [olm.operatorframework.io], resources: [revisiondiffs, clusterextensionrevisions, clusterextensionrevisions/diff, clusterextensionrevisions/objects], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: live-diffs}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: live-diffs}
subjects: [{kind: Group, name: live-readers, apiGroup: rbac.authorization.k8s.io}]
`
	for user, rule := range map[string]string{
		"no-get":    `{apiGroups: ["*"], resources: ["*"], verbs: [patch, update, list]}`,
		"no-patch":  `{apiGroups: ["*"], resources: ["*"], verbs: [get, list]}`,
		"in-b":      `{apiGroups: [""], resources: [configmaps], resourceNames: [elsewhere], verbs: [get, patch]}`,
		"no-list":   `{apiGroups: ["*"], resources: ["*"], verbs: [get]}`,
		"no-create": `{apiGroups: [""], resources: [configmaps], verbs: [get, patch]}`,
	} {
		rules += fmt.Sprintf(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: live-%[1]s}
rules: [%[2]s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: live-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: live-%[1]s}
subjects: [{kind: User, name: %[1]s, apiGroup: rbac.authorization.k8s.io}]
`, user, rule)
	}
	c.MustKubectlInput(rules, "apply", "-f", "-")
}

// liveDiff has the fields of a diff that the test reads.
type liveDiff struct {
	Summary struct{ Added, Removed, Changed, Unchanged, Withheld int }
	Notes   []struct{ Severity, Reason, Kind, Name, Message string }
	Changes []struct {
		Change, Kind, Name, NotCompared string
		Fields                          []struct{ Path, Op string }
	}
}

// said returns the changes and notes as lines, sorted.
func (d liveDiff) said() []string {
	var out []string
	for _, c := range d.Changes {
		var paths []string
		for _, field := range c.Fields {
			paths = append(paths, field.Op+" "+field.Path)
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", c.Change, c.Kind, c.Name, strings.Join(paths, ", "))))
	}
	for _, n := range d.Notes {
		out = append(out, fmt.Sprintf("%s %s %s %s: %s", n.Severity, n.Reason, n.Kind, n.Name, n.Message))
	}
	slices.Sort(out)
	return out
}

// live asks until the answer is as expected. Rights and answers are cached for some seconds.
func (w *liveHost) live(t *testing.T, as *cluster.Access, name string, ok func(liveDiff) error) liveDiff {
	t.Helper()
	var got liveDiff
	eventually(t, name, func() error {
		out := as.Kubectl("get", "revisiondiff", name, "-o", "json")
		if out.ExitCode != 0 {
			return missingError{out.String()}
		}
		got = liveDiff{}
		if err := json.Unmarshal([]byte(out.Stdout), &got); err != nil {
			return err
		}
		for _, secret := range []string{liveSecret, otherSecret, "aHVudGVy"} {
			if strings.Contains(out.Stdout+out.Stderr, secret) {
				t.Fatalf("the answer has the content of a Secret:\n%s", out)
			}
		}
		return ok(got)
	})
	return got
}

// says waits until an answer has exactly these lines.
func (w *liveHost) says(t *testing.T, name string, want ...string) {
	t.Helper()
	slices.Sort(want)
	w.live(t, w.Access, name, func(d liveDiff) error {
		if diff := cmp.Diff(want, d.said()); diff != "" {
			return missingError{diff}
		}
		return nil
	})
}

func liveAtRest(t *testing.T, w *liveHost) {
	w.says(t, "live-1..live")
	if out := w.Kubectl("get", "revisiondiff", "live-1..live"); !strings.Contains(out.Stderr, "no difference between live and live-1, in 4 objects") {
		t.Errorf("there is no difference, but the output is:\n%s", out)
	}
}

// versions lists the resourceVersions of all objects that a diff could change. It leaves out the
// witness of the store, which Penstock writes at any time.
func (w *liveHost) versions() string {
	all := w.MustKubectl("get", "configmaps,secrets,services,namespaces,customresourcedefinitions,clusterroles", "--all-namespaces",
		"-o", `jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
	return strings.Join(slices.DeleteFunc(strings.Split(all, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "ConfigMap penstock-system/penstock-store ")
	}), "\n")
}

func liveUpgrade(t *testing.T, w *liveHost) {
	before, mark := w.versions(), w.Audit().Mark()
	w.says(t, "live-2..live",
		"Changed ConfigMap settings replace .data.colour",
		"Changed Secret creds replace .data.password",
		"Changed ConfigMap elsewhere replace .data.k",
		"Added ConfigMap fresh", "Added Namespace later", "Added ConfigMap later",
		"Added CustomResourceDefinition gizmos.example.com", "Added Gizmo gizmo", "Added ClusterRole live-wide",
		"Added Service invalid",
		"Removed ConfigMap doomed",
		"Critical Collision ConfigMap theirs: exists already and was not made by this extension; collision protection leaves it alone (the next revision takes it over with collisionProtection: IfNoController or None): a rollout stops here",
		"Info Deferred ConfigMap later: its namespace later does not exist yet; the same rollout makes it",
		"Info Deferred Gizmo gizmo: its kind is not served yet; the same rollout defines it",
		`Critical Refused Service invalid: the API server refuses what a rollout would write: Service "invalid" is invalid: spec.ports[0].port: Invalid value: 99999999: must be between 1 and 65535, inclusive`,
		"Warning Deleted ConfigMap doomed: will be deleted",
		"Critical RightsGained ClusterRole live-wide: gains * on *.*: any verb on any resource",
	)
	if diff := cmp.Diff(before, w.versions()); diff != "" {
		t.Errorf("a live diff changed the cluster (-before +after):\n%s", diff)
	}
	isTry := func(r plane.Request) bool { return strings.Contains(r.URI, "dryRun=All") }
	tries := w.Audit().Since(mark, isTry)
	if len(tries) == 0 {
		t.Error("no dry-run was made: the test sees nothing")
	}
	for _, r := range tries.Where(plane.Not(plane.ByUser(readerUser))) {
		t.Errorf("a dry-run by another identity: %s", r)
	}
	for _, r := range w.Audit().Since(mark, plane.ByUser(readerUser), plane.Writes(), plane.Not(isTry)) {
		t.Errorf("a write of the reader that is no dry-run: %s", r)
	}
	// Objects that cannot exist or that must not change are not tried with a dry-run.
	for _, r := range tries {
		if strings.Contains(r.URI, "theirs") || strings.Contains(r.URI, "doomed") || strings.Contains(r.URI, "gizmos/") {
			t.Errorf("an unnecessary dry-run: %s", r)
		}
	}

	// Tables right after it cost fewer requests.
	mark = w.Audit().Mark()
	w.MustKubectl("get", "revisiondiff", "live-2..live")
	w.MustKubectl("get", "revisiondiff", "live-2..live", "-o", "wide")
	if again := w.Audit().Since(mark, plane.ByUser(readerUser)); len(again) >= len(tries) {
		t.Errorf("two more diffs cost %d requests", len(again))
	}
}

func liveDrift(t *testing.T, w *liveHost) {
	w.MustKubectl("patch", "configmap", "settings", "--namespace=a", "--field-manager=mallory", "--type=merge", "-p", `{"data":{"colour":"green","extra":"mine"}}`)
	w.MustKubectl("label", "configmap", "settings", "--namespace=a", "team-")
	w.MustKubectl("patch", "secret", "creds", "--namespace=a", "--field-manager=mallory", "--type=merge", "-p", `{"stringData":{"password":"`+otherSecret+`"}}`)
	w.MustKubectl("delete", "configmap", "doomed", "--namespace=a")
	w.MustKubectl("label", "configmap", "elsewhere", "--namespace=b", "penstock.dev/chain-")
	w.says(t, "live-1..live",
		"Changed ConfigMap settings replace .data.colour, add .metadata.labels",
		"Changed Secret creds replace .data.password",
		"Added ConfigMap doomed",
		"Warning Drift ConfigMap settings: was changed since it was rolled out: .data.colour by mallory; .metadata.labels was removed",
		"Warning Drift Secret creds: was changed since it was rolled out: .data.password by mallory",
		"Warning Drift ConfigMap doomed: was rolled out, and was deleted since: a rollout creates it again",
		"Info Drift ConfigMap elsewhere: labels, annotations or managedFields by which Penstock recognizes it were changed: a rollout sets them again",
	)
	t.Logf("\n%s", w.Kubectl("get", "revisiondiff", "live-1..live"))
	t.Logf("\n%s", w.Kubectl("get", "revisiondiff", "live-1..live", "-o", "yaml"))
}

func liveConflict(t *testing.T, w *liveHost) {
	d := w.live(t, w.Access, "live-2..live", func(d liveDiff) error {
		return missing(strings.Join(d.said(), "\n"), []string{"Warning Conflict ConfigMap settings: another field manager has fields of it, and takes .data.colour of mallory"})
	})
	if d.Summary.Withheld != 0 {
		t.Errorf("withheld from an administrator: %+v", d.Summary)
	}
	t.Logf("\n%s", w.Kubectl("get", "revisiondiff", "live-2..live"))
}

// liveNames returns words that must not appear in an answer that withholds everything.
func liveNames() []string {
	return []string{"settings", "creds", "doomed", "elsewhere", "fresh", "later", "gizmo", "Gizmo", "live-wide", "theirs", "invalid", "mallory", "colour", "99999", "ConfigMap", "Secret", "penstock-reader"}
}

func liveWithheld(t *testing.T, w *liveHost) {
	cases := map[string]struct {
		reason   string
		name     string
		withheld int
		said     []string
		not      []string
	}{
		"no-get":   {"what they cannot get is not there", "live-2..live", 12, nil, liveNames()},
		"no-patch": {"nor what they cannot patch, but for what goes", "live-1..live", 4, nil, liveNames()},
		"in-b": {"rights to one object in one namespace", "live-1..live", 3,
			[]string{"Info Drift ConfigMap elsewhere: labels, annotations or managedFields by which Penstock recognizes it were changed: a rollout sets them again"},
			slices.DeleteFunc(liveNames(), func(name string) bool { return name == "elsewhere" || name == "ConfigMap" })},
		"no-create": {"what they cannot create is not tried for them", "live-2..live", 6,
			[]string{
				"Changed ConfigMap settings replace .data.colour, add .metadata.labels", "Changed ConfigMap elsewhere replace .data.k", "Added ConfigMap fresh", "Added ConfigMap later",
				"Critical Collision ConfigMap theirs: exists already and was not made by this extension; collision protection leaves it alone (the next revision takes it over with collisionProtection: IfNoController or None): a rollout stops here",
				"Warning Conflict ConfigMap settings: another field manager has fields of it, and takes .data.colour of mallory",
				"Info NotTried ConfigMap fresh: the API server was not asked about it, as you cannot create it",
				"Info NotTried ConfigMap later: the API server was not asked about it, as you cannot create it",
			},
			[]string{"creds", "gizmo", "Gizmo", "live-wide", "invalid"}},
	}
	for user, tc := range cases {
		t.Run(user, func(t *testing.T) {
			w := w.in(t)
			as := w.User(user, "live-readers")
			slices.Sort(tc.said)
			mark := w.Audit().Mark()
			w.live(t, as, tc.name, func(d liveDiff) error {
				if diff := cmp.Diff(tc.said, d.said()); diff != "" || d.Summary.Withheld != tc.withheld {
					return missingError{fmt.Sprintf("%s: withheld %d of %d\n%s", tc.reason, d.Summary.Withheld, tc.withheld, diff)}
				}
				return nil
			})
			for _, format := range []string{"wide", "yaml", "json"} {
				out := as.Kubectl("get", "revisiondiff", tc.name, "-o", format)
				for _, name := range tc.not {
					if strings.Contains(out.Stdout+out.Stderr, name) {
						t.Errorf("%s: %q shows:\n%s", tc.reason, name, out)
					}
				}
			}
			for _, r := range w.Audit().Since(mark, plane.ByUser(readerUser)) {
				for _, name := range tc.not {
					if r.Name == name {
						t.Errorf("%s: the host was asked: %s", tc.reason, r)
					}
				}
			}
		})
	}
}

func liveNarrowed(t *testing.T, w *liveHost) {
	raw := w.MustKubectl("get", "--raw", "/apis/olm.operatorframework.io/v1alpha1/revisiondiffs/live-2..live?objectName=settings&unified=false")
	var d liveDiff
	if err := json.Unmarshal([]byte(raw), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Changes) != 1 || d.Changes[0].Name != "settings" || d.Summary.Withheld != 0 || strings.Contains(raw, "doomed") || strings.Contains(raw, `"unified"`) {
		t.Errorf("the diff has more than the requested object:\n%s", raw)
	}
}

func liveFormats(t *testing.T, w *liveHost) {
	for _, format := range []string{"yaml", "json", "name", "wide", "jsonpath={.summary.changed}"} {
		if out := w.Kubectl("get", "revisiondiff", "live-2..live", "-o", format); out.ExitCode != 0 || out.Stdout == "" {
			t.Errorf("%s", out)
		}
	}
}

// liveIdentity: without its identity, live diffs are refused with an instruction, and everything
// else works. A start creates the identity again.
func liveIdentity(t *testing.T, w *liveHost) {
	broken := func(want ...string) {
		t.Helper()
		eventually(t, "the refusal", func() error {
			out := w.Kubectl("get", "revisiondiff", "live-2..live")
			if out.ExitCode == 0 {
				return missingError{"the request was answered"}
			}
			if err := missing(out.String(), append(want, "ServiceUnavailable", "--register", "penstock-reader")); err != nil {
				return missingError{err.Error() + "\n" + out.String()}
			}
			return nil
		})
		w.MustKubectl("get", "revisiondiff", "live-1..live-2")
	}
	// Without the mark, Penstock would create it again at once.
	const mark = "penstock.dev/unregistered-at"
	w.MustKubectl("annotate", "namespace", "penstock-system", mark+"=now")
	w.MustKubectl("delete", "clusterrolebinding", "penstock-reader")
	broken("cannot get")
	w.MustKubectl("delete", "serviceaccount", "penstock-reader", "--namespace=penstock-system")
	broken("there is no ServiceAccount penstock-system/penstock-reader")

	w.MustKubectl("annotate", "namespace", "penstock-system", mark+"-")
	w.server.Stop(t)
	w.server = w.program.Serve(t, w.Cluster, w.dir)
	eventually(t, "the answer", func() error {
		if out := w.Kubectl("get", "revisiondiff", "live-2..live"); out.ExitCode != 0 {
			return missingError{out.String()}
		}
		return nil
	})
}

// liveOnlyDryRuns: the reader's identity cannot write anything.
func liveOnlyDryRuns(t *testing.T, w *liveHost) {
	as := "--as=" + readerUser
	const refusal = "it writes nothing"
	eventually(t, "the policy", func() error {
		return missing(w.Kubectl("create", "configmap", "written", "--namespace=a", as).Stderr, []string{refusal})
	})
	for _, args := range [][]string{
		{"patch", "configmap", "settings", "--namespace=a", "--type=merge", "-p", `{"data":{"k":"v"}}`},
		{"create", "token", "penstock-reader", "--namespace=penstock-system"},
	} {
		if out := w.Kubectl(append(args, as)...); out.ExitCode == 0 || !strings.Contains(out.Stderr, refusal) {
			t.Errorf("the request was not refused: %s", out)
		}
	}
	if out := w.Kubectl("create", "configmap", "written", "--namespace=a", as, "--dry-run=server"); out.ExitCode != 0 {
		t.Errorf("a dry-run failed: %s", out)
	}
}

// engineLimit: the engine's identity can write objects but no subresources, which would allow more
// than that.
func engineLimit(t *testing.T, w *liveHost) {
	const as, refusal = "--as=system:serviceaccount:penstock-system:penstock-engine", "no use for their subresources"
	w.MustKubectl("create", "service", "clusterip", "limits", "--tcp=80:80", "--namespace=a", as)
	eventually(t, "the policy", func() error {
		return missing(w.Kubectl("create", "token", "penstock-reader", "--namespace=penstock-system", as).Stderr, []string{refusal})
	})
	const proxy = "/api/v1/namespaces/a/services/limits:80/proxy/"
	for _, args := range [][]string{
		{"patch", "service", "limits", "--namespace=a", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[{"type":"Up","status":"True","reason":"Said","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
		{"get", "--raw", proxy},
		{"create", "--raw", proxy, "-f", "/dev/null"},
	} {
		if out := w.Kubectl(append(args, as)...); out.ExitCode == 0 || !strings.Contains(out.Stderr, refusal) {
			t.Errorf("the request was not refused: %s", out)
		}
	}
	w.MustKubectl("patch", "service", "limits", "--namespace=a", "--type=merge", "-p", `{"metadata":{"labels":{"a":"b"}}}`, as)
	w.MustKubectl("delete", "service", "limits", "--namespace=a", as)
}
