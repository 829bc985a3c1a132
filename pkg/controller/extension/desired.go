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

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/extension/upgrades"
	"github.com/penstock-project/penstock/pkg/extension/values"
	"github.com/penstock-project/penstock/pkg/resolve"
	"github.com/penstock-project/penstock/pkg/source/bundle"
	"github.com/penstock-project/penstock/pkg/source/packed"
)

// madeOfVersion changes if the same image and configuration render to other objects. Then Penstock
// renders every extension again, and creates a revision for each that differs.
const madeOfVersion = 1

// desired is the desired content of the newest revision of an extension.
type desired struct {
	// ref is the reference of an image, as the catalog or the spec has it. formats lists the
	// allowed formats.
	ref     string
	formats []packed.Format
	bundle  *status.Bundle
	pkg     string
	// reviewedIn is the catalog of the image, for a child of a ClusterExtensionSet; else empty.
	reviewedIn string
	// pinned is the reference with the digest, after the image was pulled.
	pinned string

	Name, Namespace string
	Target          string
	Collision       olmv1alpha1.CollisionProtection
	Config          json.RawMessage
	Certificates    bundle.CertificateProvider
	// Accept is true if the bundle may require what other means provide.
	Accept bool
	// Yield lists the fields that are left to other field managers.
	Yield []olmv1alpha1.YieldRule
	// Patches are the patches of the rendered objects, as the extension lists them.
	Patches string
	// Values are the values of Secrets and ConfigMaps, merged with Config; nil without any.
	// ValuesDigest does not reveal them.
	Values       *values.Values
	ValuesDigest string
}

func (d *desired) configuration() json.RawMessage {
	if d.Values != nil {
		return d.Values.JSON
	}
	return d.Config
}

func (d *desired) catalog() string {
	if d.bundle == nil {
		return d.reviewedIn
	}
	return d.bundle.Catalog
}

// digest returns the same value as long as the content of the revision would be the same.
func (d *desired) digest() string {
	content, err := json.Marshal(struct {
		Version                 int
		Ref                     string
		Name, Namespace, Target string
		Collision               olmv1alpha1.CollisionProtection
		Config                  json.RawMessage
		Certificates            bundle.CertificateProvider
		// Earlier versions did not have these fields, so an empty field must not change the digest.
		Accept       bool                    `json:",omitempty"`
		Yield        []olmv1alpha1.YieldRule `json:",omitempty"`
		Patches      string                  `json:",omitempty"`
		ValuesDigest string                  `json:",omitempty"`
	}{madeOfVersion, d.ref, d.Name, d.Namespace, d.Target, d.Collision, d.Config, d.Certificates, d.Accept, d.Yield, d.Patches, d.ValuesDigest})
	if err != nil {
		return "" // the spec has invalid JSON: rendering reports it
	}
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// of returns the desired state with the known content; nil adds nothing.
func (d *desired) of(content *content) *desired {
	if content == nil {
		return d
	}
	pulled := *d
	pulled.pinned = content.reference
	if pulled.bundle == nil {
		pulled.bundle = &status.Bundle{Name: cmp.Or(content.Package, content.reference), Version: content.Version}
		pulled.pkg = content.Package
	}
	return &pulled
}

// choose finds the desired image. It returns both results if there is no catalog and the extension
// was written since the last revision: the installed version may need new settings.
func (s *scope) choose() (*desired, *maker.Outcome) {
	e := s.extension
	d := &desired{
		Name: e.Name, Namespace: e.Spec.Namespace, Target: e.Annotations[extension.TargetAnnotation],
		Collision:    olmv1alpha1.CollisionProtection(cmp.Or(e.Annotations[extension.CollisionProtectionAnnotation], string(olmv1alpha1.CollisionProtectionPrevent))),
		Certificates: s.Certificates, Accept: e.Annotations[extension.AcceptRequirementsAnnotation] == "true",
		Patches: e.Annotations[extension.PatchesAnnotation],
	}
	if value := e.Annotations[extension.YieldAnnotation]; value != "" {
		// An invalid annotation must not take fields from other managers.
		var err error
		if d.Yield, err = extension.ParseYield(value); err != nil {
			return nil, stop(status.Invalid, fmt.Sprintf("annotation %s: %s", extension.YieldAnnotation, err), "")
		}
	}
	if e.Annotations[extension.SetAnnotation] != "" {
		d.reviewedIn = e.Annotations[extension.CatalogAnnotation]
	}
	if e.Spec.Config != nil {
		d.Config = e.Spec.Config.Inline
	}
	source := e.Spec.Source
	lost := func(field string) *maker.Outcome {
		return stop(status.Invalid, fmt.Sprintf("spec.source.sourceType is %s, and spec.source.%s is missing: the CustomResourceDefinition %s in this cluster perhaps does not have that field. The installed version stays",
			source.SourceType, field, definitionName()), "")
	}
	switch source.SourceType {
	case extension.SourceCatalog:
		if source.Catalog == nil {
			return nil, lost("catalog")
		}
		return s.chooseBundle(d)
	case extension.SourceImage:
		if source.Image == nil || source.Image.Ref == "" {
			return nil, lost("image")
		}
		d.ref, d.formats = source.Image.Ref, []packed.Format{packed.Bundle, packed.Manifests}
	case extension.SourceChart:
		if source.Chart == nil || source.Chart.Ref == "" {
			return nil, lost("chart")
		}
		d.ref, d.formats = source.Chart.Ref, []packed.Format{packed.Chart}
	default:
		return nil, stop(status.Invalid, fmt.Sprintf("spec.source.sourceType is %q, must be %s, %s or %s", source.SourceType, extension.SourceCatalog, extension.SourceImage, extension.SourceChart), "")
	}
	return d, nil
}

func (s *scope) chooseBundle(d *desired) (*desired, *maker.Outcome) {
	if !s.catalogs.Complete() {
		return nil, stop(status.Pending, "the catalogs are not known yet", "")
	}
	source := s.extension.Spec.Source.Catalog
	request, catalogs := s.request(), s.catalogs.ForResolver(source.PackageName)
	if known, err := upgrades.Of(request, catalogs); err == nil {
		s.upgrades = known
	}
	began := s.Clock.Now()
	answer, err := resolve.Resolve(request, catalogs)
	s.measured.Resolved(s.Clock.Since(began), err)
	s.awaitVersion(answer, err)
	if err != nil {
		stopped := s.unresolved(err, catalogs)
		if resultOf(stopped) == status.NoCatalog {
			return s.wroteSince(d), stopped
		}
		return nil, stopped
	}
	if answer.Bundle.Image == "" {
		return nil, stop(status.Unresolved, fmt.Sprintf("catalog %s: bundle %s names no image", answer.Catalog, answer.Bundle.Name), "")
	}
	if stopped := s.mayChoose(answer); stopped != nil {
		return nil, stopped
	}
	s.answer = answer
	d.ref, d.formats, d.pkg = answer.Bundle.Image, []packed.Format{packed.Bundle}, source.PackageName
	d.bundle = &status.Bundle{Name: answer.Bundle.Name, Version: answer.Version.String(), Catalog: answer.Catalog, Channel: answer.Channel}
	return d, nil
}

func (s *scope) request() resolve.Request {
	var installed *resolve.Installed
	if name, version := s.installedBundle(); name != "" {
		installed = &resolve.Installed{Name: name, Version: version}
	}
	asked := upgrades.Request(*s.extension.Spec.Source.Catalog, installed)
	asked.Cluster = s.cluster.version
	return asked
}

// installedBundle returns the installed bundle of the package, or "". A bundle of another package
// has no successors in this package.
func (s *scope) installedBundle() (name, version string) {
	installed := s.installed()
	if installed == nil || installed.Annotations[olmv1alpha1.PackageAnnotation] != s.extension.Spec.Source.Catalog.PackageName {
		return "", ""
	}
	return installed.Annotations[olmv1alpha1.BundleAnnotation], installed.Annotations[olmv1alpha1.VersionAnnotation]
}

// unresolved returns the outcome for catalogs without an answer. Without any catalog, installed
// content stays if it matches the request.
func (s *scope) unresolved(err error, catalogs []resolve.Catalog) *maker.Outcome {
	asked := slices.DeleteFunc(slices.Clone(catalogs), func(one resolve.Catalog) bool {
		return one.Unavailable || !selects(s.extension.Spec.Source.Catalog.Selector, one.Labels)
	})
	_, installed := s.installedBundle()
	if len(asked) == 0 && installed != "" {
		wanted := s.extension.Spec.Source.Catalog.Version
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
	return stop(status.Unresolved, err.Error(), "")
}

func accepting(name string) string {
	return fmt.Sprintf("kubectl annotate --overwrite clusterextension %s %s=true", name, extension.AcceptRequirementsAnnotation)
}

// wroteSince returns the installed bundle as the desired one, if it matches the request and the
// extension was written since its revision. Otherwise it returns nil.
func (s *scope) wroteSince(d *desired) *desired {
	installed := s.installed()
	_, version := s.installedBundle()
	if version == "" || installed != s.Newest() || s.isDecided(installed) || !resolve.InRange(version, s.extension.Spec.Source.Catalog.Version) {
		return nil
	}
	has := installed.Annotations
	if d.ref = has[olmv1alpha1.ReferenceAnnotation]; d.ref == "" {
		return nil
	}
	d.formats, d.pkg = []packed.Format{packed.Bundle}, has[olmv1alpha1.PackageAnnotation]
	d.bundle = &status.Bundle{Name: has[olmv1alpha1.BundleAnnotation], Version: version, Catalog: has[extension.CatalogAnnotation], Channel: has[extension.ChannelAnnotation]}
	return d
}

func selects(selector *metav1.LabelSelector, of map[string]string) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(of))
}

// mayAdvance returns the reason why an extension must not get another revision, or nil:
//
//  1. A rollback holds the extension until its generation increases, or until a user releases the
//     hold.
//  2. A rollout for this generation is in progress. A new version in a catalog does not interrupt
//     it.
//     An edit of the spec does.
func (s *scope) mayAdvance(ctx context.Context) *maker.Outcome {
	newest := s.Newest()
	if newest == nil {
		return nil
	}
	if s.mayBeHeld(newest) {
		if stopped := s.Hold(ctx, newest, s.extension.Generation); stopped != nil {
			return stopped
		}
	}
	if maker.IsRollback(newest) {
		return nil
	}
	if !maker.HasSucceeded(newest) && newest.Spec.LifecycleState == olmv1alpha1.LifecycleStateActive && s.isDecided(newest) {
		return settled()
	}
	return nil
}

// mayBeHeld reports whether a revision is a rollback, or may have the content of a rollback. Then
// Hold reads the hold from the head of the chain. A revision that was handed to Helm, or taken
// back, may have that content, but is not itself a rollback.
func (s *scope) mayBeHeld(newest *olmv1alpha1.ClusterExtensionRevision) bool {
	return maker.IsRollback(newest) || s.byHelm || newest.Annotations[olmv1alpha1.AdoptedReleaseAnnotation] != ""
}

// undecided reports whether the extension's stamp is valid, and no revision was created by it.
func (s *scope) undecided() bool {
	stamp, err := author.ClusterExtensions().Verify(s.Key, s.object)
	return err == nil && stamp.Fresh(s.Clock.Now()) && !s.wasUsed(s.stampName(stamp))
}

// isDecided reports whether a revision was created for the present extension: by its present stamp
// or, without a stamp, for its generation.
func (s *scope) isDecided(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	if stamp, err := author.ClusterExtensions().Verify(s.Key, s.object); err == nil {
		return revision.Annotations[extension.StampAnnotation] == s.stampName(stamp)
	}
	return revision.Annotations[extension.GenerationAnnotation] == strconv.FormatInt(s.extension.Generation, 10)
}
