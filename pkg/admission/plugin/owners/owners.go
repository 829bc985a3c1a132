// Package owners is the admission plugin that prevents deletion through the right to patch. Garbage
// collection deletes an object whose owner does not exist. So a user who adds an owner to an object
// of our API needs the right to delete that object. OwnerReferencesPermissionEnforcement of
// kube-apiserver does the same, where it is enabled.
package owners

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"

	"github.com/penstock-project/penstock/pkg/admission/plugin"
	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/authz"
)

// PluginName is the name for --disable-admission-plugins.
const PluginName = "Owners"

// Plugin is the admission plugin.
type Plugin struct{ *plugin.Authorized }

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin.
func New() *Plugin { return &Plugin{plugin.NewAuthorized(PluginName, admission.Update)} }

// Validate admits an update that adds no owner, or whose author can delete the object. It does not
// check whether the owner exists: the owner could be deleted right after, and restore tools write
// owners first.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if group := a.GetResource().Group; !slices.Contains([]string{olm.GroupName, hco.GroupName}, group) || request.IsInternal(ctx, a.GetUserInfo()) {
		return nil
	}
	updated, err := meta.Accessor(a.GetObject())
	if err != nil {
		return nil //nolint:nilerr // an object without metadata, as some subresources have, has no owners
	}
	old, err := meta.Accessor(a.GetOldObject())
	if err != nil || len(request.NewOwners(updated.GetOwnerReferences(), old.GetOwnerReferences())) == 0 {
		return nil //nolint:nilerr // as above
	}
	needed := authz.Right{Verb: "delete", Group: a.GetResource().Group, Resource: a.GetResource().Resource, Namespace: a.GetNamespace(), Name: a.GetName()}
	allowed, err := p.Has(ctx, a, needed)
	if allowed || err != nil {
		return err
	}
	return admission.NewForbidden(a, fmt.Errorf("metadata.ownerReferences: an object is deleted when its owner is deleted, so adding an owner needs the right to delete the object; you cannot %s", needed))
}
