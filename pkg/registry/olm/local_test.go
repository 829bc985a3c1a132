package olm_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestLocal: Local returns the same revisions as clients get, except managedFields. Lists and
// watches share the memory of the watch cache and omit objects of phases; reads return whole
// revisions.
func TestLocal(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	whole := s.storage.Revision.Local()
	local := cache.ToListerWatcherWithContext(whole)

	object, err := local.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: ""})
	if err != nil {
		t.Fatal(err)
	}
	list := object.(*v1alpha1.ClusterExtensionRevisionList)
	if len(list.Items) != 1 || list.ResourceVersion == "" {
		t.Fatalf("the list has %d revisions at resourceVersion %q, want one", len(list.Items), list.ResourceVersion)
	}
	var want v1alpha1.ClusterExtensionRevision
	raw := s.do(call{method: http.MethodGet, path: revisions + "/e-1"}).want(t, http.StatusOK).raw
	if err := json.Unmarshal([]byte(raw), &want); err != nil {
		t.Fatal(err)
	}
	if len(want.ManagedFields) == 0 {
		t.Fatal("a client sees no managedFields: nothing is left out")
	}
	want.ManagedFields, want.TypeMeta = nil, metav1.TypeMeta{}
	var read v1alpha1.ClusterExtensionRevision
	if err := whole.Read(t.Context(), "e-1", &read); err != nil {
		t.Fatal(err)
	}
	var all v1alpha1.ClusterExtensionRevisionList
	if err := whole.ReadAll(t.Context(), labels.SelectorFromSet(labels.Set{v1alpha1.ChainLabel: "e"}), &all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("read (-client +local):\n%s", diff)
	}
	if diff := cmp.Diff([]v1alpha1.ClusterExtensionRevision{want}, all.Items); diff != "" {
		t.Errorf("read with all of the chain (-client +local):\n%s", diff)
	}
	if err := whole.Read(t.Context(), "e-2", &read); !apierrors.IsNotFound(err) {
		t.Errorf("reading what is not there gave %v, want that it is not found", err)
	}
	// The reader changes its result.
	all.Items[0].Spec.Phases[0].Objects[0].Digest, all.Items[0].Labels[v1alpha1.ChainLabel] = "", ""
	want.Spec.Phases[0].Objects = nil
	if diff := cmp.Diff(want, list.Items[0]); diff != "" {
		t.Errorf("listed (-client +local):\n%s", diff)
	}

	events, err := local.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0", AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	first := next(t, events)
	if diff := cmp.Diff(watch.Event{Type: watch.Added, Object: &want}, first); diff != "" {
		t.Errorf("watched (-client +local):\n%s", diff)
	}
	again, err := local.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	watched := first.Object.(*v1alpha1.ClusterExtensionRevision)
	if &watched.Status.Conditions[0] != &again.(*v1alpha1.ClusterExtensionRevisionList).Items[0].Status.Conditions[0] {
		t.Error("what is watched and what is listed are two pieces of memory")
	}
}

// TestLocalInforms: an informer of the controllers gets existing, new and deleted revisions.
func TestLocalInforms(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	informer := cache.NewSharedIndexInformer(s.storage.Revision.Local(), &v1alpha1.ClusterExtensionRevision{}, 0, cache.Indexers{})
	seen := make(chan string, 10)
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { seen <- "added " + o.(*v1alpha1.ClusterExtensionRevision).Name },
		UpdateFunc: func(_, o any) { seen <- "changed " + o.(*v1alpha1.ClusterExtensionRevision).Name },
		DeleteFunc: func(o any) { seen <- "deleted " + o.(*v1alpha1.ClusterExtensionRevision).Name },
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-seen:
			if got != want {
				t.Fatalf("the informer saw %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the informer did not see %q", want)
		}
	}
	expect("added e-1")
	s.create(file("f-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	expect("added f-1")
	s.patch("f-1", "application/merge-patch+json", object{"spec": object{"lifecycleState": "Paused"}}).want(t, http.StatusOK)
	expect("changed f-1")
	s.remove("f-1")
	expect("changed f-1") // it waits for its teardown
	expect("deleted f-1")

	if _, err := cache.ToListerWatcherWithContext(s.storage.Revision.Local()).WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "nonsense"}); err == nil {
		t.Error("a resourceVersion that is none was taken")
	}
}

func next(t *testing.T, events watch.Interface) watch.Event {
	t.Helper()
	select {
	case event := <-events.ResultChan():
		return event
	case <-time.After(time.Minute):
		t.Fatal("no event came")
		return watch.Event{}
	}
}
