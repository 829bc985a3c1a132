package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// All tests of the cache run in a synctest bubble: time advances only when all goroutines wait. So
// minutes of back-off take no time, and no test is flaky.

func names() Names {
	return Names{ChainLabel: "chain", AppliedAnnotation: "applied", ManagerPrefix: "penstock/"}
}

func configMaps() schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
}

func crds() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
}

// fakeServer is a server of any kind, with one history.
type fakeServer struct {
	mu      sync.Mutex
	version int
	kinds   map[schema.GroupVersionKind]*fakeKind
	// streamsLists is false for a server that refuses to stream lists.
	streamsLists bool
	// ignoresStreaming is true for a server that streams changes and never marks the initial list
	// as complete.
	ignoresStreaming bool
}

type fakeKind struct {
	objects  map[types.NamespacedName]*unstructured.Unstructured
	watchers []*fakeWatcher
	err      error
	// silent makes watches start and end at once without an answer.
	silent bool
	// unserved kinds have no mapping.
	unserved                 bool
	mappings, lists, watches int
}

type fakeWatcher struct {
	*watch.RaceFreeFakeWatcher
	matches func(*unstructured.Unstructured) bool
	whole   bool
}

func newFakeServer() *fakeServer {
	return &fakeServer{version: 100, kinds: map[schema.GroupVersionKind]*fakeKind{}, streamsLists: true}
}

// on changes a kind under the lock.
func (f *fakeServer) on(kind schema.GroupVersionKind, change func(*fakeKind)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.kind(kind))
}

func (f *fakeServer) kind(kind schema.GroupVersionKind) *fakeKind {
	if f.kinds[kind] == nil {
		f.kinds[kind] = &fakeKind{objects: map[types.NamespacedName]*unstructured.Unstructured{}}
	}
	return f.kinds[kind]
}

func (f *fakeServer) mapping(_ context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.kind(kind)
	k.mappings++
	if k.unserved {
		return nil, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	}
	scope := meta.RESTScopeNamespace
	if kind == crds() {
		scope = meta.RESTScopeRoot
	}
	return &meta.RESTMapping{Resource: kind.GroupVersion().WithResource("any"), GroupVersionKind: kind, Scope: scope}, nil
}

func (f *fakeServer) list(_ context.Context, m *meta.RESTMapping, _ target, whole bool, o metav1.ListOptions) (runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.kind(m.GroupVersionKind)
	k.lists++
	if k.err != nil {
		return nil, k.err
	}
	list := &metav1.List{}
	list.ResourceVersion = strconv.Itoa(f.version)
	for _, object := range k.objects {
		if matcher(o)(object) {
			list.Items = append(list.Items, runtime.RawExtension{Object: represent(object, whole)})
		}
	}
	return list, nil
}

func (f *fakeServer) watch(_ context.Context, m *meta.RESTMapping, _ target, whole bool, o metav1.ListOptions) (watch.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.kind(m.GroupVersionKind)
	k.watches++
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	switch {
	case k.err != nil:
		return nil, k.err
	case k.silent:
		return watch.NewEmptyWatch(), nil
	case initial && !f.streamsLists:
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	w := &fakeWatcher{RaceFreeFakeWatcher: watch.NewRaceFreeFake(), matches: matcher(o), whole: whole}
	k.watchers = append(k.watchers, w)
	if initial && !f.ignoresStreaming {
		for _, object := range k.objects {
			if w.matches(object) {
				w.Add(represent(object, whole))
			}
		}
		end := &unstructured.Unstructured{Object: map[string]any{}}
		end.SetResourceVersion(strconv.Itoa(f.version))
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		w.Action(watch.Bookmark, represent(end, whole))
	}
	return w, nil
}

func matcher(o metav1.ListOptions) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		label, err := labels.Parse(o.LabelSelector)
		if err != nil {
			panic(err)
		}
		field, err := fields.ParseSelector(o.FieldSelector)
		if err != nil {
			panic(err)
		}
		return label.Matches(labels.Set(object.GetLabels())) && field.Matches(fields.Set{"metadata.name": object.GetName()})
	}
}

// represent returns the representation that a server sends of an object.
func represent(object *unstructured.Unstructured, whole bool) runtime.Object {
	if whole {
		return object.DeepCopy()
	}
	return meta.AsPartialObjectMetadata(object.DeepCopy())
}

// put stores an object and notifies the watchers.
func (f *fakeServer) put(kind schema.GroupVersionKind, object *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	object.SetResourceVersion(strconv.Itoa(f.version))
	k := f.kind(kind)
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	old := k.objects[key]
	k.objects[key] = object
	for _, w := range k.watchers {
		was, is := old != nil && w.matches(old), w.matches(object)
		switch {
		case w.IsStopped():
		case was && is:
			w.Modify(represent(object, w.whole))
		case is:
			w.Add(represent(object, w.whole))
		case was:
			w.Delete(represent(object, w.whole))
		}
	}
}

func (f *fakeServer) remove(kind schema.GroupVersionKind, namespace, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	k := f.kind(kind)
	key := types.NamespacedName{Namespace: namespace, Name: name}
	last := k.objects[key].DeepCopy()
	delete(k.objects, key)
	last.SetResourceVersion(strconv.Itoa(f.version))
	for _, w := range k.watchers {
		if !w.IsStopped() && w.matches(last) {
			w.Delete(represent(last, w.whole))
		}
	}
}

func (f *fakeServer) disconnect(kind schema.GroupVersionKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.kind(kind)
	for _, w := range k.watchers {
		w.Stop()
	}
	k.watchers = nil
}

func (f *fakeServer) watching(kind schema.GroupVersionKind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	open := 0
	for _, w := range f.kind(kind).watchers {
		if !w.IsStopped() {
			open++
		}
	}
	return open
}

func (f *fakeServer) requests(kind schema.GroupVersionKind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kind(kind).lists + f.kind(kind).watches
}

// pathMissing is the server's answer for a resource that is not served.
func pathMissing() error {
	return apierrors.NewGenericServerResponse(404, "GET", schema.GroupResource{Resource: "any"}, "", "404 page not found", 0, true)
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "", errors.New("no"))
}

// object returns an object of namespace "n".
func object(name string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	o.SetNamespace("n")
	o.SetName(name)
	o.SetUID(types.UID("uid-" + name))
	for _, c := range change {
		c(o)
	}
	return o
}

func inChain(chain string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"chain": chain}) }
}

func generation(n int64) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetGeneration(n) }
}

func field(value any, path ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

func id(name string) manifest.ID {
	return manifest.ID{Kind: "ConfigMap", Namespace: "n", Name: name}
}

func want(name string) Interest { return Interest{ID: id(name), Version: "v1"} }

func wantByName(name string) Interest {
	return Interest{ID: id(name), Version: "v1", ByName: true}
}

func wantReading(name string, reads probe.Reads) Interest {
	return Interest{ID: id(name), Version: "v1", Reads: reads}
}

// notices records the notified owners.
type notices struct {
	mu   sync.Mutex
	list []string
}

func (n *notices) add(owner string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, owner)
}

// take waits until nothing happens, and returns the owners notified since the last call, sorted and
// without duplicates.
func (n *notices) take() []string {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.list
	n.list = nil
	slices.Sort(out)
	return slices.Compact(out)
}

// bubble runs a test of a cache with a fake server.
func bubble(t *testing.T, prepare func(*fakeServer), test func(*testing.T, *fakeServer, *Cache, *notices)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, heard := newFakeServer(), &notices{}
		if prepare != nil {
			prepare(server)
		}
		c, err := newCache(Options{Mapping: server.mapping, Names: names(), Notify: heard.add}, server)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		test(t, server, c, heard)
		cancel()
		// synctest fails the test if a goroutine is still running.
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// know fails the test unless the cache returns the wanted presence of an object.
func know(t *testing.T, c *Cache, want Presence, name, reason string) Observation {
	t.Helper()
	synctest.Wait()
	seen, presence := c.Get(id(name))
	if presence != want {
		t.Errorf("%s: want %s to be %s, is %s %s", reason, name, want, presence, fmt.Sprint(seen))
	}
	return seen
}
