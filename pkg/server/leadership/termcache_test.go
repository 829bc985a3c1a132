package leadership

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// TestTermEndsBeforeItsCacheIsThere: etcd does not answer while a term begins, and the
// term ends for that.
func TestTermEndsBeforeItsCacheIsThere(t *testing.T) {
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		asked <- struct{}{}
	}))
	t.Cleanup(server.Close)
	term, end := context.WithCancel(t.Context())
	mgr, err := manager.New(&rest.Config{Host: server.URL}, manager.Options{
		Scheme: scheme.Scheme, NewCache: newTermCache(term), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
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
	// Nobody else is told what is not so.
	done, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if mgr.GetCache().WaitForCacheSync(done) {
		t.Error("the cache says that it is there")
	}
}
