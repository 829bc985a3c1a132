// Package profileaccess is the admission plugin that guards definitions of profiles. The author of
// a definition must have, in the whole cluster, every right that its ServiceAccount gets. Only this
// process writes the status of a definition.
package profileaccess

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/penstock-project/penstock/pkg/admission/plugin"
	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
)

// PluginName is the name for --disable-admission-plugins.
const PluginName = "ProfileAccess"

const resource = "configurationprofiledefinitions"

// Plugin is the admission plugin.
type Plugin struct{ *plugin.Authorized }

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{plugin.NewAuthorized(PluginName, admission.Create, admission.Update)}
}

// Validate admits writes of definitions. The author of any change of spec must have all rights that
// the definition declares, including rights that it already declared.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Group != hco.GroupName || a.GetResource().Resource != resource || request.IsInternal(ctx, a.GetUserInfo()) {
		return nil
	}
	switch a.GetSubresource() {
	case "":
	case "status":
		return admission.NewForbidden(a, errors.New("status of a definition is what the server reports about it: nobody but Penstock writes it"))
	default:
		return nil
	}
	definition, ok := a.GetObject().(*hco.ConfigurationProfileDefinition)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("judging a definition: it is a %T", a.GetObject()))
	}
	if old, _ := a.GetOldObject().(*hco.ConfigurationProfileDefinition); old != nil && apiequality.Semantic.DeepEqual(definition.Spec, old.Spec) {
		return nil
	}
	return p.need(ctx, a, definition)
}

// need returns an error unless the requester has the rights that the definition declares.
func (p *Plugin) need(ctx context.Context, a admission.Attributes, definition *hco.ConfigurationProfileDefinition) error {
	var lacks []string
	for _, requirement := range definition.Spec.Requirements {
		for _, asked := range cel.Rights(requirement.Definition, v1alpha1.DefinitionAccess(requirement.Access)) {
			allowed, err := p.Has(ctx, a, asked)
			if err != nil {
				return err
			}
			if !allowed {
				lacks = append(lacks, asked.String())
			}
		}
	}
	if len(lacks) > 0 {
		return admission.NewForbidden(a, fmt.Errorf(
			"the ServiceAccount of the definition gets the rights that the definition declares, so you need them in the whole cluster to write it; you cannot %s", strings.Join(lacks, ", ")))
	}
	return nil
}
