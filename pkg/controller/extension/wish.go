package extension

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/extension/upgrades"
	"github.com/penstock-project/penstock/pkg/resolve"
	"github.com/penstock-project/penstock/pkg/source/bundle"
	"github.com/penstock-project/penstock/pkg/source/packed"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// madeOfVersion changes when the same image and configuration become other objects. Then
// every extension gets another look at its image, and those whose content differs a revision.
const madeOfVersion = 1

// wish is what the newest revision of an extension should be made of.
type wish struct {
	// ref is the reference of an image, as the catalog or the spec has it, and format what is
	// allowed in it; several when there are.
	ref     string
	formats []packed.Format
	bundle  *status.Bundle
	pkg     string
	// pinned is the reference with the digest, once the image was pulled.
	pinned string

	Name, Namespace string
	Target          string
	Collision       olmv1alpha1.CollisionProtection
	Config          json.RawMessage
	Certificates    bundle.CertificateProvider
	// Accept is whether the bundle may require what others provide.
	Accept bool
	// Yield are the fields that are left to other field managers.
	Yield []olmv1alpha1.YieldRule
}

// digest is the same as long as the content of the revision would be.
func (w *wish) digest() string {
	content, err := json.Marshal(struct {
		Version                 int
		Ref                     string
		Name, Namespace, Target string
		Collision               olmv1alpha1.CollisionProtection
		Config                  json.RawMessage
		Certificates            bundle.CertificateProvider
		// Revisions of before have no word of these.
		Accept bool                    `json:",omitempty"`
		Yield  []olmv1alpha1.YieldRule `json:",omitempty"`
	}{madeOfVersion, w.ref, w.Name, w.Namespace, w.Target, w.Collision, w.Config, w.Certificates, w.Accept, w.Yield})
	if err != nil {
		return "" // no JSON in the spec: rendering says so
	}
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// of is a wish about what was pulled.
func (w *wish) of(content *content) *wish {
	pulled := *w
	pulled.pinned = content.reference
	if pulled.bundle == nil {
		pulled.bundle = &status.Bundle{Name: cmp.Or(content.Package, content.reference), Version: content.Version}
		pulled.pkg = content.Package
	}
	return &pulled
}

// choose finds out which image is wanted. It returns both when there is no catalog, and the
// extension was written since: what is installed can have other settings.
func (v *visit) choose() (*wish, *halt) {
	e := v.extension
	w := &wish{
		Name: e.Name, Namespace: e.Spec.Namespace, Target: e.Annotations[extension.TargetAnnotation],
		Collision:    olmv1alpha1.CollisionProtection(cmp.Or(e.Annotations[extension.CollisionProtectionAnnotation], string(olmv1alpha1.CollisionProtectionPrevent))),
		Certificates: v.Certificates, Accept: e.Annotations[extension.AcceptRequirementsAnnotation] == "true",
	}
	if value := e.Annotations[extension.YieldAnnotation]; value != "" {
		// A mistake in the annotation must not take fields from other managers.
		var err error
		if w.Yield, err = extension.ParseYield(value); err != nil {
			return nil, stop(status.Invalid, fmt.Sprintf("annotation %s: %s", extension.YieldAnnotation, err), "")
		}
	}
	if e.Spec.Config != nil {
		w.Config = e.Spec.Config.Inline
	}
	source := e.Spec.Source
	lost := func(field string) *halt {
		return stop(status.Invalid, fmt.Sprintf("spec.source.sourceType is %s, and spec.source.%s is missing: the CustomResourceDefinition %s in this cluster perhaps does not have that field. The installed version stays",
			source.SourceType, field, definitionName()), "")
	}
	switch source.SourceType {
	case extension.SourceCatalog:
		if source.Catalog == nil {
			return nil, lost("catalog")
		}
		return v.chooseBundle(w)
	case extension.SourceImage:
		if source.Image == nil || source.Image.Ref == "" {
			return nil, lost("image")
		}
		w.ref, w.formats = source.Image.Ref, []packed.Format{packed.Bundle, packed.Manifests}
	case extension.SourceChart:
		if source.Chart == nil || source.Chart.Ref == "" {
			return nil, lost("chart")
		}
		w.ref, w.formats = source.Chart.Ref, []packed.Format{packed.Chart}
	default:
		return nil, stop(status.Invalid, fmt.Sprintf("spec.source.sourceType is %q, must be %s, %s or %s", source.SourceType, extension.SourceCatalog, extension.SourceImage, extension.SourceChart), "")
	}
	return w, nil
}

// chooseBundle asks the catalogs.
func (v *visit) chooseBundle(w *wish) (*wish, *halt) {
	if !v.catalogs.Complete() {
		return nil, stop(status.Pending, "the catalogs are not known yet", "")
	}
	source := v.extension.Spec.Source.Catalog
	request, catalogs := v.request(), v.catalogs.ForResolver(source.PackageName)
	if known, err := upgrades.Of(request, catalogs); err == nil {
		v.upgrades = known
	}
	began := v.Clock.Now()
	answer, err := resolve.Resolve(request, catalogs)
	v.measured.Resolved(v.Clock.Since(began), err)
	if err != nil {
		stopped := v.unresolved(err, catalogs)
		if stopped.Result == status.NoCatalog {
			return v.wroteSince(w), stopped
		}
		return nil, stopped
	}
	if answer.Bundle.Image == "" {
		return nil, stop(status.Unresolved, fmt.Sprintf("catalog %s: bundle %s names no image", answer.Catalog, answer.Bundle.Name), "")
	}
	v.answer = answer
	w.ref, w.formats, w.pkg = answer.Bundle.Image, []packed.Format{packed.Bundle}, source.PackageName
	w.bundle = &status.Bundle{Name: answer.Bundle.Name, Version: answer.Version.String(), Catalog: answer.Catalog, Channel: answer.Channel}
	return w, nil
}

// request is what the extension asks the catalogs for.
func (v *visit) request() resolve.Request {
	var installed *resolve.Installed
	if name, version := v.installedBundle(); name != "" {
		installed = &resolve.Installed{Name: name, Version: version}
	}
	return upgrades.Request(*v.extension.Spec.Source.Catalog, v.extension.Annotations, installed)
}

// installedBundle is the bundle of the package that is installed, "" for none: one of another
// package has no successors in this one.
func (v *visit) installedBundle() (name, version string) {
	installed := v.installed()
	if installed == nil || installed.Annotations[olmv1alpha1.PackageAnnotation] != v.extension.Spec.Source.Catalog.PackageName {
		return "", ""
	}
	return installed.Annotations[olmv1alpha1.BundleAnnotation], installed.Annotations[olmv1alpha1.VersionAnnotation]
}

// unresolved is why the catalogs have no answer. Without any catalog, what is installed goes
// on as it is, when it is what is asked for.
func (v *visit) unresolved(err error, catalogs []resolve.Catalog) *halt {
	asked := slices.DeleteFunc(slices.Clone(catalogs), func(one resolve.Catalog) bool {
		return one.Unavailable || !selects(v.extension.Spec.Source.Catalog.Selector, one.Labels)
	})
	_, installed := v.installedBundle()
	if len(asked) == 0 && installed != "" {
		wanted := v.extension.Spec.Source.Catalog.Version
		if resolve.InRange(installed, wanted) {
			return stop(status.NoCatalog, err.Error(), "")
		}
		return stop(status.NoCatalog, fmt.Sprintf("unable to upgrade to version %q: %s (currently installed: %q)", wanted, err, installed), "")
	}
	for _, one := range asked {
		if one.Err != nil {
			return stop(status.CatalogUnavailable, err.Error(), "")
		}
	}
	var none *resolve.Error
	if errors.As(err, &none) {
		if len(asked) == 0 {
			return stop(status.NoCatalog, none.Message, none.Reason)
		}
		return stop(status.Unresolved, none.Message, none.Reason)
	}
	if errors.As(err, new(*resolve.RequirementError)) {
		return stop(status.Unresolved, err.Error(), "Penstock does not install dependencies: install what the bundle requires first, and accept its requirements: "+accepting(v.extension.Name))
	}
	return stop(status.Unresolved, err.Error(), "")
}

// accepting is the command by which the requirements of a bundle are accepted.
func accepting(name string) string {
	return fmt.Sprintf("kubectl annotate --overwrite clusterextension %s %s=true", name, extension.AcceptRequirementsAnnotation)
}

// wroteSince is a wish for the bundle that is installed, when it is what is asked for and
// somebody wrote the extension since, and nil otherwise.
func (v *visit) wroteSince(w *wish) *wish {
	installed := v.installed()
	_, version := v.installedBundle()
	if version == "" || installed != v.newest() || v.isDecided(installed) || !resolve.InRange(version, v.extension.Spec.Source.Catalog.Version) {
		return nil
	}
	has := installed.Annotations
	if w.ref = has[olmv1alpha1.ReferenceAnnotation]; w.ref == "" {
		return nil
	}
	w.formats, w.pkg = []packed.Format{packed.Bundle}, has[olmv1alpha1.PackageAnnotation]
	w.bundle = &status.Bundle{Name: has[olmv1alpha1.BundleAnnotation], Version: version, Catalog: has[extension.CatalogAnnotation], Channel: has[extension.ChannelAnnotation]}
	return w
}

func selects(selector *metav1.LabelSelector, of map[string]string) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(of))
}

// mayAdvance says what keeps an extension from making another revision:
//
//  1. A rollback holds until the generation is above the one that it was made at, or until it is
//     released.
//  2. A rollout for this generation is on its way: it is not interrupted by what a catalog brings.
//     Editing the spec does interrupt it.
func (v *visit) mayAdvance(ctx context.Context) *halt {
	newest := v.newest()
	if newest == nil {
		return nil
	}
	if v.mayBeHeld(newest) {
		head, found, err := v.Heads.Get(ctx, v.extension.Name)
		if err != nil {
			return retry(status.Failed, fmt.Errorf("finding out whether a rollback holds %s: %w", v.extension.Name, err))
		}
		if hold := holdBy(head, newest); found && hold != nil && (hold.OwnerGeneration == 0 || v.extension.Generation <= hold.OwnerGeneration) {
			return stop(status.Held, held(olm.RevisionName(v.extension.Name, hold.Revision), hold.OwnerGeneration), "")
		}
	}
	if isRollback(newest) {
		return nil
	}
	if !hasSucceeded(newest) && newest.Spec.LifecycleState == olmv1alpha1.LifecycleStateActive && v.isDecided(newest) {
		return settled()
	}
	return nil
}

// mayBeHeld is whether a revision is a rollback, or may have the content of one: then the head
// says whether that holds. What was handed to Helm, and what came back from it, is no rollback
// itself.
func (v *visit) mayBeHeld(newest *olmv1alpha1.ClusterExtensionRevision) bool {
	return isRollback(newest) || v.byHelm || newest.Annotations[olmv1alpha1.AdoptedReleaseAnnotation] != ""
}

// holdBy is the hold of a rollback, nil when there is none. The record of the rollback is
// written a moment before its hold counts, and until then the head has that of an older one, if
// any. What was never written holds nobody.
func holdBy(head chain.Head, rollback *olmv1alpha1.ClusterExtensionRevision) *chain.Hold {
	if pending := head.PendingHold; pending != nil && pending.UID == rollback.UID {
		return pending
	}
	return head.Hold
}

// held says how long a rollback holds, and what helps.
func held(name string, generation int64) string {
	release := fmt.Sprintf("kubectl annotate cer %s %s=%s", name, olmv1alpha1.ReleaseHoldAnnotation, name)
	if generation == 0 {
		return fmt.Sprintf("%s is a rollback: no revision is made until the hold is released: %s", name, release)
	}
	return fmt.Sprintf("%s is a rollback: no revision is made until the generation is above %d, or until the hold is released: change the spec, or %s", name, generation, release)
}

// isDecided is whether a revision was made for the extension as it is: by the stamp that it has
// now, or, when it has none, for its generation.
func (v *visit) isDecided(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	if stamp, err := author.ClusterExtensions().Verify(v.Key, v.object); err == nil {
		return revision.Annotations[extension.StampAnnotation] == v.stampName(stamp)
	}
	return revision.Annotations[extension.GenerationAnnotation] == strconv.FormatInt(v.extension.Generation, 10)
}
