package extension

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// estate is a set of extensions that require each other. It computes independently what Penstock
// may begin, from the statuses in the host.
type estate struct {
	*plane
	random *rand.Rand
	names  []string
	// requires holds the requirements of each extension: a version range by the name of the other
	// extension.
	requires map[string]map[string]string
	newest   string
}

// newEstate returns extensions with random requirements. Most can be met in the estate. Some name a
// missing extension, a version that no catalog offers, or form a cycle.
func newEstate(t *testing.T, size int, seed uint64) *estate {
	t.Helper()
	e := &estate{plane: newPlane(t), random: rand.New(rand.NewPCG(seed, 0)), requires: map[string]map[string]string{}, newest: "1.0.0"}
	e.exact, e.impersonators["alice"] = true, true
	for i := range size {
		e.names = append(e.names, fmt.Sprintf("e%03d", i))
	}
	for i, name := range e.names {
		requires := map[string]string{}
		for range e.random.IntN(3) {
			if i > 0 {
				requires[e.names[e.random.IntN(i)]] = []string{"", ">=1", "<2", ">=1.0.0 <2.0.0"}[e.random.IntN(4)]
			}
		}
		switch e.random.IntN(40) {
		case 0:
			requires["absent"] = ""
		case 1:
			requires[e.names[(i+1)%size]] = ">=7"
		case 2:
			requires[e.names[(i+size/2)%size]] = ">=1.1" // the second half meets it with the next version
		case 3:
			requires[name+"-ring"] = ""
			e.requires[name+"-ring"] = map[string]string{name: ""}
		}
		e.requires[name] = requires
	}
	e.names = slices.Sorted(maps.Keys(e.requires))
	e.random.Shuffle(size, func(i, j int) { e.names[i], e.names[j] = e.names[j], e.names[i] })
	e.creating = e.mayBegin(nil)
	return e
}

func (e *estate) of(name string) map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requires[name]
}

// annotation returns the requirements of an extension in the form that users write.
func (e *estate) annotation(name string) string {
	var all []string
	for other, of := range e.of(name) {
		all = append(all, other+of)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (e *estate) writes(name string) {
	e.applyTo(name, func(object *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(object.Object, "installer", "spec", "serviceAccount", "name")
		if value := e.annotation(name); value != "" {
			annotate(object, extension.RequiresAnnotation, value)
		}
	})
}

func (e *estate) is(name string) *extension.Extension {
	found, err := e.host.Tracker().Get(extension.Resource, "", name)
	if err != nil {
		return nil
	}
	read, err := extension.From(found.(*unstructured.Unstructured))
	if err != nil {
		e.Error(err)
		return nil
	}
	return read
}

// version returns the installed and available version of an extension; empty for none.
func (e *estate) version(name string) string { return versionOf(e.is(name)) }

func versionOf(is *extension.Extension) string {
	if is == nil || !meta.IsStatusConditionTrue(is.Status.Conditions, status.Installed) || !meta.IsStatusConditionTrue(is.Status.Conditions, status.Available) {
		return ""
	}
	return is.Status.Install.Bundle.Version
}

// blocked returns the reason why an extension must not have a version now; empty if it may. has
// returns the version of an extension. users are the extensions whose requirements count.
func (e *estate) blocked(name, version string, has func(string) string, users []string) string {
	for other, of := range e.of(name) {
		if has := has(other); has == "" || of != "" && !resolve.InRange(has, of) {
			return fmt.Sprintf("it requires %s%s, which has %q", other, of, has)
		}
	}
	for _, other := range users {
		if of := e.of(other)[name]; of != "" && !resolve.InRange(version, of) {
			return other + " requires " + name + of
		}
	}
	return ""
}

// users returns, by extension, which of the given extensions require it.
func (e *estate) users(of []string) map[string][]string {
	users := map[string][]string{}
	for _, name := range of {
		for other := range e.of(name) {
			users[other] = append(users[other], name)
		}
	}
	return users
}

func (e *estate) installed() []string {
	return slices.DeleteFunc(slices.Clone(e.names), func(name string) bool { return e.version(name) == "" })
}

// mayBegin fails the test for a revision that must not begin while the given extensions are
// installed.
func (e *estate) mayBegin(installed []string) func(*olmv1alpha1.ClusterExtensionRevision) {
	users := e.users(installed)
	return func(r *olmv1alpha1.ClusterExtensionRevision) {
		name, _, _ := olm.ChainOf(r.Name)
		if why := e.blocked(name, r.Annotations[olmv1alpha1.VersionAnnotation], e.version, users[name]); why != "" {
			e.Errorf("%s %s begins, although %s", r.Name, r.Annotations[olmv1alpha1.VersionAnnotation], why)
		}
	}
}

func (e *estate) rollOut() {
	e.mu.Lock()
	var begun []string
	for name, r := range e.revisions {
		if len(r.Status.Conditions) == 0 && r.Spec.LifecycleState == olmv1alpha1.LifecycleStateActive {
			begun = append(begun, name)
		}
	}
	e.mu.Unlock()
	slices.Sort(begun)
	e.random.Shuffle(len(begun), func(i, j int) { begun[i], begun[j] = begun[j], begun[i] })
	for _, name := range begun[:(len(begun)+1)/2] {
		e.change(name, func(r *olmv1alpha1.ClusterExtensionRevision) {
			r.Status.Conditions = []metav1.Condition{{Type: olmv1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Succeeded"}, {Type: olmv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Available"}}
		})
	}
}

// unsettled describes an extension that has neither the newest version nor a reason why it must
// not; empty if all are settled.
func (e *estate) unsettled() string {
	all, versions := map[string]*extension.Extension{}, map[string]string{}
	for _, name := range e.names {
		all[name] = e.is(name)
		versions[name] = versionOf(all[name])
	}
	has := func(name string) string { return versions[name] }
	users := e.users(slices.DeleteFunc(slices.Clone(e.names), func(name string) bool { return has(name) == "" }))
	for _, name := range e.names {
		ready := meta.FindStatusCondition(all[name].Status.Conditions, "Ready")
		if ready == nil || ready.ObservedGeneration != all[name].Generation {
			return name + " has no status"
		}
		why, want := e.blocked(name, e.newest, has, users[name]), status.ReasonSucceeded
		switch {
		case has(name) == e.newest:
		case strings.HasPrefix(why, "it requires"):
			want = string(status.RequirementsUnmet)
		case why != "":
			want = string(status.RequiredByOthers)
		default:
			return fmt.Sprintf("%s has %q, and nothing holds %s", name, has(name), e.newest)
		}
		// A version from a catalog is reported beside the installed version. A version that a user
		// writes replaces it.
		if want == string(status.RequiredByOthers) && ready.Reason == status.ReasonSucceeded && strings.Contains(ready.Message, "("+want+")") {
			continue
		}
		if ready.Reason != want {
			return fmt.Sprintf("%s has %q and says %s: %s; want %s: %s", name, has(name), ready.Reason, ready.Message, want, why)
		}
	}
	return ""
}

func (e *estate) settle() {
	e.Helper()
	limit, why := time.Now().Add(4*time.Minute), ""
	for range time.Tick(time.Duration(5+len(e.names)/20) * time.Millisecond) {
		e.rollOut()
		if why = e.unsettled(); why == "" {
			return
		}
		if time.Now().After(limit) {
			e.Fatal(why)
		}
	}
}

// narrow makes some installed extensions require versions below the next one.
func (e *estate) narrow() {
	for _, name := range e.installed() {
		narrower := maps.Clone(e.of(name))
		for other := range narrower {
			if e.random.IntN(4) == 0 {
				narrower[other] = "<1.1"
			}
		}
		e.mu.Lock()
		e.requires[name] = narrower
		e.mu.Unlock()
		e.writes(name)
	}
}

func (e *estate) upgrade() {
	may := e.mayBegin(e.installed())
	e.mu.Lock()
	e.newest, e.creating = "1.1.0", may
	e.mu.Unlock()
	e.publish("1.0.0", "1.1.0")
}

// TestManyInOrder: many extensions with random requirements (a thousand with FULL=1) are installed
// and upgraded in order, while the leader changes. A waiting extension does not block independent
// extensions.
func TestManyInOrder(t *testing.T) {
	size := 200
	if os.Getenv("FULL") == "1" {
		size = 1000
	}
	e := newEstate(t, size, 1)
	e.publish("1.0.0")
	stop := e.takeLead()
	for i, name := range e.names {
		if i%(size/4) == size/4-1 {
			stop()
			stop = e.takeLead()
		}
		e.writes(name)
		if i%20 == 0 {
			e.rollOut()
		}
	}
	e.settle()
	first, asked := len(e.installed()), e.asked.n()
	stop()
	e.narrow()
	e.takeLead()
	e.settle()
	e.upgrade()
	e.settle()
	newest := 0
	for _, name := range e.names {
		if e.version(name) == "1.1.0" {
			newest++
		}
	}
	t.Logf("of %d extensions %d are installed after %d passes over the catalogs, then %d, of which %d have the next version", len(e.names), first, asked, len(e.installed()), newest)
	if installed := len(e.installed()); first < size/2 || installed <= first || newest < size/4 || newest == installed {
		t.Error("the estate does not test what it should")
	}
	if most := 20 * len(e.names); asked > most {
		t.Errorf("the catalogs were asked %d times, want at most %d", asked, most)
	}
}

// TestKilledInOrder: the process dies after some of its writes (after each with FULL=1), while
// extensions with requirements are installed and upgraded, and a new process continues.
func TestKilledInOrder(t *testing.T) {
	run := func(t *testing.T, left int) (writes int) {
		e := newEstate(t, 5, 3)
		e.publish("1.0.0")
		for _, name := range e.names {
			e.writes(name)
		}
		const plenty = 1 << 20
		if e.left = left; left < 0 {
			e.left = plenty
		}
		e.survive()
		e.settle()
		e.narrow()
		e.settle()
		e.upgrade()
		e.settle()
		return plenty - e.left
	}
	all := 0
	t.Run("alive", func(t *testing.T) { all = run(t, -1) })
	if all < 20 {
		t.Fatalf("it makes %d writes only", all)
	}
	step := 3
	if os.Getenv("FULL") == "1" {
		step = 1
	}
	for left := 1; left <= all; left += step {
		t.Run(fmt.Sprint(left), func(t *testing.T) { run(t, left) })
	}
}
