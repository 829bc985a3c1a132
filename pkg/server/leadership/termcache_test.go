package leadership

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestTermEndsBeforeItsCacheIsThere: etcd does not answer while a term begins. The term then ends.
func TestTermEndsBeforeItsCacheIsThere(t *testing.T) {
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		asked <- struct{}{}
	}))
	t.Cleanup(server.Close)
	term, end := context.WithCancel(t.Context())
	mgr, err := manager.New(&rest.Config{Host: server.URL}, manager.Options{
		Scheme: scheme.Scheme, NewCache: newTermCache(term, nil), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			return mapper, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mgr.GetCache().GetInformer(term, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{}}, ctrlcache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(term) }()
	<-asked
	end()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
	// Later callers get the true answer.
	done, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if mgr.GetCache().WaitForCacheSync(done) {
		t.Error("the cache says that it is there")
	}
}

// whole reads revisions within the process.
type whole struct{ Revisions }

func (whole) Read(_ context.Context, name string, into *v1alpha1.ClusterExtensionRevision) error {
	into.Name = name
	return nil
}

func (whole) ReadAll(_ context.Context, selector labels.Selector, into *v1alpha1.ClusterExtensionRevisionList) error {
	into.Items = []v1alpha1.ClusterExtensionRevision{{ObjectMeta: metav1.ObjectMeta{Name: selector.String()}}}
	return nil
}

// informed is the cache of informers. It reports that it was read.
type informed struct{ ctrlcache.Cache }

var errInformed = errors.New("read from an informer")

func (informed) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errInformed
}

func (informed) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errInformed
}

// TestRevisionsAreReadWhole: controllers read whole revisions, although revisions of informers have
// no objects.
func TestRevisionsAreReadWhole(t *testing.T) {
	reader := &termCache{Cache: informed{}, revisions: whole{}}
	var one v1alpha1.ClusterExtensionRevision
	if err := reader.Get(t.Context(), client.ObjectKey{Name: "e-1"}, &one); err != nil || one.Name != "e-1" {
		t.Errorf("reading e-1 gave %q and %v", one.Name, err)
	}
	var all v1alpha1.ClusterExtensionRevisionList
	if err := reader.List(t.Context(), &all, client.MatchingLabels{"chain": "e"}); err != nil || len(all.Items) != 1 || all.Items[0].Name != "chain=e" {
		t.Errorf("reading the chain e gave %v and %v", all.Items, err)
	}
	if err := reader.List(t.Context(), &all, client.Limit(1)); err == nil {
		t.Error("a limit was taken, and all would be read")
	}
	for name, err := range map[string]error{
		"what is not copied": reader.List(t.Context(), &all, client.UnsafeDisableDeepCopy),
		"a ConfigMap":        reader.Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1.ConfigMap{}),
		"ConfigMaps":         reader.List(t.Context(), &corev1.ConfigMapList{}),
	} {
		if !errors.Is(err, errInformed) {
			t.Errorf("reading %s gave %v, want it from the informer", name, err)
		}
	}
}
