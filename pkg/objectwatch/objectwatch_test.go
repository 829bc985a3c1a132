package objectwatch

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	kubetesting "k8s.io/client-go/testing"
)

func secret(name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{"key": []byte(value)}}
}

// watched runs a watch. It returns a channel that receives when the answer may have changed.
func watched(t *testing.T, client *fake.Clientset, o Options) (*Watch[*corev1.Secret], <-chan struct{}) {
	t.Helper()
	changed := make(chan struct{}, 100)
	o.Changed = func() { changed <- struct{}{} }
	if o.Failed != nil {
		o.Failed = o.Changed
	}
	w := New(client, client.CoreV1().Secrets("ns"), &corev1.Secret{}, o)
	if _, err := w.Get(); !errors.Is(err, ErrUnknown) {
		t.Fatalf("before anything was asked: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return w, changed
}

func until(t *testing.T, changed <-chan struct{}, want func() bool) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for !want() {
		select {
		case <-changed:
		case <-limit:
			t.Fatal("the answer does not come")
		}
	}
}

// TestGet: Get shows the creation, change and deletion of one object, and ignores other objects of
// the resource.
func TestGet(t *testing.T) {
	client := fake.NewClientset(secret("other", "x"))
	// The fake tracker does not send a watch the changes before its start, not even the changes
	// since the list.
	watching := make(chan struct{}, 100)
	client.PrependWatchReactor("secrets", func(kubetesting.Action) (bool, watch.Interface, error) {
		began, err := client.Tracker().Watch(corev1.SchemeGroupVersion.WithResource("secrets"), "ns")
		watching <- struct{}{}
		return true, began, err
	})
	w, changed := watched(t, client, Options{Name: "mine"})
	is := func(value string) func() bool {
		return func() bool {
			found, err := w.Get()
			return err == nil && (found == nil && value == "" || found != nil && string(found.Data["key"]) == value)
		}
	}
	until(t, changed, is(""))
	<-watching
	secrets := client.CoreV1().Secrets("ns")
	if _, err := secrets.Create(t.Context(), secret("mine", "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, changed, is("1"))
	if _, err := secrets.Update(t.Context(), secret("mine", "2"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, changed, is("2"))
	if err := secrets.Delete(t.Context(), "mine", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, changed, is(""))
}

// TestAsksForOne: the watch requests only the named object.
func TestAsksForOne(t *testing.T) {
	client := fake.NewClientset()
	w, changed := watched(t, client, Options{Name: "mine"})
	until(t, changed, func() bool { _, err := w.Get(); return err == nil })
	for _, action := range client.Actions() {
		if list, ok := action.(kubetesting.ListAction); ok && list.GetListRestrictions().Fields.String() != "metadata.name=mine" {
			t.Errorf("%s selects %q", action.GetVerb(), list.GetListRestrictions().Fields)
		}
	}
}

// TestKeep: only the kept fields are in memory.
func TestKeep(t *testing.T) {
	w, changed := watched(t, fake.NewClientset(secret("a", "1"), secret("b", "1")), Options{Keep: func(object any) (any, error) {
		return &corev1.Secret{ObjectMeta: object.(*corev1.Secret).ObjectMeta}, nil
	}})
	until(t, changed, func() bool { found, err := w.List(); return err == nil && len(found) == 2 })
	found, _ := w.List()
	for _, one := range found {
		if one.Data != nil {
			t.Errorf("%s is kept with its data", one.Name)
		}
	}
}

// TestFailed: Get returns the error of a failed list until a list succeeds.
func TestFailed(t *testing.T) {
	client := fake.NewClientset()
	broken := errors.New("broken")
	client.PrependReactor("list", "secrets", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, broken })
	w, changed := watched(t, client, Options{Name: "mine", Failed: func() {}})
	until(t, changed, func() bool { _, err := w.Get(); return errors.Is(err, broken) })
}

// TestMetadata: a metadata client can be watched, too.
func TestMetadata(t *testing.T) {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	meta := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", UID: "u"}}
	client := metadatafake.NewSimpleMetadataClient(scheme, meta)
	changed := make(chan struct{}, 100)
	w := New(client, client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("ns"), &metav1.PartialObjectMetadata{},
		Options{Name: "mine", Changed: func() { changed <- struct{}{} }})
	go w.Run(t.Context())
	until(t, changed, func() bool { found, err := w.Get(); return err == nil && found != nil && found.UID == "u" })
}
