// Package installlevels is the admission plugin that refuses revisions with a wrong install level:
// a level that does not exist, or a level on an object that is not create-only. Without it, a
// typing error would only show when Penstock overwrites an object of a user.
// docs/reference/stages.md explains the annotations. The controller checks again before the first
// write.
package installlevels

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/manifest/release"
)

const (
	// PluginName is the name for --disable-admission-plugins.
	PluginName = "InstallLevels"
	// maxOffences bounds the errors that an answer lists. A revision that a person wrote has fewer.
	maxOffences = 200
	// maxWarnings bounds the warnings of an answer.
	maxWarnings = 10
)

// Deps are the dependencies of the plugin.
type Deps struct {
	// Metrics counts decisions; nil counts nothing.
	Metrics *Metrics
}

// Plugin is the admission plugin.
type Plugin struct {
	*admission.Handler
	deps Deps
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin.
func New() *Plugin {
	// Content is set at create and never changes.
	return &Plugin{Handler: admission.NewHandler(admission.Create)}
}

// SetDeps sets the dependencies of the plugin.
func (p *Plugin) SetDeps(deps Deps) { p.deps = deps }

// Validate refuses a revision with wrong levels and lists every error in one answer. It warns about
// probable mistakes.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	revision, ok := a.GetObject().(*olm.ClusterExtensionRevision)
	if !ok || a.GetSubresource() != "" || a.GetResource().GroupResource() != v1alpha1.Resource("clusterextensionrevisions") {
		return nil
	}
	objects, told := request.ManifestsFrom(ctx)
	places, err := placesOf(revision, objects)
	if !told || err != nil {
		p.decide(a, failed)
		return apierrors.NewInternalError(errors.Join(errors.New("the endpoint did not return the contents of the revision"), err))
	}
	if errs := offences(objects, places); len(errs) > 0 {
		p.decide(a, denied)
		return apierrors.NewInvalid(olm.Kind("ClusterExtensionRevision"), revision.Name, errs)
	}
	p.decide(a, allowed)
	warn(ctx, objects)
	return nil
}

// decide records a decision in the metrics and the audit log.
func (p *Plugin) decide(a admission.Attributes, d decision) {
	p.deps.Metrics.decided(d)
	// A second run for the same request has the same decision.
	_ = a.AddAnnotation("installlevels.policy.penstock.dev/decision", string(d))
}

// place is the field path of an object in a revision, and its CreateOnly and install level.
type place struct {
	path *field.Path
	mark release.Mark
}

// placesOf finds the objects of a revision. Both have the same order.
func placesOf(revision *olm.ClusterExtensionRevision, objects []manifest.Object) (map[manifest.ID]place, error) {
	places := make(map[manifest.ID]place, len(objects))
	next := 0
	for p, phase := range revision.Spec.Phases {
		for o, entry := range phase.Objects {
			if next >= len(objects) || objects[next].Name != entry.Name || string(objects[next].Digest) != entry.Digest {
				return nil, fmt.Errorf("spec.phases[%d].objects[%d] is not among its manifests", p, o)
			}
			places[objects[next].ID] = place{
				path: field.NewPath("spec", "phases").Index(p).Child("objects").Index(o),
				mark: release.Mark{CreateOnly: entry.CreateOnly, Level: int(entry.InstallLevel)},
			}
			next++
		}
	}
	return places, nil
}

// offences are sorted by object, so that the answer does not depend on the order in a revision.
func offences(objects []manifest.Object, places map[manifest.ID]place) field.ErrorList {
	var errs field.ErrorList
	found := release.Check(objects)
	for _, offence := range found[:min(len(found), maxOffences)] {
		path := places[offence.ID].path.Child("object", "metadata", "annotations")
		if offence.Annotation != "" {
			path = path.Key(offence.Annotation)
		}
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, offence.String()))
	}
	if more := len(found) - maxOffences; more > 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "phases"), field.OmitValueType{}, fmt.Sprintf("and %d more", more)))
	}
	if len(errs) > 0 {
		return errs
	}
	return unsaid(objects, places)
}

// unsaid returns errors for manifests that the request names by digest, if their annotations differ
// from the marks of their entries. Their revision was stored before Penstock read these
// annotations.
func unsaid(objects []manifest.Object, places map[manifest.ID]place) field.ErrorList {
	var errs field.ErrorList
	for _, object := range objects {
		at := places[object.ID]
		if mark, _ := release.MarkOf(object); mark != at.mark && len(errs) < maxOffences {
			errs = append(errs, field.Invalid(at.path.Child("digest"), string(object.Digest), fmt.Sprintf(
				"the revision that holds %s was stored before its annotations were read: give the manifest in object", object.ID)))
		}
	}
	return errs
}

// warn warns the requester about valid content that is probably a mistake.
func warn(ctx context.Context, objects []manifest.Object) {
	var warnings []string
	for _, inversion := range release.Inversions(objects) {
		warnings = append(warnings, fmt.Sprintf("%s: the first installation waits until another user or controller creates it", inversion))
	}
	for _, object := range objects {
		for _, text := range release.LookAlikes(object) {
			warnings = append(warnings, fmt.Sprintf("%s: %s", object.ID, text))
		}
	}
	for i, text := range warnings {
		if i == maxWarnings {
			warning.AddWarning(ctx, "", fmt.Sprintf("and %d more of this kind", len(warnings)-i))
			return
		}
		warning.AddWarning(ctx, "", text)
	}
}
