//go:build integration

package rollout_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// killer runs the program on a cluster, with a toll between them.
type killer struct {
	targetCluster
	program *penstock.Program
	dataDir string
	gate    *toll
	server  *penstock.Server
	// top is the test that owns the program.
	top *testing.T
	// restarts counts the restarts. took is their total duration.
	restarts int
	took     time.Duration
}

// TestKill kills the program after its k-th write to the cluster and starts it again. It tries
// every twelfth k of an install, a deletion and an upgrade of the example. FULL=1 tries every k.
// TestCrash, and without a cluster TestCrashAfterEveryWrite of pkg/rollout, test the engine alone.
func TestKill(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.runControllers()
	w.finalizeNamespaces()
	k := &killer{targetCluster: w, top: t, program: penstock.Build(t), dataDir: penstock.DataDir(t), gate: newToll(t, w.Config())}
	k.server = k.program.Serve(t, k.gate, k.dataDir)
	step := 12
	if os.Getenv("FULL") == "1" {
		step = 1
	}
	t.Run("install", func(t *testing.T) {
		k.enumerate(t, step, func(t *testing.T, n int) bool { return k.in(t).install(n) })
	})
	t.Run("delete", func(t *testing.T) {
		k.enumerate(t, step, func(t *testing.T, n int) bool { return k.in(t).delete(n) })
	})
	t.Run("upgrade", func(t *testing.T) {
		k.enumerate(t, step, func(t *testing.T, n int) bool { return k.in(t).upgrade(n) })
	})
	t.Logf("%d restarts took %s, until the API was served again", k.restarts, k.took)
}

// enumerate runs a scene for each k until the program finishes before its k-th write.
func (k *killer) enumerate(t *testing.T, step int, scene func(*testing.T, int) bool) {
	killed := 0
	for n, more := 1, true; more; n += step {
		t.Run(fmt.Sprint(n), func(t *testing.T) { more = scene(t, n) })
		if more {
			killed++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("killed %d times, behind every %d. write", killed, step)
}

// attempt is the killer for one subtest.
type attempt struct {
	*killer
	targetCluster
	t *testing.T
}

func (k *killer) in(t *testing.T) attempt {
	return attempt{killer: k, targetCluster: k.targetCluster.in(t), t: t}
}

// install rolls out version 1.0.0 and kills the program meanwhile.
func (a attempt) install(n int) bool {
	name := fmt.Sprintf("inst%d", n)
	one := a.render(name, 1, "v1.0.0")
	killed := a.dieDuring(n, func() { a.submit(one) }, func() (bool, string) { return a.succeeded(one) })
	a.compare(name, one)
	return killed
}

// delete deletes the only revision and kills the program meanwhile.
func (a attempt) delete(n int) bool {
	name := fmt.Sprintf("del%d", n)
	one := a.render(name, 1, "v1.0.0")
	a.submit(one)
	poll.Eventually(a.t, "the revision to succeed", func() (bool, string) { return a.succeeded(one) })
	killed := a.dieDuring(n, func() {
		poll.Eventually(a.t, "the deletion to be accepted", func() (bool, string) {
			err := a.outsider.Resource(revisionsOf()).Delete(context.Background(), one.name, metav1.DeleteOptions{})
			return err == nil || isGone(err), fmt.Sprint(err)
		})
	}, func() (bool, string) {
		_, err := a.revision(one.name)
		return isGone(err), fmt.Sprint(err)
	})
	for _, object := range one.objects {
		if live := a.live(object); live != nil && live.GetDeletionTimestamp() == nil {
			a.t.Errorf("%s is left", idOf(live))
		}
	}
	return killed
}

// isGone reports whether a revision does not exist, as opposed to an API that does not answer.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// upgrade upgrades from 1.0.0 to 1.1.0 and kills the program meanwhile.
func (a attempt) upgrade(n int) bool {
	name := fmt.Sprintf("upg%d", n)
	one, two := a.render(name, 1, "v1.0.0"), a.render(name, 2, "v1.1.0")
	a.submit(one)
	poll.Eventually(a.t, "the first revision to succeed", func() (bool, string) { return a.succeeded(one) })
	before := a.uids(one)
	dropped := a.dropped(one, two)
	killed := a.dieDuring(n, func() { a.submit(two) }, func() (bool, string) {
		if ok, why := a.succeeded(two); !ok {
			return false, why
		}
		live, err := a.revision(one.name)
		if err != nil {
			return false, err.Error()
		}
		state, _, _ := unstructured.NestedString(live.Object, "spec", "lifecycleState")
		return state == "Archived" && a.live(dropped) == nil, state
	})
	a.compare(name, two)
	after := a.uids(two)
	for id, uid := range before {
		if now, kept := after[id]; kept && now != uid {
			a.t.Errorf("%s was replaced", id)
		}
	}
	return killed
}

// rendered is a revision as printed by penstock render.
type rendered struct {
	name    string
	text    string
	objects []map[string]any
}

// render renders the example under another name. All its names change with it, so that many copies
// fit into one cluster.
func (a attempt) render(extension string, number int, version string) rendered {
	a.t.Helper()
	dir := a.t.TempDir()
	from := filepath.Join("..", "..", "..", "artifacts", "examples", "lighthouse", version)
	entries, err := os.ReadDir(from)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, entry := range entries {
		raw, err := os.ReadFile(filepath.Join(from, entry.Name()))
		if err != nil {
			a.t.Fatal(err)
		}
		raw = []byte(strings.ReplaceAll(string(raw), "lighthouse", extension))
		if err := os.WriteFile(filepath.Join(dir, entry.Name()), raw, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	r := rendered{name: fmt.Sprintf("%s-%d", extension, number)}
	r.text = a.program.MustRun(a.t, "", "render", dir, "--extension", extension, "--revision", fmt.Sprint(number))
	var parsed struct {
		Spec struct {
			Phases []struct {
				Objects []struct{ Object map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(r.text), &parsed); err != nil {
		a.t.Fatal(err)
	}
	for _, phase := range parsed.Spec.Phases {
		for _, o := range phase.Objects {
			r.objects = append(r.objects, o.Object)
		}
	}
	if len(r.objects) < 10 {
		a.t.Fatalf("the example has %d objects: the test sees nothing", len(r.objects))
	}
	return r
}

// dropped returns the object that only the first revision has.
func (a attempt) dropped(one, two rendered) map[string]any {
	a.t.Helper()
	var kept []string
	for _, object := range two.objects {
		kept = append(kept, idOf(&unstructured.Unstructured{Object: object}).String())
	}
	for _, object := range one.objects {
		if !slices.Contains(kept, idOf(&unstructured.Unstructured{Object: object}).String()) {
			return object
		}
	}
	a.t.Fatal("the upgrade drops nothing: the test sees no pruning")
	return nil
}

func revisionsOf() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "olm.operatorframework.io", Version: "v1alpha1", Resource: "clusterextensionrevisions"}
}

func (a attempt) revision(name string) (*unstructured.Unstructured, error) {
	return a.outsider.Resource(revisionsOf()).Get(context.Background(), name, metav1.GetOptions{})
}

// submit creates a revision. It retries if the program dies before it answers.
func (a attempt) submit(r rendered) {
	a.t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(r.text), &object.Object); err != nil {
		a.t.Fatal(err)
	}
	poll.Eventually(a.t, "the revision to be accepted", func() (bool, string) {
		_, err := a.outsider.Resource(revisionsOf()).Create(context.Background(), object, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err), fmt.Sprint(err)
	})
}

// dieDuring calls ask, kills the program after its n-th write, and starts it again. It returns when
// done is true. It returns false if the program finished before its n-th write.
func (a attempt) dieDuring(n int, ask func(), done func() (bool, string)) bool {
	a.t.Helper()
	dying := a.server
	a.gate.arm(n, func() { dying.Kill(a.top) })
	// The answer to ask may be lost with the program. Then ask retries, and needs the next program.
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		ask()
	}()
	poll.Eventually(a.t, "the program to die or to be done", func() (bool, string) {
		select {
		case <-dying.Ended():
			return true, ""
		default:
		}
		ok, why := done()
		return ok, why + "\n" + dying.Log()
	})
	behind := a.gate.disarm()
	select {
	case <-dying.Ended():
		begin := time.Now()
		a.killer.server = a.program.Serve(a.top, a.gate, a.dataDir)
		a.restarts++
		a.took += time.Since(begin)
	default:
	}
	<-asked
	poll.Eventually(a.t, "the next program to finish it", func() (bool, string) {
		ok, why := done()
		return ok, why + "\n" + a.killer.server.Log()
	})
	a.t.Logf("write %d: %s", n, behind)
	return behind != ""
}

// succeeded reports whether a revision has succeeded.
func (a attempt) succeeded(r rendered) (bool, string) {
	live, err := a.revision(r.name)
	if err != nil {
		return false, err.Error()
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["type"] == "Succeeded" && condition["status"] == "True" {
			return true, ""
		}
	}
	return false, fmt.Sprint(live.Object["status"])
}

// resourceOf returns the resource of a kind of the example.
func resourceOf(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural
}

func (a attempt) live(object map[string]any) *unstructured.Unstructured {
	a.t.Helper()
	o := &unstructured.Unstructured{Object: object}
	live, err := a.outsider.Resource(resourceOf(o.GroupVersionKind())).Namespace(o.GetNamespace()).Get(context.Background(), o.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		a.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return live
}

func (a attempt) uids(r rendered) map[string]types.UID {
	a.t.Helper()
	found := map[string]types.UID{}
	for _, object := range r.objects {
		if live := a.live(object); live != nil {
			found[idOf(live).String()] = live.GetUID()
		}
	}
	return found
}

// compare checks that the cluster has exactly the objects of a revision of the extension.
func (a attempt) compare(extension string, r rendered) {
	a.t.Helper()
	var want, got []string
	kinds := map[schema.GroupVersionResource]bool{}
	for _, object := range r.objects {
		o := &unstructured.Unstructured{Object: object}
		want = append(want, idOf(o).String())
		kinds[resourceOf(o.GroupVersionKind())] = true
		live := a.live(object)
		if live == nil {
			a.t.Errorf("%s is missing", idOf(o))
			continue
		}
		if chain := live.GetLabels()[names().ChainLabel]; chain != extension {
			a.t.Errorf("%s belongs to %q", idOf(o), chain)
		}
		if path := differs(object, live.Object, ""); path != "" {
			a.t.Errorf("%s is not as the revision says at %s", idOf(o), path)
		}
	}
	for resource := range kinds {
		poll.Eventually(a.t, "nothing else to be left", func() (bool, string) {
			list, err := a.outsider.Resource(resource).List(context.Background(), metav1.ListOptions{LabelSelector: names().ChainLabel + "=" + extension})
			if err != nil {
				return false, err.Error()
			}
			var extra []string
			for i := range list.Items {
				if name := idOf(&list.Items[i]).String(); !slices.Contains(want, name) {
					extra = append(extra, name)
				} else {
					got = append(got, name)
				}
			}
			return len(extra) == 0, strings.Join(extra, ", ")
		})
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		a.t.Errorf("the objects of %s (-want +got):\n%s", extension, diff)
	}
}

// differs returns the path of the first difference between a manifest and a live object, or "". The
// example uses the server's spelling for all values.
func differs(want, live any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		have, _ := live.(map[string]any)
		for key, value := range want {
			if at := differs(value, have[key], path+"."+key); at != "" {
				return at
			}
		}
		return ""
	case []any:
		have, _ := live.([]any)
		if len(have) != len(want) {
			return path
		}
		for i := range want {
			if at := differs(want[i], have[i], fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at
			}
		}
		return ""
	default:
		if fmt.Sprint(want) != fmt.Sprint(live) {
			return path
		}
		return ""
	}
}
