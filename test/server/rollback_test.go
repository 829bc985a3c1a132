//go:build integration

package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// rolled is a host with the real program, which a test may kill.
type rolled struct {
	*cluster.Cluster
	// outsider makes the requests of users and of controllers.
	outsider dynamic.Interface
	program  *penstock.Program
	dataDir  string
	server   *penstock.Server
}

// TestRollback tests with the real program: onFailure, the hold after a rollback, the freeze, the
// deletion budget and the soak time.
func TestRollback(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	outsider, err := dynamic.NewForConfig(c.User("outsider", "system:masters").Config())
	if err != nil {
		t.Fatal(err)
	}
	r := &rolled{Cluster: c, outsider: outsider, program: penstock.Build(t), dataDir: penstock.DataDir(t)}
	r.server = r.serve(t)
	t.Run("on failure", func(t *testing.T) { r.in(t).onFailure("failed", func() {}) })
	top := t
	t.Run("on failure, killed when the revision is there", func(t *testing.T) {
		r.in(t).onFailure("killed", func() {
			r.server.Kill(t)
			r.server = r.serve(top)
		})
	})
	t.Run("on failure, nothing to go back to", func(t *testing.T) { r.in(t).nothingBefore() })
	t.Run("held", func(t *testing.T) { r.in(t).holds() })
	t.Run("frozen", func(t *testing.T) { r.in(t).freezes() })
	t.Run("budget", func(t *testing.T) { r.in(t).asks() })
	t.Run("versioned names", func(t *testing.T) { r.in(t).upgrades() })
	t.Run("metric check", func(t *testing.T) { r.in(t).measures() })
	t.Run("drift reported", func(t *testing.T) { r.in(t).reportsDrift() })
	t.Run("soak", func(t *testing.T) { r.in(t).soaks() })
}

// serve runs the program without the plugin that would reject the write in overdue.
func (r *rolled) serve(t testing.TB) *penstock.Server {
	return r.program.Serve(t, r.Cluster, r.dataDir, "--disable-admission-plugins=Privilege")
}

func (r *rolled) in(t *testing.T) rolledBack {
	return rolledBack{Cluster: r.Cluster.In(t), outsider: r.outsider, t: t}
}

// rolledBack is the state of one subtest.
type rolledBack struct {
	*cluster.Cluster
	outsider dynamic.Interface
	t        *testing.T
}

func (s rolledBack) revisions() dynamic.ResourceInterface {
	return s.outsider.Resource(olmv1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"))
}

// submit creates a revision. It has a ConfigMap whose data is the number, and further objects.
func (s rolledBack) submit(chain string, number int, spec map[string]any, more ...any) {
	s.t.Helper()
	objects := []any{map[string]any{"object": map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": chain, "namespace": "default"}, "data": map[string]any{"n": fmt.Sprint(number)},
	}}}
	for _, object := range more {
		objects = append(objects, map[string]any{"object": object})
	}
	body := map[string]any{"revision": int64(number), "phases": []any{map[string]any{"name": "all", "objects": objects}}}
	for key, value := range spec {
		body[key] = value
	}
	revision := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtensionRevision",
		"metadata": map[string]any{"name": fmt.Sprintf("%s-%d", chain, number)}, "spec": body,
	}}
	if owner, owned := spec["owner"]; owned {
		delete(body, "owner")
		revision.SetOwnerReferences([]metav1.OwnerReference{owner.(metav1.OwnerReference)})
	}
	if _, err := s.revisions().Create(context.Background(), revision, metav1.CreateOptions{}); err != nil {
		s.t.Fatalf("creating %s: %v", revision.GetName(), err)
	}
}

// submitPhases creates a revision with these phases.
func (s rolledBack) submitPhases(chain string, number int, phases []any) {
	s.t.Helper()
	revision := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtensionRevision",
		"metadata": map[string]any{"name": fmt.Sprintf("%s-%d", chain, number)},
		"spec":     map[string]any{"revision": int64(number), "phases": phases},
	}}
	if _, err := s.revisions().Create(context.Background(), revision, metav1.CreateOptions{}); err != nil {
		s.t.Fatalf("creating %s: %v", revision.GetName(), err)
	}
}

// condition returns a condition of a revision as "Status/Reason message".
func (s rolledBack) condition(name, kind string) string {
	live, err := s.revisions().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, item := range conditions {
		if c := item.(map[string]any); c["type"] == kind {
			return fmt.Sprintf("%s/%s %s", c["status"], c["reason"], c["message"])
		}
	}
	return ""
}

func (s rolledBack) until(name, kind, want string) {
	s.t.Helper()
	poll.Eventually(s.t, fmt.Sprintf("%s of %s to be %q", kind, name, want), func() (bool, string) {
		got := s.condition(name, kind)
		return strings.HasPrefix(got, want), got
	})
}

// annotate sets an annotation of a revision.
func (s rolledBack) annotate(name, key, value string) {
	s.t.Helper()
	s.merge(name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
}

func (s rolledBack) merge(name, patch string) {
	s.t.Helper()
	if _, err := s.revisions().Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		s.t.Fatalf("patching %s: %v", name, err)
	}
}

// overdue makes a rollout look as if it began an hour ago, and triggers a reconcile.
func (s rolledBack) overdue(name string) {
	s.t.Helper()
	s.until(name, "Progressing", "True/RollingOut")
	poll.Eventually(s.t, "status to be written", func() (bool, string) {
		live, err := s.revisions().Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		for _, item := range conditions {
			if c := item.(map[string]any); c["type"] == "Progressing" {
				c["lastTransitionTime"] = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
			}
		}
		if err := unstructured.SetNestedSlice(live.Object, conditions, "status", "conditions"); err != nil {
			return false, err.Error()
		}
		_, err = s.revisions().UpdateStatus(context.Background(), live, metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	s.annotate(name, "kubernetes.io/change-cause", "an hour later")
}

func (s rolledBack) stuck(chain string) map[string]any {
	labels := map[string]any{"app": chain}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": chain, "namespace": "default"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "registry.example/none"}}},
		}},
	}
}

// onFailure submits a second revision whose Deployment never becomes available. It calls meanwhile
// when the third revision exists.
func (s rolledBack) onFailure(chain string, meanwhile func()) {
	wantsBack := map[string]any{"onFailure": "Rollback", "progressDeadlineMinutes": int64(1)}
	s.submit(chain, 1, wantsBack)
	s.until(chain+"-1", "Succeeded", "True")
	s.submit(chain, 2, wantsBack, s.stuck(chain))
	s.overdue(chain + "-2")
	third := s.third(chain)
	meanwhile()
	s.until(chain+"-2", "RolledBack", fmt.Sprintf("True/ProgressDeadlineExceeded %s-3 brings back the content of %s-1: %s-2 did not succeed within 1 minute", chain, chain, chain))
	s.until(chain+"-3", "Succeeded", "True")
	deployments := s.outsider.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("default")
	poll.Eventually(s.t, "the failed revision to be gone from the cluster", func() (bool, string) {
		_, err := deployments.Get(context.Background(), chain, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	if n := s.value(chain); n != "1" {
		s.t.Errorf("the ConfigMap is of revision %s", n)
	}
	if uid := s.third(chain); uid != third {
		s.t.Errorf("the rollback was replaced: %s, was %s", uid, third)
	}
	if _, err := s.revisions().Get(context.Background(), chain+"-4", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		s.t.Errorf("a second rollback exists, or the read failed: %v", err)
	}
}

// third waits for the revision that a rollback creates.
func (s rolledBack) third(chain string) types.UID {
	s.t.Helper()
	var uid types.UID
	poll.Eventually(s.t, "the rollback", func() (bool, string) {
		live, err := s.revisions().Get(context.Background(), chain+"-3", metav1.GetOptions{})
		if err != nil {
			return false, err.Error() + "\n" + s.condition(chain+"-2", "RolledBack")
		}
		uid = live.GetUID()
		of := live.GetAnnotations()["penstock.dev/rollback-of"]
		return of == chain+"-1", "it is a rollback of " + of
	})
	return uid
}

func (s rolledBack) nothingBefore() {
	s.submit("first", 1, map[string]any{"onFailure": "Rollback", "progressDeadlineMinutes": int64(1)}, s.stuck("first"))
	s.overdue("first-1")
	s.until("first-1", "RolledBack", "False/NoEarlierSuccess")
	s.until("first-1", "Stalled", "True/ProgressDeadlineExceeded")
}

func (s rolledBack) holds() {
	owner := s.extension("held")
	owned := func() map[string]any { return map[string]any{"owner": owner} }
	s.submit("held", 1, owned())
	s.until("held-1", "Succeeded", "True")
	s.submit("held", 2, owned())
	s.until("held-2", "Succeeded", "True")
	s.rollback("held-1")
	s.until("held-3", "Held", "True/IsRollback held-3 is a rollback: ClusterExtension held makes no revision until its generation is above 1, or")
	extensions := schema.GroupVersionResource{Group: "olm.operatorframework.io", Version: "v1", Resource: "clusterextensions"}
	if _, err := s.outsider.Resource(extensions).Patch(context.Background(), "held", types.MergePatchType, []byte(`{"spec":{"progressDeadlineMinutes":20}}`), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.until("held-3", "Held", "False/Released ClusterExtension held has generation 2")
	s.rollback("held-2")
	s.until("held-4", "Held", "True/IsRollback held-4 is a rollback: ClusterExtension held makes no revision until its generation is above 2, or")
	s.annotate("held-4", "penstock.dev/release-hold", "held-4")
	s.until("held-4", "Held", "False/Released released by the annotation on held-4")
}

// extension creates a ClusterExtension.
func (s rolledBack) extension(name string) metav1.OwnerReference {
	s.t.Helper()
	extension := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"namespace": "default", "source": map[string]any{"sourceType": "Catalog", "catalog": map[string]any{"packageName": name}}},
	}}
	extensions := schema.GroupVersionResource{Group: "olm.operatorframework.io", Version: "v1", Resource: "clusterextensions"}
	var made *unstructured.Unstructured
	poll.Eventually(s.t, "the kind to be served", func() (bool, string) {
		var err error
		made, err = s.outsider.Resource(extensions).Create(context.Background(), extension, metav1.CreateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	return *metav1.NewControllerRef(made, schema.GroupVersionKind{Group: "olm.operatorframework.io", Version: "v1", Kind: "ClusterExtension"})
}

func (s rolledBack) rollback(to string) {
	s.t.Helper()
	body := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "RevisionRollback", "metadata": map[string]any{"name": to},
	}}
	if _, err := s.revisions().Create(context.Background(), body, metav1.CreateOptions{}, "rollback"); err != nil {
		s.t.Fatalf("rolling back to %s: %v", to, err)
	}
}

func (s rolledBack) soaks() {
	s.submit("soak", 1, map[string]any{"successDelaySeconds": int64(3600)})
	s.until("soak-1", "Succeeded", "False/Soaking all objects are available; the revision succeeds if they still are at ")
	s.until("soak-1", "Available", "True")
	// The end of the delay is noticed although no object changes.
	since := time.Now()
	live, err := s.revisions().Get(context.Background(), "soak-1", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	soon := int(since.Sub(live.GetCreationTimestamp().Time).Seconds()) + 3
	s.merge("soak-1", fmt.Sprintf(`{"spec":{"successDelaySeconds":%d}}`, soon))
	s.until("soak-1", "Succeeded", "True/RolledOut")
}

// reportsDrift: a change by another user is reported instead of repaired until its annotation is
// gone. A change of a role is repaired all the same.
func (s rolledBack) reportsDrift() {
	role := map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": map[string]any{"name": "drift", "namespace": "default"},
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}}}}
	s.submit("drift", 1, map[string]any{}, role)
	s.until("drift-1", "Succeeded", "True")
	_, err := s.revisions().Patch(context.Background(), "drift-1", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`,
		olmv1alpha1.ReportDriftUntilAnnotation, time.Now().Add(8*24*time.Hour).Format(time.RFC3339)), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "must be at most seven days ahead") {
		s.t.Errorf("eight days: %v", err)
	}
	s.annotate("drift-1", olmv1alpha1.ReportDriftUntilAnnotation, time.Now().Add(time.Hour).Format(time.RFC3339))
	s.until("drift-1", "DriftReported", "True/NoDrift")
	configMaps := s.outsider.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	if _, err := configMaps.Patch(context.Background(), "drift", types.MergePatchType, []byte(`{"data":{"n":"mine"}}`), metav1.PatchOptions{FieldManager: "alice"}); err != nil {
		s.t.Fatal(err)
	}
	roles := s.outsider.Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}).Namespace("default")
	if _, err := roles.Patch(context.Background(), "drift", types.MergePatchType, []byte(`{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`), metav1.PatchOptions{FieldManager: "mallory"}); err != nil {
		s.t.Fatal(err)
	}
	s.until("drift-1", "DriftReported", "True/DriftFound 1 object changed since the rollout; Penstock repairs that at ")
	if got := s.condition("drift-1", "DriftReported"); !strings.Contains(got, "ConfigMap default/drift: ") || !strings.Contains(got, "alice") {
		s.t.Errorf("DriftReported is %s", got)
	}
	poll.Eventually(s.t, "the role to be repaired", func() (bool, string) {
		live, err := roles.Get(context.Background(), "drift", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		rules := fmt.Sprint(live.Object["rules"])
		return strings.Contains(rules, "configmaps") && !strings.Contains(rules, "*"), rules
	})
	if n := s.value("drift"); n != "mine" {
		s.t.Errorf("the ConfigMap has %q", n)
	}
	s.until("drift-1", "Ready", "True")
	s.merge("drift-1", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, olmv1alpha1.ReportDriftUntilAnnotation))
	poll.Eventually(s.t, "the ConfigMap to be repaired", func() (bool, string) { n := s.value("drift"); return n == "1", n })
	poll.Eventually(s.t, "the condition to be gone", func() (bool, string) { c := s.condition("drift-1", "DriftReported"); return c == "", c })
}
