// Package admission has the admission plugins for Penstock's kinds, and their order. Plugins decide
// which users can write an object. The strategies of the registry check whether the object is
// well-formed. docs/adr/0005 explains why the plugins are not webhooks.
package admission

import (
	"io"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/options"

	"github.com/penstock-project/penstock/pkg/admission/plugin/approval"
	"github.com/penstock-project/penstock/pkg/admission/plugin/installlevels"
	"github.com/penstock-project/penstock/pkg/admission/plugin/owners"
	"github.com/penstock-project/penstock/pkg/admission/plugin/privilege"
	"github.com/penstock-project/penstock/pkg/admission/plugin/profileaccess"
)

// Order returns the names of all admission plugins in order. The API server runs every mutating
// plugin before every validating plugin, and the list has the same order.
func Order() []string {
	return []string{
		// It costs nothing, and saves the other checks for a request that it refuses.
		lifecycle.PluginName,

		// Mutation by the cluster's policies, then by its webhooks, in the order of kube-apiserver.
		// Both see identities and digests, so they can change labels, but not content.
		mutatingpolicy.PluginName,
		mutatingwebhook.PluginName,

		// First the plugins that decide in this process, without a request.
		validatingpolicy.PluginName,
		// Also in this process. It follows the policies, so that a user sees the policy's reason
		// first.
		installlevels.PluginName,
		// At most one request for a right.
		approval.PluginName,
		// One request for a right, if an owner is added.
		owners.PluginName,
		// One request for each verb that a definition declares.
		profileaccess.PluginName,
		// It precedes the webhooks, so that webhooks get no manifests of users without the rights.
		// It follows the policies, because it sends hundreds of requests to the cluster.
		privilege.PluginName,
		// Last, because it sends up to 3 MiB to each webhook and waits.
		validatingwebhook.PluginName,
	}
}

// Register registers all plugins with options, in Order.
func Register(options *options.AdmissionOptions) {
	options.Plugins.Register(privilege.PluginName, func(io.Reader) (admission.Interface, error) { return privilege.New(), nil })
	options.Plugins.Register(installlevels.PluginName, func(io.Reader) (admission.Interface, error) { return installlevels.New(), nil })
	options.Plugins.Register(approval.PluginName, func(io.Reader) (admission.Interface, error) { return approval.New(), nil })
	options.Plugins.Register(profileaccess.PluginName, func(io.Reader) (admission.Interface, error) { return profileaccess.New(), nil })
	options.Plugins.Register(owners.PluginName, func(io.Reader) (admission.Interface, error) { return owners.New(), nil })
	options.RecommendedPluginOrder = Order()
}

// Initializer injects dependencies into Penstock's plugins.
type Initializer struct {
	Privilege     privilege.Deps
	InstallLevels installlevels.Deps
	// Authorizer is the authorizer of the plugins that check one right of the requester.
	Authorizer authorizer.UnconditionalAuthorizer
}

var _ admission.PluginInitializer = Initializer{}

// Initialize implements admission.PluginInitializer.
func (i Initializer) Initialize(plugin admission.Interface) {
	switch plugin := plugin.(type) {
	case *privilege.Plugin:
		plugin.SetDeps(i.Privilege)
	case *installlevels.Plugin:
		plugin.SetDeps(i.InstallLevels)
	case *approval.Plugin:
		plugin.SetAuthorizer(i.Authorizer)
	case *owners.Plugin:
		plugin.SetAuthorizer(i.Authorizer)
	case *profileaccess.Plugin:
		plugin.SetAuthorizer(i.Authorizer)
	}
}
