package clusterreads

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisionrollback"
	"github.com/penstock-project/penstock/pkg/server/host"
	"github.com/penstock-project/penstock/pkg/server/targetcluster"
)

const hostReadTimeout = 5 * time.Second

// hostReads reads the host in the name of this process, which needs the right to get
// clusterextensions and customresourcedefinitions. It reads the definitions in the target cluster
// if that is not the host.
type hostReads struct {
	client, target dynamic.Interface
	// targets holds the clients for revisions that name a cluster.
	targets *TargetClients
}

var (
	_ clusterextensionrevision.Owners = &hostReads{}
	_ revisionrollback.StoredVersions = &hostReads{}
)

func newHostReads(h *host.Host, target *targetcluster.Cluster, targets *TargetClients) (*hostReads, error) {
	client, err := dynamic.NewForConfig(h.ConfigFor("rollback"))
	if err != nil {
		return nil, fmt.Errorf("making a client for rollbacks: %w", err)
	}
	reads := &hostReads{client: client, target: client, targets: targets}
	if target == nil {
		return reads, nil
	}
	if reads.target, err = dynamic.NewForConfig(target.Config("rollback")); err != nil {
		return nil, fmt.Errorf("making a client for rollbacks: %w", err)
	}
	return reads, nil
}

// Generation returns the generation of a ClusterExtension. It returns an error for any other kind
// of owner.
func (r *hostReads) Generation(ctx context.Context, owner metav1.OwnerReference) (int64, error) {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || version.Group != hub.GroupName || owner.Kind != "ClusterExtension" {
		return 0, fmt.Errorf("reading the generation of %s %s: only the generation of a ClusterExtension is used here", owner.Kind, owner.Name)
	}
	found, err := get(ctx, r.client, version.WithResource("clusterextensions"), owner.Name)
	switch {
	case err != nil:
		return 0, fmt.Errorf("reading ClusterExtension %s: %w", owner.Name, err)
	case found.GetUID() != owner.UID:
		return 0, fmt.Errorf("reading ClusterExtension %s: it has uid %s, the revision's owner had %s", owner.Name, found.GetUID(), owner.UID)
	}
	return found.GetGeneration(), nil
}

// StoredVersions returns the versions in which custom resources of a kind may be stored. It returns
// none if the kind does not exist.
func (r *hostReads) StoredVersions(ctx context.Context, secret, name string) ([]string, error) {
	client := r.target
	if secret != "" {
		target, err := r.targets.to(ctx, secret)
		if err != nil {
			return nil, err
		}
		if client, err = dynamic.NewForConfig(target.config); err != nil {
			return nil, fmt.Errorf("making a client for rollbacks: %w", err)
		}
	}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	found, err := get(ctx, client, definitions, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	versions, _, err := unstructured.NestedStringSlice(found.Object, "status", "storedVersions")
	if err != nil {
		return nil, fmt.Errorf("reading status of CustomResourceDefinition %s: %w", name, err)
	}
	return versions, nil
}

func get(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, hostReadTimeout)
	defer cancel()
	return client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
}
