package helmapplier

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	rspb "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/penstock-project/penstock/pkg/source/helm"
)

// cluster is what Helm applies to. What is served there is asked once, and again when a kind is
// not found.
type cluster struct {
	config    *rest.Config
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
}

func newCluster(config *rest.Config) (*cluster, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting Helm to the cluster: %w", err)
	}
	cached := memory.NewMemCacheClient(client)
	return &cluster{config: config, discovery: cached, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}, nil
}

// getter leads Helm's client to the cluster for one action: its requests end with the context,
// which Helm does not pass on.
type getter struct {
	*cluster
	config *rest.Config
}

func (c *cluster) getter(ctx context.Context) getter {
	config := rest.CopyConfig(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded(ctx, next) })
	return getter{c, config}
}

func (g getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

func (g getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

func (g getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// ToRawKubeConfigLoader is for Helm's default namespace, in which nothing is applied.
func (g getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{})
}

// roundTrip implements http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// bounded sends nothing more when a context has ended, and waits for no answer then.
func bounded(ctx context.Context, next http.RoundTripper) roundTrip {
	return func(request *http.Request) (*http.Response, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sending, cancel := context.WithCancel(request.Context())
		stop := context.AfterFunc(ctx, cancel)
		response, err := next.RoundTrip(request.WithContext(sending))
		stop()
		if err != nil {
			cancel()
		}
		return response, err
	}
}

// upgrade is what one action changes in the cluster.
type upgrade struct {
	client          *kube.Client
	current, target kube.ResourceList
}

// prepare finds out what has to change, and reads only.
func (c *cluster) prepare(ctx context.Context, wanted Wanted, before, next *rspb.Release) (*upgrade, error) {
	client := kube.New(c.getter(ctx))
	client.Namespace = wanted.Namespace
	client.SetLogger(slog.DiscardHandler)
	u := &upgrade{client: client}
	var err error
	if u.target, err = client.Build(strings.NewReader(next.Manifest), false); err != nil {
		return nil, err
	}
	if err := u.target.Visit(marked(wanted)); err != nil {
		return nil, err
	}
	if before != nil {
		if u.current, err = served(client, before.Manifest); err != nil {
			return nil, fmt.Errorf("revision %d: %w", before.Version, err)
		}
	}
	return u, u.take(wanted)
}

// served are the objects of a manifest whose kinds are. Others are gone with their kinds.
func served(client *kube.Client, manifest string) (kube.ResourceList, error) {
	all, err := client.Build(strings.NewReader(manifest), false)
	if err == nil {
		return all, nil
	}
	var list kube.ResourceList
	for line := range strings.Lines(manifest) {
		one, err := client.Build(strings.NewReader(line), false)
		switch {
		case err == nil:
			list = append(list, one...)
		case !meta.IsNoMatchError(err) && !strings.Contains(err.Error(), "no matches for kind"):
			return nil, err
		}
	}
	return list, nil
}

// marked gives objects the marks by which Helm knows those of a release, and an owner.
func marked(wanted Wanted) resource.VisitorFunc {
	return func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		object, err := meta.Accessor(info.Object)
		if err != nil {
			return err
		}
		object.SetLabels(with(object.GetLabels(), helm.ManagedByLabel, helm.ManagedByHelm))
		object.SetAnnotations(with(with(object.GetAnnotations(), helm.NameAnnotation, wanted.Name), helm.NamespaceAnnotation, wanted.Namespace))
		if !wanted.Keep {
			object.SetOwnerReferences([]metav1.OwnerReference{wanted.Owner})
		}
		return nil
	}
}

func with(entries map[string]string, key, value string) map[string]string {
	if entries == nil {
		entries = map[string]string{}
	}
	entries[key] = value
	return entries
}

// take finds the objects that are there and were not in the revision before. They must be the
// release's, or may be taken over: then they are changed, and not made.
func (u *upgrade) take(wanted Wanted) error {
	return u.target.Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		if u.current.Contains(info) {
			return nil
		}
		live, err := resource.NewHelper(info.Client, info.Mapping).Get(info.Namespace, info.Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking for %s: %w", title(info), err)
		}
		object, err := meta.Accessor(live)
		if err != nil {
			return err
		}
		annotations := object.GetAnnotations()
		ours := annotations[helm.NameAnnotation] == wanted.Name && annotations[helm.NamespaceAnnotation] == wanted.Namespace
		if !ours && !wanted.Take {
			return fmt.Errorf("%s exists already and is not of this release; collision protection leaves it alone", title(info))
		}
		u.current.Append(info)
		return nil
	})
}

func title(info *resource.Info) string {
	if info.Namespace == "" {
		return info.Mapping.GroupVersionKind.Kind + " " + info.Name
	}
	return info.Mapping.GroupVersionKind.Kind + " " + info.Namespace + "/" + info.Name
}

// run applies what is wanted, and deletes what is not any more.
func (u *upgrade) run() error {
	_, err := u.client.Update(u.current, u.target, kube.ClientUpdateOptionServerSideApply(true, true))
	return err
}
