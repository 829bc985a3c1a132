package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/ptr"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// cluster has clients to verify the claims of the demo. They connect to kube-apiserver as
// administrator, without Penstock.
type cluster struct {
	core     kubernetes.Interface
	metadata metadata.Interface
	dynamic  dynamic.Interface
	penstock versioned.Interface
	mapper   meta.ResettableRESTMapper
	// alive returns an error if Penstock has exited by itself; then waiting is useless.
	alive func() error
}

func newCluster(config *rest.Config, alive func() error) (*cluster, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of metadata: %w", err)
	}
	others, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of other kinds: %w", err)
	}
	penstock, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of revisions: %w", err)
	}
	return &cluster{
		core: core, metadata: objects, dynamic: others, penstock: penstock, alive: alive,
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(core.Discovery())),
	}, nil
}

// live is the state of an object in the cluster; nil for an absent object.
type live struct {
	UID        types.UID
	Generation int64
	// Applied is the digest of the manifest that Penstock last applied.
	Applied manifest.Digest
	Chain   string
}

func (c *cluster) read(ctx context.Context, wanted []manifest.Ref) (map[manifest.ID]*live, error) {
	found := map[manifest.ID]*live{}
	for _, ref := range wanted {
		object, err := c.readOne(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", ref.ID, err)
		}
		found[ref.ID] = object
	}
	return found, nil
}

func (c *cluster) readOne(ctx context.Context, ref manifest.Ref) (*live, error) {
	client, err := c.resource(ref)
	if meta.IsNoMatchError(err) {
		return nil, nil // its CustomResourceDefinition does not exist
	}
	if err != nil {
		return nil, err
	}
	object, err := client.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &live{
		UID: object.UID, Generation: object.Generation,
		Applied: manifest.Digest(object.Annotations[olmv1alpha1.AppliedAnnotation]),
		Chain:   object.Labels[olmv1alpha1.ChainLabel],
	}, nil
}

// resource returns the client for objects of this kind.
func (c *cluster) resource(ref manifest.Ref) (metadata.ResourceInterface, error) {
	mapping, err := c.mapper.RESTMapping(ref.GroupKind(), ref.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.metadata.Resource(mapping.Resource).Namespace(ref.Namespace), nil
	}
	return c.metadata.Resource(mapping.Resource), nil
}

// strangers returns the objects that differ from the revision, with the difference.
func strangers(chain string, wanted []manifest.Ref, found map[manifest.ID]*live) []string {
	var wrong []string
	for _, ref := range wanted {
		switch object := found[ref.ID]; {
		case object == nil:
			wrong = append(wrong, ref.ID.String()+" does not exist")
		case object.Chain != chain:
			wrong = append(wrong, fmt.Sprintf("%s belongs to extension %q", ref.ID, object.Chain))
		case object.Applied != ref.Digest:
			wrong = append(wrong, fmt.Sprintf("%s has the content %s, not %s", ref.ID, object.Applied, ref.Digest))
		}
	}
	return wrong
}

func (c *cluster) revision(ctx context.Context, name string) (*olmv1alpha1.ClusterExtensionRevision, error) {
	return c.penstock.OlmV1alpha1().ClusterExtensionRevisions().Get(ctx, name, metav1.GetOptions{})
}

// revisions counts the revisions of all extensions.
func (c *cluster) revisions(ctx context.Context) (int, error) {
	list, err := c.penstock.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("listing revisions: %w", err)
	}
	return len(list.Items), nil
}

// followRevision calls see for each state of a revision until see returns true.
func (c *cluster) followRevision(ctx context.Context, name string, see func(*olmv1alpha1.ClusterExtensionRevision) bool) error {
	return follow(ctx, c.penstock.OlmV1alpha1().ClusterExtensionRevisions(), named(name), c.alive,
		func(list *olmv1alpha1.ClusterExtensionRevisionList) []*olmv1alpha1.ClusterExtensionRevision {
			return pointers(list.Items)
		}, see)
}

// followPlan calls see for each state of a plan until see returns true.
func (c *cluster) followPlan(ctx context.Context, name string, see func(*hcov1alpha1.ConfigurationPlan) bool) error {
	return follow(ctx, c.penstock.HcoV1alpha1().ConfigurationPlans(), named(name), c.alive,
		func(list *hcov1alpha1.ConfigurationPlanList) []*hcov1alpha1.ConfigurationPlan {
			return pointers(list.Items)
		}, see)
}

func (c *cluster) deployment(ctx context.Context, id manifest.ID) (*appsv1.Deployment, error) {
	return c.core.AppsV1().Deployments(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
}

// followDeployment calls see for each state of a Deployment until see returns true. It works
// without Penstock.
func (c *cluster) followDeployment(ctx context.Context, id manifest.ID, see func(*appsv1.Deployment) bool) error {
	return follow(ctx, c.core.AppsV1().Deployments(id.Namespace), named(id.Name), func() error { return nil },
		func(list *appsv1.DeploymentList) []*appsv1.Deployment { return pointers(list.Items) }, see)
}

// followEvent waits for an event about a revision.
func (c *cluster) followEvent(ctx context.Context, revision, reason string, see func(*corev1.Event) bool) error {
	selector := fields.Set{"involvedObject.name": revision, "reason": reason}.AsSelector()
	return follow(ctx, c.core.CoreV1().Events(metav1.NamespaceDefault), selector, c.alive,
		func(list *corev1.EventList) []*corev1.Event { return pointers(list.Items) }, see)
}

// unavailable returns the Deployments without available replicas.
func (c *cluster) unavailable(ctx context.Context, wanted []manifest.Ref) ([]string, error) {
	var down []string
	for _, ref := range deployments(wanted) {
		deployment, err := c.deployment(ctx, ref.ID)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", ref.ID, err)
		}
		if ptr.Deref(deployment.Spec.Replicas, 1) > 0 && deployment.Status.AvailableReplicas == 0 {
			down = append(down, ref.ID.String())
		}
	}
	return down, nil
}

// complete reports whether all replicas of a Deployment have its current template and are
// available.
func complete(d *appsv1.Deployment) bool {
	want := ptr.Deref(d.Spec.Replicas, 1)
	return d.Status.ObservedGeneration == d.Generation &&
		d.Status.UpdatedReplicas == want && d.Status.Replicas == want && d.Status.AvailableReplicas == want
}

func image(d *appsv1.Deployment) string {
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		return containers[0].Image
	}
	return ""
}

// served returns nil if kube-apiserver reaches Penstock and discovery lists revisions. kubectl
// needs both.
func (c *cluster) served(ctx context.Context) error {
	if _, err := c.penstock.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return fmt.Errorf("listing revisions: %w", err)
	}
	_, resources, err := c.core.Discovery().ServerGroupsAndResources()
	offered := slices.ContainsFunc(resources, func(list *metav1.APIResourceList) bool {
		return list.GroupVersion == olmv1alpha1.SchemeGroupVersion.String() && len(list.APIResources) > 0
	})
	if !offered {
		return errors.Join(fmt.Errorf("kube-apiserver does not offer %s", olmv1alpha1.SchemeGroupVersion), err)
	}
	return nil
}
