package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	corefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/catalog/inventory/inventorytest"
	"github.com/penstock-project/penstock/pkg/controller/extension"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	ext "github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/extensionrollout"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
	ownfake "github.com/penstock-project/penstock/pkg/generated/clientset/versioned/fake"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/rollout"
)

const namespace = "penstock-system"

// errDied is the error of a write after which the process is dead.
var errDied = errors.New("the process was killed by the test")

var rolloutsResource = olmv1alpha1.SchemeGroupVersion.WithResource("clusterextensionrollouts")

// world is a host with clusters. It outlives the processes that run on it. The test runs each pass
// itself, on the objects of the fake trackers.
type world struct {
	*testing.T
	clock    *testclock.FakeClock
	host     *dynamicfake.FakeDynamicClient
	core     *corefake.Clientset
	own      *ownfake.Clientset
	key      author.Key
	clusters map[string]*member
	// revisions of the children; number is the highest revision number.
	revisions []*olmv1alpha1.ClusterExtensionRevision
	number    int64
	// denied holds the targets that the author cannot use.
	denied map[string]bool
	// left is the number of writes before the process dies; negative for no limit.
	left int
	// writes that succeeded; marks of the child writes.
	writes, marks []string
	previews      int
	// blind makes the watch of Secrets answer with an empty list.
	blind   bool
	unknown bool
	frozen  bool
	refuses bool
	closed  bool

	running *Controller
}

type member struct {
	uid   string
	away  bool
	looks int
	// fails makes the next content fail. rollsBack then restores the earlier content. hangs leaves
	// the rollout in progress.
	fails, rollsBack, hangs bool
	sick                    bool
	// more is content that only this cluster has. changed is content that appears after the review.
	more, changed string
	done          string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	lists := map[schema.GroupVersionResource]string{ext.Resource: "ClusterExtensionList", extensionset.Resource: "ClusterExtensionSetList"}
	w := &world{
		T: t, clock: testclock.NewFakeClock(time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)), key: author.NewKey([]byte("secret")), left: -1,
		host: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists), core: corefake.NewSimpleClientset(), own: ownfake.NewSimpleClientset(),
		clusters: map[string]*member{}, denied: map[string]bool{},
	}
	for _, fake := range []*clienttesting.Fake{&w.host.Fake, &w.own.Fake} {
		fake.PrependReactor("*", "*", w.write)
	}
	w.process()
	return w
}

// process starts a controller without the memory of the earlier process.
func (w *world) process() {
	w.left = -1
	w.running = New(Options{
		Host: w.host, Core: w.core, Namespace: namespace, Rollouts: w.own.OlmV1alpha1().ClusterExtensionRollouts(),
		Store:      maker.Store{Reader: reader{w}, Own: patcher{w}},
		Extensions: extensions{w}, Catalogs: inventorytest.Of(), Windows: windows{w}, Freezes: freezes{w}, Key: w.key, Rights: rights{w}, Look: w.look, Clock: w.clock,
	})
}

func (w *world) write(action clienttesting.Action) (bool, runtime.Object, error) {
	switch action.GetVerb() {
	case "create", "update", "patch", "delete":
	default:
		return false, nil, nil
	}
	if w.left == 0 {
		return true, nil, errDied
	}
	if w.refuses && action.GetResource() == ext.Resource {
		return true, nil, apierrors.NewForbidden(ext.Resource.GroupResource(), "child", errors.New("only Penstock writes this annotation"))
	}
	w.left--
	what := action.GetVerb() + " " + action.GetResource().Resource
	if action.GetSubresource() != "" {
		what += "/" + action.GetSubresource()
	}
	w.writes = append(w.writes, what)
	if writes, ok := action.(clienttesting.CreateAction); ok && action.GetResource() == ext.Resource {
		w.check(writes.GetObject().(*unstructured.Unstructured))
	}
	return false, nil, nil
}

// check checks the rule of package fleet at each write of a child. In the stored rollout, the
// cluster is changing in this attempt. No attempt is written twice, the budget of the wave holds,
// and earlier waves are done.
func (w *world) check(child *unstructured.Unstructured) {
	mark := child.GetAnnotations()[ext.RolloutAnnotation]
	cluster := child.GetAnnotations()[ext.TargetAnnotation]
	if mark == "" {
		return
	}
	if slices.Contains(w.marks, cluster+" "+mark) {
		w.Errorf("cluster %s gets attempt %s twice", cluster, mark)
	}
	w.marks = append(w.marks, cluster+" "+mark)
	r := w.rollout(strings.Split(mark, "/")[0])
	changing, wave := map[string]int{}, ""
	states := map[string]fleet.At{}
	for name, at := range extensionrollout.Progress(&r.Status).Clusters {
		states[name] = at
	}
	for _, one := range r.Spec.Clusters {
		if at := states[one.Name]; at.State == fleet.Updating || at.State == fleet.Unknown || at.State == fleet.Present && w.clusters[one.Name].sick {
			changing[one.Wave]++
		}
		if one.Name == cluster {
			wave = one.Wave
			if at := states[one.Name]; at.State != fleet.Updating && at.State != fleet.Unknown || mark != attemptMark(r, at.Attempt) {
				w.Errorf("cluster %s gets %s, and is %+v", cluster, mark, at)
			}
		}
	}
	for _, one := range r.Spec.Waves {
		if one.Name == wave {
			if changing[wave] > int(one.MaxUnavailable) {
				w.Errorf("%d clusters of wave %s are changing or unhealthy: %v", changing[wave], wave, states)
			}
			break
		}
		for _, earlier := range r.Spec.Clusters {
			if states[earlier.Name].State == fleet.Present && !w.clusters[earlier.Name].sick {
				continue
			}
			switch states[earlier.Name].State {
			case fleet.Succeeded, fleet.Skipped, fleet.Leaving, fleet.Failed, fleet.RolledBack, fleet.Deferred:
			default:
				if earlier.Wave == one.Name {
					w.Errorf("cluster %s of wave %s begins while %s of wave %s is %v", cluster, wave, earlier.Name, one.Name, states[earlier.Name].State)
				}
			}
		}
	}
}

func (w *world) join(name string, pairs ...string) *member {
	w.Helper()
	one := &member{uid: "uid-" + name}
	w.clusters[name] = one
	w.secret(name, pairs...)
	return one
}

func (w *world) secret(name string, pairs ...string) {
	w.Helper()
	labels := map[string]string{extensionset.ClusterLabel: "", "fleet": "edge"}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		labels[key] = value
	}
	w.number++
	config := fmt.Sprintf("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: \"https://%s.example\"}}], users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}], current-context: c}", name)
	object := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels, ResourceVersion: fmt.Sprint(w.number)},
		Data:       map[string][]byte{"kubeconfig": []byte(config)},
	}
	tracker := w.core.Tracker()
	if err := tracker.Update(secrets(), object, namespace); apierrors.IsNotFound(err) {
		err = tracker.Create(secrets(), object, namespace)
		if err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) look(_ context.Context, config *rest.Config) (string, error) {
	one := w.clusters[strings.TrimSuffix(strings.TrimPrefix(config.Host, "https://"), ".example")]
	one.looks++
	if one.away {
		return "", errors.New("connection refused")
	}
	return one.uid, nil
}

// wave returns a wave of the clusters whose label ring has the value.
func wave(name, ring string, change func(*extensionset.Wave)) extensionset.Wave {
	one := extensionset.Wave{Name: name}
	if ring != "" {
		one.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"ring": ring}}
	}
	if change != nil {
		change(&one)
	}
	return one
}

// apply writes the set "edge" with an image, as alice.
func (w *world) apply(image string, waves ...extensionset.Wave) { w.applyAs("alice", image, waves...) }

func (w *world) applyAs(who, image string, waves ...extensionset.Wave) {
	w.Helper()
	spec := extensionset.Spec{
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "edge"}},
		Template:        extensionset.Template{Spec: map[string]any{"namespace": "edge", "source": map[string]any{"sourceType": "Image", "image": map[string]any{"ref": image}}}},
		Strategy:        extensionset.Strategy{Waves: waves, DeadlineSeconds: 600},
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		w.Fatal(err)
	}
	w.changeSet(who, func(set *unstructured.Unstructured) { set.Object["spec"] = fields })
}

// changeSet changes the set as a user, and creates it if it does not exist.
func (w *world) changeSet(who string, change func(*unstructured.Unstructured)) {
	w.Helper()
	stored, err := w.host.Tracker().Get(extensionset.Resource, "", "edge")
	set := &unstructured.Unstructured{Object: map[string]any{}}
	if err == nil {
		set = stored.(*unstructured.Unstructured).DeepCopy()
	}
	set.SetGroupVersionKind(extensionset.Kind)
	set.SetName("edge")
	set.SetUID("set-uid")
	set.SetGeneration(set.GetGeneration() + 1)
	change(set)
	digest, digestErr := extensionset.Author().Digest(set)
	if digestErr != nil {
		w.Fatal(digestErr)
	}
	stamp := &author.Stamp{Kind: extensionset.Author().Mark(), User: who, Time: w.clock.Now(), Extension: "set-uid", Name: "edge", Generation: set.GetGeneration(), Digest: digest}
	if err := w.key.Sign(stamp); err != nil {
		w.Fatal(err)
	}
	value, stampErr := stamp.Encode()
	if stampErr != nil {
		w.Fatal(stampErr)
	}
	annotations := set.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[ext.AuthorAnnotation] = value
	set.SetAnnotations(annotations)
	if err == nil {
		err = w.host.Tracker().Update(extensionset.Resource, set, "")
	} else {
		err = w.host.Tracker().Create(extensionset.Resource, set, "")
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) set() *extensionset.Set {
	w.Helper()
	stored, err := w.host.Tracker().Get(extensionset.Resource, "", "edge")
	if err != nil {
		return nil
	}
	set, err := extensionset.From(stored.(*unstructured.Unstructured))
	if err != nil {
		w.Fatal(err)
	}
	return set
}

func (w *world) rollout(name string) *olmv1alpha1.ClusterExtensionRollout {
	w.Helper()
	found, err := w.own.Tracker().Get(rolloutsResource, "", name)
	if err != nil {
		w.Fatalf("rollout %s: %v", name, err)
	}
	return found.(*olmv1alpha1.ClusterExtensionRollout).DeepCopy()
}

// decide changes the status of a rollout as its subresources do.
func (w *world) decide(name string, decide func(*fleet.Plan, fleet.Progress, fleet.Situation) (fleet.Progress, error)) error {
	w.Helper()
	r := w.rollout(name)
	next, err := decide(extensionrollout.Plan(&r.Spec), extensionrollout.Progress(&r.Status), extensionrollout.Situation(&r.Spec, &r.Status, w.clock.Now()))
	if err != nil {
		return err
	}
	extensionrollout.Record(&r.Status, next, "bob")
	if next.Approved != "" && len(r.Status.Approvals) == 0 {
		r.Status.Approvals = []olmv1alpha1.RolloutApproval{{Digest: next.Approved, User: "bob"}}
	}
	return w.own.Tracker().Update(rolloutsResource, r, "")
}

func (w *world) approve(name string) {
	w.Helper()
	shown := w.rollout(name).Status.Digest
	if err := w.decide(name, func(plan *fleet.Plan, progress fleet.Progress, _ fleet.Situation) (fleet.Progress, error) {
		return plan.Approve(progress, shown)
	}); err != nil {
		w.Fatal(err)
	}
}

// pass runs one pass over the set. Then each cluster follows its child.
func (w *world) pass() error {
	w.Helper()
	known := &facts{}
	if stored, err := w.host.Tracker().Get(extensionset.Resource, "", "edge"); err == nil {
		known.set = stored.(*unstructured.Unstructured).DeepCopy()
	}
	secrets, err := w.core.Tracker().List(secrets(), corev1.SchemeGroupVersion.WithKind("Secret"), namespace)
	if err != nil {
		w.Fatal(err)
	}
	for i := range secrets.(*corev1.SecretList).Items {
		if !w.blind {
			known.secrets = append(known.secrets, &secrets.(*corev1.SecretList).Items[i])
		}
	}
	rollouts, err := w.own.Tracker().List(rolloutsResource, olmv1alpha1.SchemeGroupVersion.WithKind("ClusterExtensionRollout"), "")
	if err != nil {
		w.Fatal(err)
	}
	for i := range rollouts.(*olmv1alpha1.ClusterExtensionRolloutList).Items {
		known.rollouts = append(known.rollouts, rollouts.(*olmv1alpha1.ClusterExtensionRolloutList).Items[i].DeepCopy())
	}
	if err := w.running.refresh(w.Context(), "edge", known); err != nil {
		return err
	}
	w.act()
	return nil
}

func (w *world) until(what string, is func() bool) {
	w.Helper()
	for range 400 {
		if err := w.pass(); err != nil {
			w.Fatalf("%s: %v", what, err)
		}
		if is() {
			return
		}
		w.clock.Step(lookEvery)
	}
	w.Fatalf("%s: it does not come: %s", what, w.shown())
}

func (w *world) let(while time.Duration) {
	w.Helper()
	end := w.clock.Now().Add(while)
	w.until("time goes on", func() bool { return !w.clock.Now().Before(end) })
}

// shown returns the newest rollout as text, without clusters that do not change: "edge-1 Completed:
// a Succeeded, b Succeeded".
func (w *world) shown() string {
	w.Helper()
	all, err := w.own.Tracker().List(rolloutsResource, olmv1alpha1.SchemeGroupVersion.WithKind("ClusterExtensionRollout"), "")
	if err != nil {
		w.Fatal(err)
	}
	items := all.(*olmv1alpha1.ClusterExtensionRolloutList).Items
	if len(items) == 0 {
		return "no rollout"
	}
	newest := slices.MaxFunc(items, func(a, b olmv1alpha1.ClusterExtensionRollout) int { return int(number(a.Name) - number(b.Name)) })
	var states []string
	for _, one := range newest.Spec.Clusters {
		at := extensionrollout.Progress(&newest.Status).Clusters[one.Name]
		text := one.Name + " " + string(at.State)
		if at.State == fleet.Present {
			continue
		}
		if at.State == "" {
			text = one.Name + " " + string(fleet.Pending)
		}
		if at.Reason != "" {
			text += " " + string(at.Reason)
		}
		states = append(states, text)
	}
	slices.Sort(states)
	return newest.Name + " " + newest.Status.Phase + ": " + strings.Join(states, ", ")
}

func (w *world) becomes(want string) {
	w.Helper()
	w.until(want, func() bool { return w.shown() == want })
}

func (w *world) child(cluster string) *unstructured.Unstructured {
	found, err := w.host.Tracker().Get(ext.Resource, "", extensionset.ChildName("edge", cluster))
	if err != nil {
		return nil
	}
	return found.(*unstructured.Unstructured)
}

// has returns the image that a cluster rolled out last.
func (w *world) has(cluster string) string {
	for _, one := range slices.Backward(w.revisions) {
		if one.Labels[olmv1alpha1.ChainLabel] == extensionset.ChildName("edge", cluster) && maker.HasSucceeded(one) {
			return one.Annotations[olmv1alpha1.ReferenceAnnotation]
		}
	}
	return ""
}

// act lets each cluster follow its child.
func (w *world) act() {
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		one, child := w.clusters[name], w.child(name)
		if one.away {
			continue
		}
		if child == nil && !one.hangs {
			w.revisions = slices.DeleteFunc(w.revisions, func(one *olmv1alpha1.ClusterExtensionRevision) bool {
				return one.Labels[olmv1alpha1.ChainLabel] == extensionset.ChildName("edge", name)
			})
		}
		if child == nil {
			continue
		}
		mark := child.GetAnnotations()[ext.RolloutAnnotation]
		if mark != "" && mark != one.done {
			w.rollOut(name, one, child)
		}
		for _, revision := range w.revisions {
			if revision.Labels[olmv1alpha1.ChainLabel] == child.GetName() && maker.HasSucceeded(revision) {
				w.condition(revision, olmv1alpha1.ConditionAvailable, !one.sick)
			}
		}
	}
}

func (w *world) rollOut(name string, one *member, child *unstructured.Unstructured) {
	annotations := child.GetAnnotations()
	one.done = annotations[ext.RolloutAnnotation]
	image := asked(child)
	if got := w.content(image, one.more+one.changed); got != annotations[ext.ContentAnnotation] {
		w.refuse(child, fmt.Sprintf("rollout %s approved the content %s, and the image becomes %s", one.done, annotations[ext.ContentAnnotation], got))
		return
	}
	before, newest := w.has(name), w.newest(child.GetName())
	if newest != nil && maker.HasSucceeded(newest) && newest.Annotations[ext.ContentAnnotation] == annotations[ext.ContentAnnotation] {
		return // the deletion hangs
	}
	revision := w.revision(child.GetName(), image, annotations[ext.ContentAnnotation])
	switch {
	case one.hangs:
	case one.fails:
		w.condition(revision, olmv1alpha1.ConditionStalled, true)
		if one.rollsBack {
			revision.Spec.OnFailure = olmv1alpha1.OnFailureRollback
			back := w.revision(child.GetName(), before, w.content(before, one.more))
			back.Annotations[olmv1alpha1.RollbackOfAnnotation] = revision.Name
			w.condition(back, olmv1alpha1.ConditionSucceeded, true)
		}
	default:
		w.condition(revision, olmv1alpha1.ConditionSucceeded, true)
	}
}

// asked returns the image and configuration that a child asks for.
func asked(child *unstructured.Unstructured) string {
	image, _, _ := unstructured.NestedString(child.Object, "spec", "source", "image", "ref")
	if inline, found, _ := unstructured.NestedMap(child.Object, "spec", "config", "inline"); found {
		return fmt.Sprint(image, " ", inline)
	}
	return image
}

func (w *world) newest(chain string) *olmv1alpha1.ClusterExtensionRevision {
	for _, one := range slices.Backward(w.revisions) {
		if one.Labels[olmv1alpha1.ChainLabel] == chain {
			return one
		}
	}
	return nil
}

func (w *world) revision(chain, image, content string) *olmv1alpha1.ClusterExtensionRevision {
	w.number++
	one := &olmv1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-%d", chain, w.number), UID: types.UID(fmt.Sprintf("r-%d", w.number)), Generation: 1, CreationTimestamp: metav1.NewTime(w.clock.Now()),
		Labels: map[string]string{olmv1alpha1.ChainLabel: chain}, Annotations: map[string]string{ext.ContentAnnotation: content, olmv1alpha1.ReferenceAnnotation: image},
	}}
	one.Spec.Revision, one.OwnerReferences = w.number, []metav1.OwnerReference{{Kind: "ClusterExtension", Name: chain, Controller: ptr.To(true)}}
	w.revisions = append(w.revisions, one)
	return one
}

func (w *world) condition(revision *olmv1alpha1.ClusterExtensionRevision, kind string, is bool) {
	value := metav1.ConditionFalse
	if is {
		value = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&revision.Status.Conditions, metav1.Condition{Type: kind, Status: value, Reason: kind, LastTransitionTime: metav1.NewTime(w.clock.Now())})
}

// refuse writes a status into a child: its content differs from the approved content.
func (w *world) refuse(child *unstructured.Unstructured, why string) {
	changed := child.DeepCopy()
	changed.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": string(status.ChangedSinceReview), "message": why, "lastTransitionTime": "2026-11-29T08:00:00Z"}}}
	if err := w.host.Tracker().Update(ext.Resource, changed, ""); err != nil {
		w.Fatal(err)
	}
}

func (w *world) content(image, more string) string {
	return ext.ContentDigest([]byte(image), more)
}

type extensions struct{ *world }

func (e extensions) Find(name string) (*unstructured.Unstructured, bool) {
	if e.unknown {
		return nil, false
	}
	found, err := e.host.Tracker().Get(ext.Resource, "", name)
	if err != nil {
		return nil, true
	}
	return found.(*unstructured.Unstructured).DeepCopy(), true
}

func (e extensions) Children(set string) (children []*unstructured.Unstructured, known bool) {
	for _, cluster := range slices.Sorted(maps.Keys(e.clusters)) {
		if live := e.child(cluster); live != nil && live.GetAnnotations()[ext.SetAnnotation] == set {
			children = append(children, live.DeepCopy())
		}
	}
	return children, !e.unknown
}

func (e extensions) Preview(_ context.Context, child *unstructured.Unstructured, _ user.Info) (*extension.Preview, *maker.Outcome) {
	e.previews++
	cluster := child.GetAnnotations()[ext.TargetAnnotation]
	image := asked(child)
	return &extension.Preview{Child: child, Version: image, After: e.content(image, e.clusters[cluster].more)}, nil
}

func (e extensions) Diff(_ context.Context, p *extension.Preview) (*olmv1alpha1.RevisionDiff, *maker.Outcome) {
	diff := &olmv1alpha1.RevisionDiff{Summary: olmv1alpha1.DiffSummary{Added: 1}}
	if newest := e.newest(p.Child.GetName()); newest != nil {
		diff.From = newest.Name
	}
	return diff, nil
}

type reader struct{ *world }

func (reader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("only lists are read")
}

func (r reader) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	out := list.(*olmv1alpha1.ClusterExtensionRevisionList)
	for _, one := range r.revisions {
		if value, exact := asked.LabelSelector.RequiresExactMatch(olmv1alpha1.ChainLabel); exact && value == one.Labels[olmv1alpha1.ChainLabel] {
			out.Items = append(out.Items, *one.DeepCopy())
		}
	}
	return nil
}

type patcher struct{ *world }

func (patcher) Create(context.Context, *olmv1alpha1.ClusterExtensionRevision, metav1.CreateOptions) (*olmv1alpha1.ClusterExtensionRevision, error) {
	return nil, errors.New("fleets create no revisions")
}

func (patcher) Delete(context.Context, string, metav1.DeleteOptions) error {
	return errors.New("fleets delete no revisions")
}

func (patcher) Propose(context.Context, string, *olmv1alpha1.ClusterExtensionRevision, metav1.CreateOptions) (*olmv1alpha1.RevisionDiff, error) {
	return nil, errors.New("fleets propose no revisions")
}

func (p patcher) Patch(_ context.Context, name string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string) (*olmv1alpha1.ClusterExtensionRevision, error) {
	for _, one := range p.revisions {
		if one.Name == name {
			one.Annotations[olmv1alpha1.ReleaseHoldAnnotation] = name
			return one, nil
		}
	}
	return nil, fmt.Errorf("there is no revision %s", name)
}

type rights struct{ *world }

func (r rights) May(_ context.Context, _ user.Info, asked authz.Right) (bool, error) {
	return asked.Name != "" && !r.denied[asked.Name], nil
}

type windows struct{ *world }

func (w windows) Decide(map[string]string) maintenancewindow.Decision {
	return maintenancewindow.Decision{Open: !w.closed}
}
func (windows) OnChange(func()) {}

type freezes struct{ *world }

func (f freezes) Frozen() (*rollout.Freeze, error) {
	if f.frozen {
		return &rollout.Freeze{Author: "carol"}, nil
	}
	return nil, nil
}
func (freezes) Follow(context.Context, func()) {}

func secrets() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("secrets")
}
