package bundle

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

const installFirst = "Penstock does not install dependencies: install what the bundle requires first, and accept its requirements: "

// checkSupport returns errors for valid bundles that Penstock cannot install, and adds warnings for
// possible problems.
func (r Renderer) checkSupport(c *contents, out *source.Rendered) error {
	found := findings{contents: c}
	for i, one := range c.csv.Spec.APIServices.Owned {
		found.add([]any{"spec", "apiservicedefinitions", "owned", i},
			"APIService %s.%s is served by the operator itself, which cannot be installed from a bundle: its CA would have to be kept in the APIService",
			one.Version, one.Group)
	}
	if len(c.csv.Spec.Webhooks) > 0 && r.Options.Certificates == "" {
		found.add([]any{"spec", "webhookdefinitions"},
			"webhooks need certificates, and nothing says who makes them: want one of %s", strings.Join(CertificateProviders(), ", "))
	}
	out.Requires = c.requirements
	for _, one := range c.requirements {
		text := fmt.Sprintf("%s: requires %s%s", one.Field, one, r.providersOf(one))
		if r.Options.AcceptRequirements {
			out.Warnings = append(out.Warnings, source.Warning{File: one.File, Line: one.Line, Message: text})
			continue
		}
		found.errs.List = append(found.errs.List, &directory.Error{File: one.File, Line: one.Line,
			Message: text + "; " + installFirst + "--accept-requirements"})
	}
	if c.csv.Spec.MinKubeVersion != "" {
		if warning, needed := c.kubernetesWarning(r.Options.KubeVersion); needed {
			out.Warnings = append(out.Warnings, warning)
		}
	}
	if len(found.errs.List) > 0 {
		return &found.errs
	}
	return nil
}

func (r Renderer) providersOf(one source.Requirement) string {
	if r.Options.Providers == nil {
		return ""
	}
	names := r.Options.Providers(one)
	if len(names) == 0 {
		return ", which no package of the catalogs has"
	}
	return ", which is in package " + strings.Join(names, ", ")
}
