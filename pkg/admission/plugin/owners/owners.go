// Package owners is the admission plugin that prevents deletion through the right to patch. Garbage
// collection deletes an object whose owner does not exist. So a user who adds an owner to an object
// of our API needs the right to delete that object. OwnerReferencesPermissionEnforcement of
// kube-apiserver checks the same, where it is switched on.
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

// PluginName is under which the plugin is switched off.
const PluginName = "Owners"

// Plugin is the admission plugin.
type Plugin struct{ *plugin.Authorized }

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin.
func New() *Plugin { return &Plugin{plugin.NewAuthorized(PluginName, admission.Update)} }

// Validate admits updates that add no owner, or whose author may delete the object. Whether the
// owner exists is not asked: it may be deleted at once, and tools that restore write owners first.
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
	return admission.NewForbidden(a, fmt.Errorf("metadata.ownerReferences: an object is deleted when an owner of it is gone, so adding an owner needs the right to delete the object; you cannot %s", needed))
}
