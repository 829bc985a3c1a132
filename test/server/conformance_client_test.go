//go:build integration

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

func clientManners() map[string]manner {
	return map[string]manner{
		"InformerTyped":    {do: func(s *subject) { informer(s, s.typed) }},
		"InformerDynamic":  {do: func(s *subject) { informer(s, s.dynamicWatch) }},
		"InformerMetadata": {do: func(s *subject) { informer(s, s.metadataWatch) }},
		"ControllerClient": {do: controllerClient, deviations: []deviation{keptStatus("status")}},
		"ControllerCache":  {do: controllerCache},
	}
}

func (s *subject) dynamicWatch(config *rest.Config, scenario string) (cache.ListerWatcher, runtime.Object, error) {
	clients, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	api := clients.Resource(s.resource).Namespace(s.namespace)
	return listWatch(scenario, api.List, api.Watch), &unstructured.Unstructured{}, nil
}

func (s *subject) metadataWatch(config *rest.Config, scenario string) (cache.ListerWatcher, runtime.Object, error) {
	clients, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	api := clients.Resource(s.resource).Namespace(s.namespace)
	return listWatch(scenario, api.List, api.Watch), &metav1.PartialObjectMetadata{}, nil
}

// informer: an informer begins with a watch, and misses no event when its connection breaks.
func informer(s *subject, objects source) {
	config := s.Config()
	network := &network{}
	config.Dial, config.UserAgent = network.dial, s.base+"-"+s.singular
	listWatch, example, err := objects(config, s.base)
	if err != nil {
		s.t.Fatal(err)
	}
	informer := cache.NewSharedIndexInformer(listWatch, example, 0, cache.Indexers{})
	events := make(chan string, 100)
	say := func(what string, object any) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			what = err.Error()
		}
		events <- what + " " + strings.TrimPrefix(accessor.GetName(), s.base+"-")
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { say("add", object) },
		DeleteFunc: func(object any) { say("delete", object) },
		UpdateFunc: func(before, after any) {
			b, _ := meta.Accessor(before)
			a, _ := meta.Accessor(after)
			if b.GetResourceVersion() != a.GetResourceVersion() {
				say("update", after)
			}
		},
	}); err != nil {
		s.t.Fatal(err)
	}
	s.several("a")
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	mark := s.Audit().Mark()
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		s.t.Fatal("the informer did not sync")
	}
	take := func(n int) string {
		var all []string
		for range n {
			select {
			case event := <-events:
				all = append(all, event)
			case <-time.After(poll.Patience):
				s.t.Fatalf("no further event after %v", all)
			}
		}
		return strings.Join(all, "; ")
	}
	s.note("initial", "%s", take(1))
	first := s.Audit().Since(mark, plane.ByAgent(config.UserAgent))
	s.note("first request", "%s, of initial events %t", first[0].Verb, strings.Contains(first[0].URI, "sendInitialEvents=true"))
	s.several("b")
	s.turn("a", 2)
	s.note("changes", "%s", take(2))
	network.cut()
	s.several("c")
	s.remove("b")
	// A watch that resumes at its last version sees both steps of the deletion.
	s.note("after a broken connection", "%s", take(3))
	s.note("store", "%d", len(informer.GetStore().ListKeys()))
}

// network is a network that a test can cut.
type network struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (l *network) dial(ctx context.Context, protocol, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, protocol, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, conn)
	return conn, nil
}

// cut closes all connections.
func (l *network) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.conns = nil
}

// scheme returns a scheme with the type.
func (s *subject) scheme() *runtime.Scheme {
	s.t.Helper()
	scheme := runtime.NewScheme()
	if err := s.add(scheme); err != nil {
		s.t.Fatal(err)
	}
	return scheme
}

// typedDraft returns a draft as an object of the typed client.
func (s *subject) typedDraft(letter string) client.Object {
	s.t.Helper()
	encoded, err := json.Marshal(with(s.draft(s.name(letter)), s.base, "metadata", "labels", "scenario"))
	if err != nil {
		s.t.Fatal(err)
	}
	object := s.object()
	if err := json.Unmarshal(encoded, object); err != nil {
		s.t.Fatal(err)
	}
	return object
}

// controllerClient tests controller-runtime's client as a controller uses it.
func controllerClient(s *subject) {
	ctx := s.t.Context()
	c, err := client.New(s.Config(), client.Options{Scheme: s.scheme()})
	if err != nil {
		s.t.Fatal(err)
	}
	answered := func(what string, err error) {
		s.note(what, "%v %s", err, apierrors.ReasonForError(err))
	}
	answered("create", c.Create(ctx, s.typedDraft("a")))
	answered("create again", c.Create(ctx, s.typedDraft("a")))
	answered("dry run", c.Create(ctx, s.typedDraft("b"), client.DryRunAll))
	live := s.object()
	answered("get", c.Get(ctx, client.ObjectKeyFromObject(s.typedDraft("a")), live))
	answered("get nothing", c.Get(ctx, client.ObjectKeyFromObject(s.typedDraft("b")), s.object()))
	for i, label := range []string{"x", "x", "y"} {
		done, err := controllerutil.CreateOrUpdate(ctx, c, live, func() error {
			live.SetLabels(map[string]string{"scenario": s.base, "label": label, "penstock.dev/chain": live.GetLabels()["penstock.dev/chain"]})
			return nil
		})
		s.note(fmt.Sprintf("create or update %d", i), "%s %v", done, err)
	}
	old := live.DeepCopyObject().(client.Object)
	changed := live.DeepCopyObject().(client.Object)
	changed.SetAnnotations(map[string]string{"note": "1"})
	answered("patch with lock", c.Patch(ctx, changed, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})))
	answered("patch again with lock", c.Patch(ctx, old.DeepCopyObject().(client.Object), client.MergeFromWithOptions(changed, client.MergeFromWithOptimisticLock{})))
	answered("update of an old one", c.Update(ctx, old))
	answered("strategic patch", c.Patch(ctx, old, client.StrategicMergeFrom(changed)))
	answered("apply", c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: s.applied("a", 2)}), client.FieldOwner("applier"), client.ForceOwnership))
	answered("status", c.Status().Patch(ctx, live, client.RawPatch("application/merge-patch+json", []byte(describe(s.judged(1))))))
	list := s.breed.list()
	answered("list", c.List(ctx, list, client.MatchingLabels{"scenario": s.base}, client.Limit(1)))
	s.note("listed", "%d", meta.LenList(list))
	in := []client.DeleteAllOfOption{client.MatchingLabels{"scenario": s.base}}
	if s.namespace != "" {
		in = append(in, client.InNamespace(s.namespace))
	}
	answered("delete all", c.DeleteAllOf(ctx, s.object(), in...))
	answered("delete another", c.Delete(ctx, live, client.Preconditions{ResourceVersion: ptr.To("1")}))
	s.note("it is being deleted", "%t", at(s.get("a").body, "metadata", "deletionTimestamp") != nil)
}

// controllerCache tests reads from controller-runtime's informers: with an index, metadata only,
// and whole objects.
func controllerCache(s *subject) {
	ctx, stop := context.WithTimeout(s.t.Context(), poll.Patience)
	defer stop()
	s.several("a b")
	watched, err := crcache.New(s.Config(), crcache.Options{Scheme: s.scheme()})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := watched.IndexField(ctx, s.object(), "letter", func(o client.Object) []string { return []string{o.GetLabels()["letter"]} }); err != nil {
		s.t.Fatal(err)
	}
	go func() { _ = watched.Start(ctx) }()
	s.note("sync", "%t", watched.WaitForCacheSync(ctx))
	list := s.breed.list()
	err = watched.List(ctx, list, client.MatchingFields{"letter": "b"}, client.MatchingLabels{"scenario": s.base})
	s.note("by index", "%d %v", meta.LenList(list), err)
	partial := &metav1.PartialObjectMetadataList{}
	partial.SetGroupVersionKind(s.resource.GroupVersion().WithKind(s.kind + "List"))
	err = watched.List(ctx, partial, client.MatchingLabels{"scenario": s.base})
	s.note("metadata", "%d %v", len(partial.Items), err)
	s.several("c")
	s.remove("a")
	eventually(s.t, "the cache", func() error {
		var left []string
		if err := watched.List(ctx, partial, client.MatchingLabels{"scenario": s.base}); err != nil {
			return err
		}
		for _, item := range partial.Items {
			left = append(left, item.Labels["letter"])
		}
		if len(left) != 2 {
			return missingError{fmt.Sprint(left)}
		}
		return nil
	})
	s.answered("it is what the server has", call{method: http.MethodGet, name: s.name("c")})
}
