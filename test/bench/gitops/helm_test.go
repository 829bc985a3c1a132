package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// patience limits an upgrade that succeeds, and haste one that fails.
const (
	patience = 90 * time.Second
	haste    = 20 * time.Second
)

// TestWait: Helm waits for every upgrade of a chart that keeps the files of all its revisions, and
// the newest revision is current at the end.
func TestWait(t *testing.T) {
	if os.Getenv("PENSTOCK_PROGRAM") == "" {
		t.Skip("it needs the program: make test")
	}
	h := newHelm(t)
	ready := func(files ...string) {
		t.Helper()
		if err := h.roll(patience, files...); err != nil {
			t.Fatalf("with %d revisions: %v", len(files), err)
		}
	}
	one, two, three := revision(1, "", "default"), revision(2, "", "default"), revision(3, "Active", "default")
	ready(one)
	ready(one, two)
	h.judged("web-1 Current", "web-2 Current")
	// The third upgrade used to time out. Its file says Active, as all files do.
	ready(one, two, three)
	h.judged("web-1 Current", "web-2 Current", "web-3 Current")
	ready(one, two, three, revision(4, "Paused", "default"))
	h.judged("web-1 Current", "web-2 Current", "web-3 Current", "web-4 Current")

	// Helm does not wait for a state that needs a user, and an unchanged object is not a failure.
	err := h.roll(haste, one, two, three, revision(5, "", "nowhere"))
	if err == nil || !strings.Contains(err.Error(), "web-5 not ready. status: Failed") || strings.Contains(err.Error(), "deadline") {
		t.Errorf("an upgrade that the server refuses: %v", err)
	}
	h.judged("web-1 Current", "web-2 Current", "web-3 Current", "web-5 Failed")
	// web-3 is archived when web-6 has succeeded, although its file still says Active.
	six := revision(6, "", "default")
	ready(one, two, three, six)
	ready(one, two, three, six, revision(7, "", "default"))
	h.judged("web-1 Current", "web-2 Current", "web-3 Current", "web-6 Current", "web-7 Current")
}

// revision returns the file of a revision with an object in a namespace. An empty state is omitted.
func revision(number int, state, namespace string) string {
	if state != "" {
		state = "lifecycleState: " + state
	}
	return fmt.Sprintf(`apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata: {name: web-%d}
spec:
  revision: %d
  %s
  phases:
  - name: deploy
    objects:
    - object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: web, namespace: %s}
        data: {key: "%d"}
`, number, number, state, namespace, number)
}

var revisionResource = olmv1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions")

// helm installs and upgrades one release as `helm upgrade --install --wait` does.
type helm struct {
	t         *testing.T
	flags     *genericclioptions.ConfigFlags
	revisions dynamic.ResourceInterface
	installed bool
}

func newHelm(t *testing.T) *helm {
	t.Helper()
	c := cluster.Start(t)
	penstock.Build(t).Serve(t, c, penstock.DataDir(t))
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	// Helm requests all groups at once, and kube-apiserver adds aggregated groups with a delay.
	groups, err := discovery.NewDiscoveryClientForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	err = poll.Until(t.Context(), func(context.Context) bool {
		_, resources, _, err := groups.GroupsAndMaybeResources()
		return err == nil && resources[olmv1alpha1.SchemeGroupVersion] != nil
	})
	if err != nil {
		t.Fatalf("our types are not among all groups: %v", err)
	}
	staysCurrent(t, client)
	flags, kubeconfig, namespace := genericclioptions.NewConfigFlags(true), c.Kubeconfig(), "default"
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	return &helm{t: t, flags: flags, revisions: client.Resource(revisionResource)}
}

// staysCurrent fails the test when a revision that was Current is in progress again. After all
// objects were Current, Helm checks once more, and at that time a superseded revision is archived.
func staysCurrent(t *testing.T, client dynamic.Interface) {
	t.Helper()
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(revisionResource).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		revision := after.(*unstructured.Unstructured)
		was, err1 := status.Compute(before.(*unstructured.Unstructured))
		is, err2 := status.Compute(revision)
		if err := errors.Join(err1, err2); err != nil {
			t.Error(err)
		} else if was.Status == status.CurrentStatus && is.Status == status.InProgressStatus {
			t.Errorf("%s was Current, and is in progress again: %s", revision.GetName(), is.Message)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		factory.Shutdown()
	})
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
}

// roll installs or upgrades the release with these files, and waits.
func (h *helm) roll(timeout time.Duration, files ...string) error {
	h.t.Helper()
	configuration := action.NewConfiguration()
	if err := configuration.Init(h.flags, "default", "secrets"); err != nil {
		h.t.Fatal(err)
	}
	packed := &chart.Chart{Metadata: &chart.Metadata{Name: "web", Version: "1.0.0", APIVersion: chart.APIVersionV2}}
	for i, file := range files {
		packed.Templates = append(packed.Templates, &common.File{Name: fmt.Sprintf("templates/%d.yaml", i), Data: []byte(file)})
	}
	ctx := context.Background()
	if !h.installed {
		h.installed = true
		do := action.NewInstall(configuration)
		do.ReleaseName, do.Namespace, do.Timeout = "web", "default", timeout
		do.WaitStrategy, do.ServerSideApply = kube.StatusWatcherStrategy, true
		_, err := do.RunWithContext(ctx, packed, nil)
		return err
	}
	do := action.NewUpgrade(configuration)
	do.Namespace, do.Timeout = "default", timeout
	do.WaitStrategy, do.ServerSideApply = kube.StatusWatcherStrategy, "true"
	_, err := do.RunWithContext(ctx, "web", packed, nil)
	return err
}

// judged waits until kstatus has the expected results for revisions. It waits because a superseded
// revision is archived only after the upgrade.
func (h *helm) judged(want ...string) {
	h.t.Helper()
	for _, expected := range want {
		name, _, _ := strings.Cut(expected, " ")
		ctx, cancel := context.WithTimeout(h.t.Context(), patience)
		last := "it was not seen"
		_, err := watchtools.UntilWithSync(ctx, h.only(name), &unstructured.Unstructured{}, nil, func(event watch.Event) (bool, error) {
			revision, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Deleted {
				return false, nil
			}
			result, err := status.Compute(revision)
			if err != nil {
				return false, err
			}
			last = fmt.Sprintf("%s (%s)", result.Status, result.Message)
			return name+" "+string(result.Status) == expected, nil
		})
		cancel()
		if err != nil {
			h.t.Errorf("kstatus says of %s: %s, want %s (%v)", name, last, expected, err)
		}
	}
}

// only lists and watches one revision.
func (h *helm) only(name string) cache.ListerWatcher {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return h.revisions.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return h.revisions.Watch(ctx, options)
		},
	}
}
