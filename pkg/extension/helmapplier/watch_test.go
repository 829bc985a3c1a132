package helmapplier

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/source/helm/chunked"
)

// TestWatch: Watch knows the releases, and which of them the engine has taken over, without a
// request per release.
func TestWatch(t *testing.T) {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	secret := func(name, release, kind string, more map[string]string) *metav1.PartialObjectMetadata {
		labels := map[string]string{chunked.LabelOwner: chunked.Owner, chunked.LabelType: kind, chunked.LabelName: release}
		maps.Copy(labels, more)
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: name, Labels: labels}}
	}
	over := map[string]string{olmv1alpha1.SupersededByLabel: "x"}
	annotated := secret("d1", "d", chunked.TypeIndex, nil)
	annotated.Annotations = over
	client := metadatafake.NewSimpleMetadataClient(scheme,
		secret("a1", "a", chunked.TypeIndex, over), secret("a2", "a", chunked.TypeIndex, nil), secret("b1", "b", chunked.TypeIndex, over),
		secret("c1", "c", chunked.TypeChunk, nil), annotated)
	w := NewWatch(client, "system")
	if _, err := w.Releases(); err == nil {
		t.Error("before anything was asked there is an answer")
	}
	secretResource := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	// The tracker reports no events from before the watch, not even those since the list.
	watching := make(chan struct{}, 100)
	client.PrependWatchReactor("secrets", func(clienttesting.Action) (bool, watch.Interface, error) {
		began, err := client.Tracker().Watch(secretResource, "system")
		watching <- struct{}{}
		return true, began, err
	})
	changed := make(chan struct{}, 100)
	go w.Run(t.Context(), func() { changed <- struct{}{} })
	is := func(want map[string]bool) {
		t.Helper()
		limit := time.After(10 * time.Second)
		for {
			got, err := w.Releases()
			if err == nil && maps.Equal(got, want) {
				return
			}
			select {
			case <-changed:
			case <-limit:
				t.Fatalf("the releases are %v (%v), want %v", got, err, want)
			}
		}
	}
	is(map[string]bool{"a": true, "b": false, "d": false})
	<-watching
	secrets := client.Resource(secretResource).Namespace("system")
	for _, name := range []string{"a2", "b1"} {
		if err := secrets.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	is(map[string]bool{"a": false, "d": false})
}
