package targetadmission

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/accepted"
)

var (
	hooks    = schema.GroupVersionResource{Group: admissionGroup, Version: "v1", Resource: "validatingwebhookconfigurations"}
	policies = schema.GroupVersionResource{Group: admissionGroup, Version: "v1", Resource: "validatingadmissionpolicies"}
	limits   = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}

	deployment = manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "x"}
	update     = accepted.Verdict{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}}
)

// cluster is one that answers Admission from fakes, which say what they were asked.
type cluster struct {
	*Admission
	client  *fake.Clientset
	objects *dynamicfake.FakeDynamicClient
	quotas  *metadatafake.FakeMetadataClient

	mu sync.Mutex
	// asked are the requests, as verb and resource.
	asked []string
	// refused are answers to requests, as verb and resource; nil for those that are answered.
	refused map[string]error
	// denied are verbs that we may not.
	denied []string
	// streams are the watches of webhooks that are open.
	streams []*watch.RaceFreeFakeWatcher
}

// newCluster serves webhooks and quotas, and is watched until the test ends.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		client: fake.NewClientset(),
		objects: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme, map[schema.GroupVersionResource]string{
			hooks: "ValidatingWebhookConfigurationList", policies: "ValidatingAdmissionPolicyList",
		}),
		quotas:  metadatafake.NewSimpleMetadataClient(scheme),
		refused: map[string]error{},
	}
	c.serve(hooks, "ValidatingWebhookConfiguration")
	for _, fakes := range []*kubetesting.Fake{&c.client.Fake, &c.objects.Fake, &c.quotas.Fake} {
		fakes.PrependReactor("*", "*", func(action kubetesting.Action) (bool, runtime.Object, error) {
			err := c.note(action)
			return err != nil, nil, err
		})
		fakes.PrependWatchReactor("*", func(action kubetesting.Action) (bool, watch.Interface, error) {
			if err := c.note(action); err != nil {
				return true, nil, err
			}
			if action.GetResource() != hooks {
				return false, nil, nil
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			stream := watch.NewRaceFreeFake()
			c.streams = append(c.streams, stream)
			return true, stream, nil
		})
	}
	c.client.PrependReactor("create", "selfsubjectreviews", func(kubetesting.Action) (bool, runtime.Object, error) {
		return c.answer("create selfsubjectreviews", &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: engine}}})
	})
	c.client.PrependReactor("create", "selfsubjectaccessreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
		review := action.(kubetesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		c.mu.Lock()
		review.Status.Allowed = !slices.Contains(c.denied, review.Spec.ResourceAttributes.Verb)
		c.mu.Unlock()
		return c.answer("create selfsubjectaccessreviews", review)
	})
	c.Admission = newOf(clock.RealClock{}, c.client, c.client.Discovery(), c.objects, c.quotas)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return c
}

// serve adds a kind to those that discovery names.
func (c *cluster) serve(resource schema.GroupVersionResource, kind string) {
	version := resource.GroupVersion().String()
	for _, list := range c.client.Resources {
		if list.GroupVersion == version {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource.Resource, Kind: kind})
			return
		}
	}
	c.client.Resources = append(c.client.Resources, &metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{{Name: resource.Resource, Kind: kind}}})
}

// note notes a request, and returns how it is refused.
func (c *cluster) note(action kubetesting.Action) error {
	request := action.GetVerb() + " " + action.GetResource().Resource
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, request)
	return c.refused[request]
}

func (c *cluster) answer(request string, object runtime.Object) (bool, runtime.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, request)
	return true, object, c.refused[request]
}

// refuse has requests refused from now on; a nil error has them answered.
func (c *cluster) refuse(err error, requests ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range requests {
		if delete(c.refused, request); err != nil {
			c.refused[request] = err
		}
	}
}

// spent are the requests since it was last called, in order of their names.
func (c *cluster) spent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := slices.Sorted(slices.Values(c.asked))
	c.asked = nil
	return asked
}

// cut ends all streams of webhooks.
func (c *cluster) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stream := range c.streams {
		stream.Stop()
	}
	c.streams = nil
}

// hook makes a webhook for all Deployments, and tells the streams: there is one by then, or it
// fails.
func (c *cluster) hook(t *testing.T) {
	t.Helper()
	synctest.Wait()
	hook := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": admissionGroup + "/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "x", "resourceVersion": "7"},
		"webhooks": []any{map[string]any{"name": "x.example.com", "rules": []any{map[string]any{
			"apiGroups": []any{"apps"}, "apiVersions": []any{"v1"}, "resources": []any{"deployments"}, "operations": []any{"UPDATE"},
		}}}},
	}}
	if err := c.objects.Tracker().Create(hooks, hook, ""); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stream := range c.streams {
		stream.Add(hook)
	}
}

// silent asks, and fails when the answer is another one.
func (c *cluster) silent(t *testing.T, want bool, why string) {
	t.Helper()
	if got := c.Silent(t.Context(), deployment, update); got != want {
		t.Errorf("%s: silent is %t, want %t", why, got, want)
	}
}

var errNoConnection = errors.New("connection refused")

// TestPrepare: an installation has asked what the first update needs.
func TestPrepare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		if asked := c.spent(); len(asked) > 0 {
			t.Fatalf("asked before anything is installed: %q", asked)
		}
		for range 3 {
			c.Prepare()
		}
		synctest.Wait()
		asked := c.spent()
		for _, request := range []string{
			"create selfsubjectreviews", "create selfsubjectaccessreviews", "list validatingwebhookconfigurations", "watch validatingwebhookconfigurations",
			"list resourcequotas", "watch resourcequotas",
		} {
			n := 0
			for _, one := range asked {
				if one == request {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%d requests to %s, want 1, of %q", n, request, asked)
			}
		}
		counted := update
		counted.Quota = true
		if !c.Silent(t.Context(), deployment, counted) {
			t.Error("nothing has a say, and it is not known")
		}
		if asked := c.spent(); len(asked) > 0 {
			t.Errorf("the first update asks %q", asked)
		}
		time.Sleep(believedFor)
		c.Prepare()
		synctest.Wait()
		if asked := c.spent(); !slices.Contains(asked, "create selfsubjectreviews") {
			t.Errorf("what is too old to be believed is not asked again: %q", asked)
		}
	})
}

// TestPrepareFails: the first question asks again.
func TestPrepareFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.refuse(errNoConnection, "create selfsubjectreviews")
		c.Prepare()
		c.Prepare()
		synctest.Wait()
		if asked := c.spent(); len(asked) != 1 {
			t.Errorf("an installation does not repeat a question that just failed: %q", asked)
		}
		c.silent(t, false, "it is not known who we are")
		c.refuse(nil, "create selfsubjectreviews")
		c.silent(t, true, "everything is known")
	})
}

// TestPrepareBeforeRun asks nothing.
func TestPrepareBeforeRun(t *testing.T) {
	a := newOf(clock.RealClock{}, nil, nil, nil, nil)
	a.Prepare()
	if !a.prepared.at.IsZero() {
		t.Error("it counts as prepared")
	}
}

// TestWatchFails: nothing is certain while a watch is down, and what happened meanwhile is known
// once it is back.
func TestWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.silent(t, true, "there is no webhook")
		c.refuse(errNoConnection, "watch validatingwebhookconfigurations", "list validatingwebhookconfigurations")
		c.cut()
		time.Sleep(time.Minute)
		synctest.Wait()
		c.silent(t, false, "the watch is down")
		c.refuse(nil, "watch validatingwebhookconfigurations", "list validatingwebhookconfigurations")
		time.Sleep(time.Minute)
		synctest.Wait()
		c.silent(t, true, "it is back, and there is still no webhook")

		c.refuse(errNoConnection, "watch validatingwebhookconfigurations", "list validatingwebhookconfigurations")
		c.cut()
		time.Sleep(time.Minute)
		c.hook(t)
		c.refuse(nil, "watch validatingwebhookconfigurations", "list validatingwebhookconfigurations")
		c.refuse(apierrors.NewResourceExpired("too old"), "watch validatingwebhookconfigurations")
		time.Sleep(time.Minute)
		synctest.Wait()
		c.refuse(nil, "watch validatingwebhookconfigurations")
		time.Sleep(time.Minute)
		synctest.Wait()
		c.silent(t, false, "a webhook came while it was down")
	})
}

// TestWebhookComes: a stream that is open tells it.
func TestWebhookComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.silent(t, true, "there is no webhook")
		c.hook(t)
		synctest.Wait()
		c.silent(t, false, "a webhook has a say")
	})
}

// TestForbidden: whoever may not see, or not write, tries everything, at once and not after the
// time that a slow answer may take.
func TestForbidden(t *testing.T) {
	forbidden := func(resource schema.GroupVersionResource) error {
		return apierrors.NewForbidden(resource.GroupResource(), "", errors.New("no rights"))
	}
	for name, c := range map[string]struct {
		reason  string
		refused []string
		err     error
		denied  []string
		quota   bool
		want    bool
	}{
		"webhooks": {"a webhook may be there", []string{"list " + hooks.Resource, "watch " + hooks.Resource}, forbidden(hooks), nil, false, false},
		"list":     {"the first answer never comes", []string{"list " + hooks.Resource}, forbidden(hooks), nil, false, false},
		"quotas":   {"a quota may be there", []string{"list " + limits.Resource, "watch " + limits.Resource}, forbidden(limits), nil, true, false},
		"no-quota": {"no quota has a say in it", []string{"list " + limits.Resource, "watch " + limits.Resource}, forbidden(limits), nil, false, true},
		"patch":    {"we may not write", nil, nil, []string{"patch"}, false, false},
		"rights":   {"it is not known whether we may", []string{"create selfsubjectaccessreviews"}, forbidden(hooks), nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t)
				w.refuse(c.err, c.refused...)
				w.denied = c.denied
				asked := update
				asked.Quota = c.quota
				for i := range 3 {
					began := time.Now()
					if got := w.Silent(t.Context(), deployment, asked); got != c.want {
						t.Errorf("%s, question %d: silent is %t", c.reason, i, got)
					}
					if took := time.Since(began); took > 0 {
						t.Errorf("question %d waited %s for what is refused", i, took)
					}
					time.Sleep(time.Minute)
				}
				w.refuse(nil, c.refused...)
				w.mu.Lock()
				w.denied = nil
				w.mu.Unlock()
				// A right is believed for as long, and client-go tries again within a minute.
				time.Sleep(believedFor)
				synctest.Wait()
				if !w.Silent(t.Context(), deployment, asked) {
					t.Error("it is granted, and still not believed")
				}
			})
		})
	}
}

// TestRediscovery: a kind of admission that the cluster begins to serve is found when what was
// asked is too old.
func TestRediscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.silent(t, true, "there is no webhook")
		policy := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": admissionGroup + "/v1", "kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": "x"}, "spec": map[string]any{},
		}}
		if err := c.objects.Tracker().Create(policies, policy, ""); err != nil {
			t.Fatal(err)
		}
		c.serve(policies, "ValidatingAdmissionPolicy")
		time.Sleep(believedFor - time.Second)
		c.spent()
		c.silent(t, true, "what is served was asked lately")
		if asked := c.spent(); len(asked) > 0 {
			t.Errorf("it was asked again: %q", asked)
		}
		time.Sleep(time.Second)
		c.silent(t, false, "a policy has a say")
		if asked := c.spent(); !slices.Contains(asked, "list "+policies.Resource) {
			t.Errorf("policies are not listed: %q", asked)
		}
		if n := len(c.followed); n != 2 {
			t.Errorf("%d kinds are followed, want 2", n)
		}
	})
}

// TestNotRunning: nothing is known without watches.
func TestNotRunning(t *testing.T) {
	a := newOf(clock.RealClock{}, fake.NewClientset(), fake.NewClientset().Discovery(), nil, nil)
	if a.Silent(t.Context(), deployment, update) {
		t.Error("what nobody watches is certain")
	}
}
