package registration

import (
	"bytes"
	"context"
	_ "embed" // for the roles
	"errors"
	"fmt"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	applyrbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
	"github.com/penstock-project/penstock/pkg/server/managedobject"
)

// userRoleManifests are the ClusterRoles for people, the same as in artifacts/deploy.
//
//go:embed userroles.yaml
var userRoleManifests []byte

// WriteUserRoles writes the ClusterRoles for people as YAML.
func WriteUserRoles(w io.Writer, _ string) error {
	_, err := w.Write(userRoleManifests)
	return err
}

// userRoles are the ClusterRoles for people: to read, to plan, to approve.
func userRoles() ([]*applyrbacv1.ClusterRoleApplyConfiguration, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(userRoleManifests), len(userRoleManifests))
	var roles []*applyrbacv1.ClusterRoleApplyConfiguration
	for {
		role := &applyrbacv1.ClusterRoleApplyConfiguration{}
		err := decoder.Decode(role)
		switch {
		case errors.Is(err, io.EOF):
			return roles, nil
		case err != nil:
			return nil, fmt.Errorf("reading the roles of users: %w", err)
		}
		roles = append(roles, role)
	}
}

// applyUserRoles installs the roles of users if this process has the right. An administrator who
// registers Penstock has this right. Its ServiceAccount lacks it: the roles are aggregated into
// view and edit, so a change of them would change the rights of all users. A rule that another
// client has changed in a role stays.
func (r *Registration) applyUserRoles(ctx context.Context) error {
	roles, err := userRoles()
	if err != nil {
		return err
	}
	log := klog.FromContext(ctx).WithName("registration")
	for _, role := range roles {
		for _, verb := range []string{"patch", "escalate"} {
			asked := authz.On(rbacv1.SchemeGroupVersion.WithResource("clusterroles"), verb, "", *role.Name)
			allowed, err := accessreview.Allowed(ctx, r.options.Core, asked)
			if err != nil {
				return fmt.Errorf("asking for the right to write the roles of users: %w", err)
			}
			if !allowed {
				log.V(1).Info("The roles of users are not written: this process lacks the right to", "missing", asked.String(), "manifests", "artifacts/deploy/base/rbac-users.yaml")
				return nil
			}
		}
		_, err := r.options.Core.RbacV1().ClusterRoles().Apply(ctx, role, metav1.ApplyOptions{FieldManager: managedobject.FieldManager})
		switch {
		case apierrors.IsConflict(err):
			log.Info("A role of users was changed by another client and stays as it is", "clusterrole", *role.Name, "reason", err.Error())
		case err != nil:
			return fmt.Errorf("applying clusterrole %s: %w", *role.Name, err)
		}
	}
	return nil
}

// userRoles removes the roles of users that registration created. A role that another client wrote
// to stays.
func (u *unregistration) userRoles(ctx context.Context) error {
	roles, err := userRoles()
	if err != nil {
		return err
	}
	for _, role := range roles {
		found, err := u.core.RbacV1().ClusterRoles().Get(ctx, *role.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && !onlyOurs(found.ManagedFields) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading clusterrole %s: %w", *role.Name, err)
		}
		err = u.core.RbacV1().ClusterRoles().Delete(ctx, *role.Name, metav1.DeleteOptions{})
		if err := u.gone("clusterrole "+*role.Name, err); err != nil {
			return err
		}
	}
	return nil
}

// onlyOurs is true for objects that only this process has written.
func onlyOurs(fields []metav1.ManagedFieldsEntry) bool {
	for _, entry := range fields {
		if entry.Manager != managedobject.FieldManager {
			return false
		}
	}
	return len(fields) > 0
}
