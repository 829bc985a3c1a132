package registration

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
)

// ServerRole is the ClusterRole of this process in artifacts/deploy and in the chart. If it exists,
// it owns the APIServices and the webhook configurations. So the garbage collector of the host
// deletes them with it. Otherwise kubectl delete -k and helm uninstall would leave them. Then the
// deletion of every namespace would wait for a server that does not exist any more.
//
// The Namespace cannot be the owner: its own deletion waits for the discovery of every APIService.
const ServerRole = "penstock-server"

// owner returns references to ServerRole, or none if the host does not have it. If ServerRole
// existed before, its absence is an error: an object without an owner would outlive Penstock.
func (r *Registration) owner(ctx context.Context) ([]*metaapply.OwnerReferenceApplyConfiguration, error) {
	role, err := r.options.Core.RbacV1().ClusterRoles().Get(ctx, ServerRole, metav1.GetOptions{})
	switch {
	case err == nil:
		r.owned.Store(true)
		return []*metaapply.OwnerReferenceApplyConfiguration{metaapply.OwnerReference().
			WithAPIVersion(rbacv1.SchemeGroupVersion.String()).WithKind("ClusterRole").WithName(role.Name).WithUID(role.UID)}, nil
	case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return nil, fmt.Errorf("reading clusterrole %s: %w", ServerRole, err)
	case r.owned.Load():
		return nil, fmt.Errorf("clusterrole %s, the owner of the registration, is gone: Penstock is being deleted from the cluster: %w", ServerRole, err)
	default:
		return nil, nil
	}
}
