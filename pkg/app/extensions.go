package app

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/controller/extension"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/controller/metrics"
	"github.com/penstock-project/penstock/pkg/crdsafety"
	ext "github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
	"github.com/penstock-project/penstock/pkg/server/leadership"
	"github.com/penstock-project/penstock/pkg/source/bundle"
)

func (s *Settings) startExtensions(ctx context.Context, term leadership.Term) error {
	options, err := s.extensionOptions(ctx, term)
	if err != nil {
		return err
	}
	controller := extension.New(options)
	if err := s.addFleet(ctx, term, options, controller); err != nil {
		return err
	}
	return term.Manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		core := options.Leases
		if !accessreview.MayWatch(ctx, core, ext.Resource, "", "", "ClusterExtensions") ||
			!accessreview.MayWatch(ctx, core, objectwatch.Definitions, "", ext.Resource.GroupResource().String(), "ClusterExtensions") ||
			!accessreview.MayWatch(ctx, core, coordinationv1.SchemeGroupVersion.WithResource("leases"), "", ext.OperatorControllerLease, "ClusterExtensions: nobody can tell whether OLM's operator-controller writes them") {
			<-ctx.Done()
			return nil
		}
		return controller.Run(ctx)
	}))
}

func (s *Settings) extensionOptions(ctx context.Context, term leadership.Term) (extension.Options, error) {
	clients, err := extensionClients(component(term.Host, "extensions"))
	if err != nil {
		return extension.Options{}, fmt.Errorf("connecting to the host for ClusterExtensions: %w", err)
	}
	informer, err := term.Manager.GetCache().GetInformer(ctx, &olmv1alpha1.ClusterExtensionRevision{})
	if err != nil {
		return extension.Options{}, fmt.Errorf("watching revisions for ClusterExtensions: %w", err)
	}
	loopback := component(term.Manager.GetConfig(), "extensions")
	own, err := versioned.NewForConfig(loopback)
	if err != nil {
		return extension.Options{}, fmt.Errorf("connecting to our own API for ClusterExtensions: %w", err)
	}
	safety, err := crdsafety.New(nil)
	if err != nil {
		return extension.Options{}, fmt.Errorf("making the checks of CRD upgrade safety: %w", err)
	}
	definitions, err := newDefinitionReader(term)
	if err != nil {
		return extension.Options{}, err
	}
	host := term.Target
	if term.TargetName != "" {
		host = term.Host
	}
	values, err := newValueReader(component(host, "extensions"))
	if err != nil {
		return extension.Options{}, err
	}
	events, err := recorder(ctx, term, &targetclient.Counter{})
	if err != nil {
		return extension.Options{}, err
	}
	built := extension.Options{
		Looked: s.looked, Versions: clusterversion.New(clock.RealClock{}, definitions.version),
		Events: events, Metrics: func(all func() []*unstructured.Unstructured) (extension.Metrics, error) {
			return metrics.AddExtensions(term.Metrics, all)
		},
		Clients: clients,
		Store:   maker.Store{Informer: informer, Reader: term.Manager.GetClient(), Live: term.Manager.GetAPIReader(), Heads: term.Heads, Own: own.OlmV1alpha1().ClusterExtensionRevisions(), As: impersonation{loopback}.as},
		Key:     author.NewKey(term.Digester.SecretKey), Rights: hostRights{clients.Leases}, RecentRights: newRecentRights(hostRights{clients.Leases}, clock.RealClock{}),
		OperatorControllerNamespaces: s.OperatorControllerNamespaces, Target: term.TargetName, Inventory: s.Catalogs.Inventory, Images: catalogImages{s.Catalogs}, Pool: s.pool,
		Definitions: definitions, Capabilities: definitions, Safety: safety, Digester: term.Digester, Windows: s.windows, Inventories: term.Inventories, Conditions: definitions, Certificates: bundle.CertManager, Clock: clock.RealClock{},
		Manifests: manifestsOf(own), Values: values,
	}
	frozen, err := freezeOf(ctx, term, "freeze")
	if err != nil {
		return extension.Options{}, err
	}
	built.Freezes = frozen
	if err := s.addReleases(term, &built); err != nil {
		return extension.Options{}, err
	}
	return built, nil
}

func extensionClients(config *rest.Config) (clients extension.Clients, err error) {
	if clients.Extensions, err = dynamic.NewForConfig(config); err != nil {
		return clients, err
	}
	if clients.Definitions, err = metadata.NewForConfig(config); err != nil {
		return clients, err
	}
	clients.Leases, err = kubernetes.NewForConfig(config)
	return clients, err
}

// impersonation creates clients of Penstock's own API that impersonate users. This process may
// impersonate only there. No identity of Penstock may impersonate in the host.
type impersonation struct{ loopback *rest.Config }

func (i impersonation) as(who user.Info) (maker.Revisions, error) {
	if who.GetName() == "" {
		return nil, errors.New("connecting to our own API in the name of a user without a name: the requests would be made in the name of this process")
	}
	config := rest.CopyConfig(i.loopback)
	config.Impersonate = rest.ImpersonationConfig{UserName: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: who.GetExtra()}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to our own API in the name of %s: %w", who.GetName(), err)
	}
	return client.OlmV1alpha1().ClusterExtensionRevisions(), nil
}

// catalogImages pulls images with the puller of the catalogs.
type catalogImages struct{ catalogs *Catalogs }

// errNoImages reports that the folder of catalogs is not open yet, or that no folder is configured.
var errNoImages = errors.New("images cannot be pulled yet: the folder of catalogs (--catalog-dir) is not open")

// Pull implements extension.Images.
func (c catalogImages) Pull(ctx context.Context, user, catalog, reference string) (*extension.Pulled, error) {
	images, credentials := c.catalogs.puller()
	if images == nil {
		return nil, errNoImages
	}
	file, done, credentialsErr := credentials.File(ctx)
	defer done()
	pulled, err := images.Fetch(ctx, image.Request{Reference: reference, Auth: file, User: user, Catalog: catalog})
	if err != nil && credentialsErr != nil {
		err = fmt.Errorf("%w (without some of the credentials: %s)", err, credentialsErr.Error())
	}
	if err != nil {
		return nil, err
	}
	return &extension.Pulled{Reference: pulled.Reference, Kind: pulled.Kind, FS: pulled.FS, Signed: pulled.Signed, Close: func() {
		_ = pulled.Close() // the file was only read
		c.tidy(ctx)
	}}, nil
}

func (c catalogImages) tidy(ctx context.Context) {
	if controller := c.catalogs.present(); controller != nil {
		if err := controller.Tidy(); err != nil {
			klog.FromContext(ctx).Error(err, "Disk space is not given back")
		}
	}
}
