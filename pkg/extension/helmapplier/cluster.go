package helmapplier

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	rspb "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/source/helm"
)

// cluster is the cluster to which Helm applies. It caches the served kinds, and reads them again
// when a kind is not found.
type cluster struct {
	config    *rest.Config
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
	// namespaces reads the labels that protect objects of other extensions.
	namespaces corev1client.NamespaceInterface
}

// managerPrefix is the prefix of the chains' field managers.
const managerPrefix = "penstock/"

func newCluster(config *rest.Config) (*cluster, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting Helm to the cluster: %w", err)
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting Helm to the cluster: %w", err)
	}
	cached := memory.NewMemCacheClient(client)
	return &cluster{config: config, discovery: cached, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached), namespaces: core.Namespaces()}, nil
}

// getter connects Helm's client to the cluster for one action. It cancels the requests when the
// context ends, because Helm does not pass a context on.
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

// ToRawKubeConfigLoader provides Helm's default namespace, which Penstock does not use.
func (g getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// bounded fails requests after the context has ended, and cancels running ones.
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

// upgrade has the changes of one action.
type upgrade struct {
	client          *kube.Client
	current, target kube.ResourceList
	namespaces      corev1client.NamespaceInterface
}

func (c *cluster) prepare(ctx context.Context, wanted Wanted, before, next *rspb.Release) (*upgrade, error) {
	client := kube.New(c.getter(ctx))
	client.Namespace = wanted.Namespace
	client.SetLogger(slog.DiscardHandler)
	u := &upgrade{client: client, namespaces: c.namespaces}
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
	return u, u.take(ctx, wanted)
}

// served parses the objects of a manifest, without those whose kind the cluster does not serve:
// such objects no longer exist.
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

// marked sets the marks by which Helm recognizes the objects of a release, and an owner.
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

// take finds objects that already exist and were not in the previous revision. They must belong to
// the release, or wanted.Take must allow it. Then Helm updates the objects instead of creating
// them.
func (u *upgrade) take(ctx context.Context, wanted Wanted) error {
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
		if chain := rolledOutBy(object); chain != "" && chain != wanted.Name {
			// Helm's marks give no right to a protected object: users who may patch an object can
			// write the marks.
			protected, err := u.isProtected(ctx, info)
			if err != nil {
				return fmt.Errorf("finding out whether the namespace of %s protects it: %w", title(info), err)
			}
			if protected {
				return fmt.Errorf("%s exists already and belongs to the extension %q, and its namespace protects objects of extensions (label %s)", title(info), chain, olmv1alpha1.ProtectLabel)
			}
		}
		ours := annotations[helm.NameAnnotation] == wanted.Name && annotations[helm.NamespaceAnnotation] == wanted.Namespace
		if !ours && !wanted.Take {
			return fmt.Errorf("%s exists already and is not of this release; collision protection leaves it alone", title(info))
		}
		u.current.Append(info)
		return nil
	})
}

// rolledOutBy returns the chain whose revisions applied an object; empty for none.
func rolledOutBy(object metav1.Object) string {
	chain := object.GetLabels()[olmv1alpha1.ChainLabel]
	applied := slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == managerPrefix+chain && entry.Operation == metav1.ManagedFieldsOperationApply
	})
	if !applied {
		return ""
	}
	return chain
}

// isProtected reports whether the namespace protects an object of an extension from other owners.
// The protecting webhook does not check Helm's writes, because they use the engine's identity.
func (u *upgrade) isProtected(ctx context.Context, info *resource.Info) (bool, error) {
	name := info.Namespace
	if info.Mapping.GroupVersionKind.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		name = info.Name
	}
	if name == "" {
		return false, nil
	}
	namespace, err := u.namespaces.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && namespace.Labels[olmv1alpha1.ProtectLabel] == "true", err
}

func title(info *resource.Info) string {
	if info.Namespace == "" {
		return info.Mapping.GroupVersionKind.Kind + " " + info.Name
	}
	return info.Mapping.GroupVersionKind.Kind + " " + info.Namespace + "/" + info.Name
}

func (u *upgrade) run() error {
	_, err := u.client.Update(u.current, u.target, kube.ClientUpdateOptionServerSideApply(true, true))
	return err
}
