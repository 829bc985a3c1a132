package screens

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/install"
	"github.com/penstock-project/penstock/pkg/extension"
)

// VersionRequest is a request to change the version range of a ClusterExtension, as the screen
// showed it.
type VersionRequest struct {
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
	// Version is the range; empty means any version.
	Version string `json:"version"`
	// Allowed is the version that the range selected when the user looked; empty for none. A dry
	// run may omit it.
	Allowed string `json:"allowed,omitempty"`
	// DryRun only returns the effect of the change.
	DryRun bool `json:"dryRun,omitempty"`
}

// VersionChange is the result of a range.
type VersionChange struct {
	// Was and Version are the ranges before and after; an empty range means any version.
	Was     string `json:"was,omitempty"`
	Version string `json:"version,omitempty"`
	// Would has the resolver's choice for the range, and the versions that it does not choose. It
	// is nil if the user cannot see that; Hidden is then the reason.
	Would  *v1alpha1.ExtensionUpgrades `json:"would,omitempty"`
	Hidden *Refusal                    `json:"hidden,omitempty"`
	// Warnings are the cluster's warnings.
	Warnings []string `json:"warnings,omitempty"`
}

// setVersion changes the version range in the user's name. A dry run only returns the effect.
func (a *API) setVersion(ctx context.Context, r *http.Request) (any, error) {
	asked, err := read[VersionRequest](r)
	if err != nil {
		return nil, err
	}
	if asked.UID == "" || asked.Generation == 0 {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: "uid and generation are required: they say what was on the screen"}
	}
	name := r.PathValue("name")
	// 1. The object must be unchanged since it was on the screen.
	object, err := a.host.Resource(extension.Resource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	now, err := extension.From(object)
	if err != nil {
		return nil, err
	}
	if string(now.UID) != asked.UID || now.Generation != asked.Generation {
		return nil, &Refusal{Status: http.StatusConflict, Reason: ReasonChanged, Message: fmt.Sprintf("ClusterExtension %s was changed since it was shown: review it again", name)}
	}
	source := now.Spec.Source.Catalog
	if source == nil {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: fmt.Sprintf("ClusterExtension %s is not from a catalog: it has no range of versions", name)}
	}
	// 2. The resolver's choice must be the version that the user saw.
	out := VersionChange{Was: source.Version, Version: asked.Version}
	if out.Would, err = a.wouldLead(ctx, source.PackageName, name, asked.Version); err != nil {
		refusal := refusalOf(err)
		out.Hidden = &refusal
	}
	if allowed := out.allowed(); !asked.DryRun && allowed != asked.Allowed {
		return nil, &Refusal{Status: http.StatusConflict, Reason: ReasonChanged, Message: fmt.Sprintf("it now leads to %s, and led to %s: review it again", versionOrNone(allowed), versionOrNone(asked.Allowed))}
	}
	// 3. The cluster checks the change, and stores it unless this is a dry run. The spec must be
	// unchanged.
	patch, err := install.VersionPatch(now.UID, now.Generation, asked.Version)
	if err != nil {
		return nil, err
	}
	heard := &warnings{}
	options := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun(asked.DryRun)}
	if _, err := a.host.Resource(extension.Resource).Patch(heard.in(ctx), name, types.JSONPatchType, patch, options); err != nil {
		return nil, err
	}
	out.Warnings = heard.all()
	return out, nil
}

func (c VersionChange) allowed() string {
	if c.Would == nil {
		return ""
	}
	return c.Would.Allowed
}

func versionOrNone(version string) string {
	if version == "" {
		return "no version"
	}
	return version
}

// wouldLead requests the version that a range would select for an extension of a package.
func (a *API) wouldLead(ctx context.Context, of, name, version string) (*v1alpha1.ExtensionUpgrades, error) {
	read := &v1alpha1.CatalogPackageUpgrades{}
	err := a.penstock.CatalogV1alpha1().RESTClient().Get().Resource("catalogpackages").Name(of).SubResource("upgrades").Param("version", version).Do(ctx).Into(read)
	if err != nil {
		return nil, err
	}
	for i := range read.Extensions {
		if read.Extensions[i].Extension == name {
			return &read.Extensions[i], nil
		}
	}
	return nil, &Refusal{Status: http.StatusForbidden, Reason: "Hidden", Message: "to see it, you need the right to get the extension and its installed revision"}
}
