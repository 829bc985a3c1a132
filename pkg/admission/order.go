// Package admission has the admission plugins for our own kinds, and their order. They decide who
// may write an object. The strategies of the registry decide whether the object is well-formed.
// docs/adr/0005 says why these are not webhooks.
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

// Order returns the names of all admission plugins in order. The API server runs every mutating plugin
// before every validating one, and the list is sorted that way too.
func Order() []string {
	return []string{
		// Costs nothing, and what it refuses nobody else needs to look at.
		lifecycle.PluginName,

		// Mutation by the cluster's own policies, then by its webhooks, which may
		// have the last word as in kube-apiserver. Both see identities and
		// digests: they change labels, never content.
		mutatingpolicy.PluginName,
		mutatingwebhook.PluginName,

		// First what is decided in this process, without a request.
		validatingpolicy.PluginName,
		// Still in this process; behind the policies, so that what they refuse is
		// told for their reason.
		installlevels.PluginName,
		// One question at most.
		approval.PluginName,
		// One question, about an owner that is added.
		owners.PluginName,
		// As many questions as a definition declares verbs.
		profileaccess.PluginName,
		// Before the webhooks: the manifests of somebody who must not have them
		// applied are not sent to others. Behind the policies, because it asks the
		// cluster hundreds of questions.
		privilege.PluginName,
		// Last: it sends up to 3 MiB to each, and waits.
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
