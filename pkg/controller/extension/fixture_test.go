package extension

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/catalog/inventory/inventorytest"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/controller/rendering"
	"github.com/penstock-project/penstock/pkg/crdsafety"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/signer"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

var began = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

// errDied is the error of a write after which the process is dead.
var errDied = errors.New("the process was killed by the test")

// plane is a host and Penstock's API, without a cluster. It outlives the processes that run on it.
type plane struct {
	*testing.T
	clock     *testclock.FakeClock
	host      *dynamicfake.FakeDynamicClient
	metadata  *metadatafake.FakeMetadataClient
	leases    *fake.Clientset
	inventory *inventory.Inventory
	key       author.Key
	// entries is the inventory of lamp. conditions are the existing OperatorConditions;
	// conditionsErr is the error of reading them.
	entries       []chain.Entry
	conditions    []unstructured.Unstructured
	conditionsErr error
	// versions holds the versions of the clusters; nil if they are irrelevant.
	versions *versions

	mu sync.Mutex
	// revisions is Penstock's API; handlers receive its changes.
	revisions map[string]*olmv1alpha1.ClusterExtensionRevision
	handlers  []cache.ResourceEventHandler
	// heads holds the heads of the chains; head is the head of lamp. creating is called with each
	// revision before it is created; it may be nil.
	heads    map[string]*chain.Head
	head     *chain.Head
	creating func(*olmv1alpha1.ClusterExtensionRevision)
	// made holds the author of each revision. version counts writes.
	made    map[string]string
	version int
	// denied holds users who cannot create objects. impersonators holds users who can impersonate.
	denied, impersonators map[string]bool
	lacks                 map[string]bool
	images                map[string]fs.FS
	signed                map[string]*signer.Record
	pulls                 counter
	reviews               int
	pullErr               error
	live                  *apiextensionsv1.CustomResourceDefinition
	// left is the number of writes before the process dies; negative for no limit.
	left int
	died chan struct{}
	// resolved is called after a pass has resolved from the catalogs; it may be nil.
	resolved func()
	// asked counts passes that resolved from the catalogs.
	asked   counter
	created int
	// byHelm switches the gate off for the next process. releases holds Helm's releases; nil for
	// none.
	byHelm, keepReleases bool
	releases             *releases
	windows              *windows
	freezes              *freezes
	values               *valueObjects
	kubernetes           string
	// served lists kinds of the cluster besides the built-in kinds.
	served []string
	// choice is the choice in the stamp. notes are the notes of every diff.
	choice *author.Choice
	notes  []olmv1alpha1.DiffNote
	// exact keeps the generation when only annotations change, like the host.
	exact     bool
	compared  int
	running   *Controller
	meanwhile func()
	writing   sync.Mutex
	watched   atomic.Pointer[watch.Interface]
}

// installed returns a plane with a process and lamp-1, which has succeeded.
func installed(t *testing.T) *plane {
	t.Helper()
	p := newPlane(t)
	p.publish("1.0.0")
	p.apply(nil)
	p.process()
	p.awaitRevisions("1 Active 1.0.0 alice")
	p.succeed("lamp-1")
	return p
}

func newPlane(t *testing.T) *plane {
	scheme := runtime.NewScheme()
	lists := map[schema.GroupVersionResource]string{extension.Resource: "ClusterExtensionList"}
	metascheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(metascheme); err != nil {
		t.Fatal(err)
	}
	definition := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}, ObjectMeta: metav1.ObjectMeta{Name: definitionName(), UID: "crd"}}
	head := &chain.Head{Name: "lamp"}
	p := &plane{
		T: t, clock: testclock.NewFakeClock(began), host: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme, lists),
		metadata: metadatafake.NewSimpleMetadataClient(metascheme, definition), leases: fake.NewClientset(),
		inventory: inventorytest.Of(), key: author.NewKey([]byte("secret")),
		revisions: map[string]*olmv1alpha1.ClusterExtensionRevision{}, made: map[string]string{}, denied: map[string]bool{}, impersonators: map[string]bool{}, lacks: map[string]bool{},
		images: map[string]fs.FS{}, left: -1, died: make(chan struct{}), head: head, heads: map[string]*chain.Head{"lamp": head}, kubernetes: "v1.36.3", windows: &windows{}, freezes: &freezes{}, values: &valueObjects{},
	}
	p.host.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		watching, err := p.host.Tracker().Watch(action.GetResource(), action.GetNamespace())
		p.watched.Store(&watching)
		return true, watching, err
	})
	return p
}

func (p *plane) controller() *Controller {
	p.Helper()
	safety, err := crdsafety.New(nil)
	if err != nil {
		p.Fatal(err)
	}
	host := &dyingHost{p.host, p}
	options := Options{
		Clients: Clients{Extensions: host, Definitions: p.metadata, Leases: p.leases},
		Store: maker.Store{Informer: p, Reader: reader{p}, Live: reader{p}, Heads: p, Own: writer{p, "penstock"},
			As: func(who user.Info) (maker.Revisions, error) { return writer{p, who.GetName()}, nil }},
		OperatorControllerNamespaces: extension.OperatorControllerNamespaces(), Key: p.key, Rights: p, RecentRights: p, Inventory: p.inventory, Images: p, Pool: rendering.NewPool(), Definitions: p, Capabilities: p, Safety: safety, Digester: digester(), Clock: p.clock, Windows: p.windows, Freezes: p.freezes, Values: p.values, Inventories: p, Conditions: p,
		Events: record.NewFakeRecorder(20_000), Metrics: func(func() []*unstructured.Unstructured) (Metrics, error) { return p, nil },
	}
	if p.versions != nil {
		options.Versions = p.versions
	}
	if p.releases != nil {
		options.Releases, options.Objects, options.ByHelm, options.KeepReleases, options.Manifests, options.Freezes = p.releases, p.releases, p.byHelm, p.keepReleases, p.releases.manifests, p.releases
		options.Stored = p.releases
	}
	return New(options)
}

// process runs a controller until it is stopped or dies.
func (p *plane) process() (stop func()) {
	p.mu.Lock()
	p.handlers, p.died = nil, make(chan struct{})
	p.mu.Unlock()
	c := p.controller()
	p.mu.Lock()
	p.running = c
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			p.Error(err)
		}
	})
	// Retries wait for the fake clock.
	running.Go(func() {
		for ctx.Err() == nil {
			if p.clock.HasWaiters() {
				p.clock.Step(10 * time.Millisecond)
			}
			select {
			case <-ctx.Done():
			case <-p.died:
				cancel()
			case <-time.After(time.Millisecond):
			}
		}
	})
	stopped := func() { cancel(); running.Wait() }
	p.Cleanup(stopped)
	return stopped
}

// takeLead is process for tests that write continuously. It waits until the process watches
// extensions.
func (p *plane) takeLead() (stop func()) {
	p.watched.Store(new(watch.Interface))
	return p.process()
}

// write counts a write. landed is true if the write happens. err is its result for the process.
func (p *plane) write() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.left < 0:
		return nil
	case p.left == 0:
		return errDied
	}
	if p.left--; p.left == 0 {
		close(p.died)
	}
	return nil
}

// pace waits while the watch of extensions has many pending events, because it has room for 100. It
// also waits for an announced watch: the fake has no history, so a write before the watch would be
// lost. A fake watch does not report free room, so pace polls each millisecond.
func (p *plane) pace() {
	for range 10_000 {
		if watching := p.watched.Load(); watching == nil || *watching != nil && len((*watching).ResultChan()) < 50 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// bundleOf returns the image of a bundle whose only object is a ConfigMap.
func bundleOf(pkg, version, text string) fs.FS {
	file := func(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }
	return fstest.MapFS{
		"metadata/annotations.yaml": file("annotations: {operators.operatorframework.io.bundle.mediatype.v1: registry+v1, operators.operatorframework.io.bundle.manifests.v1: manifests/, operators.operatorframework.io.bundle.metadata.v1: metadata/, operators.operatorframework.io.bundle.package.v1: " + pkg + "}\n"),
		"manifests/config.yaml":     file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + pkg + "}\ndata: {text: " + strconv.Quote(text) + "}\n"),
		"manifests/csv.yaml": file(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: lamp}
spec:
  version: ` + version + `
  installModes: [{type: AllNamespaces, supported: true}]
  install:
    strategy: deployment
    spec:
      deployments:
      - name: lamp
        spec:
          selector: {matchLabels: {a: b}}
          template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: x}]}}
`),
	}
}

// publish makes the catalog offer versions of the package lamp. Each is the successor of the
// version before it.
func (p *plane) publish(versions ...string) {
	p.Helper()
	var names []string
	for _, version := range versions {
		version, content, _ := strings.Cut(version, "=")
		p.mu.Lock()
		p.images["r.example/lamp:v"+version] = bundleOf("lamp", version, cmp.Or(content, version))
		p.mu.Unlock()
		names = append(names, version)
	}
	p.offer(names...)
}

// offer makes the catalog offer versions whose images exist.
func (p *plane) offer(versions ...string) {
	p.Helper()
	text := "---\n{schema: olm.package, name: lamp, defaultChannel: stable}\n"
	var entries []string
	for i, version := range versions {
		entry := "{name: lamp.v" + version
		if i > 0 {
			entry += ", replaces: lamp.v" + versions[i-1]
		}
		entries = append(entries, entry+"}")
		text += fmt.Sprintf("---\n{schema: olm.bundle, package: lamp, name: lamp.v%[1]s, image: \"r.example/lamp:v%[1]s\", properties: [{type: olm.package, value: {packageName: lamp, version: %[1]s}}]}\n", version)
	}
	text += "---\n{schema: olm.channel, package: lamp, name: stable, entries: [" + strings.Join(entries, ", ") + "]}\n"
	hub := inventorytest.FromText(p, "hub", text)
	hub.Unpacked = p.clock.Now().Truncate(time.Second)
	p.inventory.Put(hub)
}

// apply writes and stamps the extension lamp as alice.
func (p *plane) apply(change func(*unstructured.Unstructured)) {
	p.Helper()
	p.applyTo("lamp", change)
}

// applyTo writes and stamps an extension of the package lamp as alice.
func (p *plane) applyTo(name string, change func(*unstructured.Unstructured)) {
	p.Helper()
	p.pace()
	p.writing.Lock()
	defer p.writing.Unlock()
	objects := p.host.Resource(extension.Resource)
	object, err := objects.Get(p.Context(), name, metav1.GetOptions{})
	create := apierrors.IsNotFound(err)
	if create {
		object = &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"namespace": "lamps", "source": map[string]any{"sourceType": "Catalog", "catalog": map[string]any{"packageName": "lamp"}}},
		}}
		object.SetGroupVersionKind(extension.Kind)
		object.SetName(name)
		p.created++
		object.SetUID(types.UID(fmt.Sprintf("%s-uid-%d", name, p.created)))
		object.SetCreationTimestamp(metav1.Time{Time: p.clock.Now()})
	}
	before := object
	object = object.DeepCopy()
	if change != nil {
		change(object)
	}
	if create || !p.exact || !reflect.DeepEqual(before.Object["spec"], object.Object["spec"]) {
		object.SetGeneration(object.GetGeneration() + 1)
	}
	source := func(of *unstructured.Unstructured) any { return of.Object["spec"].(map[string]any)["source"] }
	p.choice = author.Choose(p.choice, create, source(before), source(object), object.GetGeneration(), p.clock.Now().UTC().Truncate(time.Second))
	of := object.GetUID()
	if create {
		of = "" // admission does not know the uid on creation
	}
	p.stamp(object, of)
	if create {
		_, err = objects.Create(p.Context(), object, metav1.CreateOptions{})
	} else {
		_, err = objects.Update(p.Context(), object, metav1.UpdateOptions{})
	}
	if err != nil {
		p.Fatal(err)
	}
}

func (p *plane) stamp(object *unstructured.Unstructured, of types.UID) {
	p.Helper()
	digest, err := author.ClusterExtensions().Digest(object)
	if err != nil {
		p.Fatal(err)
	}
	stamp := &author.Stamp{User: "alice", Time: p.clock.Now().UTC().Truncate(time.Second), Extension: string(of), Name: object.GetName(), Generation: object.GetGeneration(), Digest: digest, Chosen: p.choice}
	if err := p.key.Sign(stamp); err != nil {
		p.Fatal(err)
	}
	value, err := stamp.Encode()
	if err != nil {
		p.Fatal(err)
	}
	annotate(object, extension.AuthorAnnotation, value)
}

func annotate(object *unstructured.Unstructured, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

func version(of string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(object.Object, of, "spec", "source", "catalog", "version")
	}
}

// await waits until a condition holds, with the plane locked. Conditions compare the state of several
// fakes, which no single watch reports, so await polls each millisecond.
func (p *plane) await(what string, is func() bool) {
	p.Helper()
	limit := time.Now().Add(30 * time.Second)
	for {
		p.mu.Lock()
		done := is()
		p.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(limit) {
			p.mu.Lock()
			defer p.mu.Unlock()
			object, _ := p.host.Tracker().Get(extension.Resource, "", "lamp")
			content, _ := json.Marshal(object)
			p.Fatalf("%s: it does not come: %s; the extension is %s", what, p.shown(), content)
		}
		time.Sleep(time.Millisecond)
	}
}

// shown returns all revisions as text: "1 Active 1.0.0 alice".
func (p *plane) shown() string {
	var out []string
	for number := int64(1); number <= p.head.Highest; number++ {
		r := p.revisions[fmt.Sprintf("lamp-%d", number)]
		if r == nil || r.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived {
			continue
		}
		out = append(out, fmt.Sprintf("%d %s %s %s", number, r.Spec.LifecycleState, r.Annotations[olmv1alpha1.VersionAnnotation], p.made[r.Name]))
	}
	return strings.Join(out, ", ")
}

func (p *plane) awaitRevisions(want string) {
	p.Helper()
	p.await("the revisions are "+want, func() bool { return p.shown() == want })
}

// succeed marks a revision as rolled out, and archives the earlier revisions.
func (p *plane) succeed(name string) {
	p.change(name, func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Status.Conditions = []metav1.Condition{{Type: olmv1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Succeeded"}, {Type: olmv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Available"}}
	})
	number := p.revisions[name].Spec.Revision
	for other, r := range p.revisions {
		if r.Spec.Revision < number {
			p.change(other, func(r *olmv1alpha1.ClusterExtensionRevision) {
				r.Spec.LifecycleState = olmv1alpha1.LifecycleStateArchived
			})
		}
	}
}

type counter struct{ atomic.Int64 }

func (c *counter) n() int { return int(c.Load()) }

func (p *plane) change(name string, change func(*olmv1alpha1.ClusterExtensionRevision)) {
	p.mu.Lock()
	r := p.revisions[name].DeepCopy()
	change(r)
	p.mu.Unlock()
	p.put(r)
}

// put stores a revision, and calls the handlers.
func (p *plane) put(r *olmv1alpha1.ClusterExtensionRevision) {
	p.mu.Lock()
	p.version++
	r.ResourceVersion = strconv.Itoa(p.version)
	p.revisions[r.Name] = r
	handlers := p.handlers
	p.mu.Unlock()
	for _, handler := range handlers {
		handler.OnAdd(r, false)
	}
}

// survive runs a process, and another one after its death. It returns at once.
func (p *plane) survive() bool {
	stop := p.takeLead()
	p.mu.Lock()
	died, left := p.died, p.left
	p.mu.Unlock()
	go func() {
		<-died
		stop()
		p.mu.Lock()
		p.left = -1
		p.mu.Unlock()
		p.takeLead()
	}()
	return left <= 12
}

func (p *plane) newest() string {
	shown := p.shown()
	last := shown[strings.LastIndex(", "+shown, ", "):]
	_, words, _ := strings.Cut(last, " ")
	return words
}

func (p *plane) message(kind string) string {
	found, err := p.host.Tracker().Get(extension.Resource, "", "lamp")
	if err != nil {
		return ""
	}
	read, err := extension.From(found.(*unstructured.Unstructured))
	if err != nil {
		return ""
	}
	if one := meta.FindStatusCondition(read.Status.Conditions, kind); one != nil {
		return one.Message
	}
	return ""
}

// condition returns "status/reason" of a condition for the present generation.
func (p *plane) condition(kind string) string {
	found, err := p.host.Tracker().Get(extension.Resource, "", "lamp")
	if err != nil {
		return ""
	}
	read, err := extension.From(found.(*unstructured.Unstructured))
	if err != nil {
		return ""
	}
	for _, one := range read.Status.Conditions {
		if one.Type == kind && one.ObservedGeneration == read.Generation {
			return string(one.Status) + "/" + one.Reason
		}
	}
	return ""
}

// Capabilities implements Capabilities.
func (p *plane) Capabilities(context.Context, string) (*template.Capabilities, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &template.Capabilities{Version: p.kubernetes, Major: "1", Minor: "36", APIVersions: append([]string{"v1"}, p.served...)}, nil
}
