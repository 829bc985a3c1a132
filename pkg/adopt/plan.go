package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/helmrelease"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/helm"
)

// supersededBy is the annotation on the Secret of an adopted release.
const supersededBy = v1alpha1.SupersededByAnnotation

// Plan lists the effects of adopting a release. Planning writes nothing.
type Plan struct {
	Request
	Taken
	// Known is true when the extension has been adopted from this release before.
	Known bool
	// Next is true when Known is, and Helm deployed a newer revision since. Then only that revision
	// is adopted.
	Next bool
	// Tried is true when Known is, and all newer revisions of Helm failed. Then they are only
	// recorded.
	Tried bool

	// made is the newest revision that was made from Helm's deployed revision; empty for none.
	made    string
	release release
}

// Plan plans the adoption of a release. It only reads.
func (a *Adopter) Plan(ctx context.Context, request Request) (*Plan, error) {
	found, err := a.read(ctx, request)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Request: request, Taken: Taken{extension: request.Extension, highest: int64(found.Highest)}, release: found}
	if err := a.compareExtension(ctx, plan); err != nil {
		return nil, err
	}
	digester := digesterFor(found.Deployed.Manifest)
	plan.foreign, plan.again = request.belongsElsewhere, plan.Next
	all := append([]helm.Release{found.Deployed}, found.Older...)
	if plan.Next {
		all = all[:1]
	}
	plan.Warnings = append(plan.Warnings, found.unreadable...)
	for i, one := range all {
		revision, err := a.revision(ctx, plan, one, digester)
		if warning := omissionReason(one, i == 0, err); warning != "" {
			plan.Warnings = append(plan.Warnings, warning)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("revision %d of the Helm release %s: %w", one.Version, request, err)
		}
		if revision.State = v1alpha1.LifecycleStateArchived; i == 0 {
			revision.State = v1alpha1.LifecycleStateActive
		}
		plan.Revisions = append(plan.Revisions, revision)
	}
	if found.Failed != nil {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("revision %d of Helm is %s and is left out; what it changed may be in the cluster", found.Failed.Version, found.Failed.Info.Status))
	}
	if plan.archive, err = plan.pack(); err != nil {
		return nil, err
	}
	return plan, a.compare(ctx, &plan.Taken)
}

func (a *Adopter) compareExtension(ctx context.Context, plan *Plan) error {
	revisions, err := a.list(ctx, plan.Extension)
	if err != nil {
		return err
	}
	known := adopted(revisions)
	switch {
	case len(revisions) == 0:
		return a.usedBefore(ctx, plan.Extension)
	case known.Name == "":
		return fmt.Errorf("the extension %s exists and was not adopted from Helm: give the new one another name with --extension", plan.Extension)
	case known.Name != plan.Release || known.Namespace != plan.Namespace:
		return fmt.Errorf("the extension %s was adopted from the Helm release %s/%s: give the new one another name with --extension", plan.Extension, known.Namespace, known.Name)
	}
	plan.Known = true
	plan.made = madeFrom(revisions, plan.release.Deployed.Version)
	plan.Next = plan.release.Deployed.Version > known.Revision
	plan.Tried = !plan.Next && plan.release.Highest > known.Revision
	return nil
}

// madeFrom returns the newest revision that was made from a revision of Helm; empty for none.
func madeFrom(revisions []v1alpha1.ClusterExtensionRevision, version int) string {
	name, highest := "", int64(0)
	for i := range revisions {
		one := &revisions[i]
		if one.Annotations[v1alpha1.HelmRevisionAnnotation] == strconv.Itoa(version) && one.Spec.Revision > highest {
			name, highest = one.Name, one.Spec.Revision
		}
	}
	return name
}

// usedBefore returns an error for an extension whose revisions are all deleted: the server would
// treat an import as already done. After an interrupted import, some rows have no revision yet and
// no deletion time.
func (a *Adopter) usedBefore(ctx context.Context, extension string) error {
	history, err := a.revisions.OlmV1alpha1().RevisionHistories().Get(ctx, extension, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the history of extension %s: %w", extension, err)
	}
	for _, record := range history.Revisions {
		if record.DeletedAt.IsZero() {
			return nil
		}
	}
	if len(history.Revisions) == 0 {
		return nil
	}
	return spent(extension)
}

// spent returns the error for a name that cannot be used again, because its revision numbers are
// used up.
func spent(extension string) error {
	return fmt.Errorf("there was an extension %[1]s, and its numbers are used up: give the new one another name with --extension, or have an administrator delete its history: kubectl delete revisionhistory %[1]s", extension)
}

func (a *Adopter) list(ctx context.Context, extension string) ([]v1alpha1.ClusterExtensionRevision, error) {
	list, err := a.revisions.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.ChainLabel + "=" + extension})
	if err != nil {
		return nil, fmt.Errorf("listing the revisions of extension %s: %w", extension, err)
	}
	return list.Items, nil
}

// adopted returns the release from which the revisions were adopted, with the newest Helm revision
// that was recorded.
func adopted(revisions []v1alpha1.ClusterExtensionRevision) helmrelease.Release {
	var newest helmrelease.Release
	for i := range revisions {
		one, err := helmrelease.Parse(revisions[i].Annotations[v1alpha1.HelmReleaseAnnotation])
		if err == nil && one.Revision > newest.Revision {
			newest = one
		}
	}
	return newest
}

func (a *Adopter) revision(ctx context.Context, plan *Plan, of helm.Release, digester manifest.Digester) (Revision, error) {
	rendered, err := a.renderRelease(ctx, of)
	if err != nil {
		return Revision{}, err
	}
	out := plan.ofHelm(of, plan.release.Highest)
	for _, warning := range rendered.Warnings {
		plan.Warnings = append(plan.Warnings, warning.String())
	}
	if err := out.take(rendered.Phases, digester); err != nil {
		return Revision{}, &unreadableError{err}
	}
	return out, nil
}

// renderRelease parses the objects of a Helm revision. For an invalid record the error is an
// unreadableError; for a failed request to the cluster it is another error.
func (a *Adopter) renderRelease(ctx context.Context, of helm.Release) (source.Rendered, error) {
	var unanswered error
	scopes := a.inNamespace(ctx)
	rendered, err := of.Render(ctx, func(kind schema.GroupVersionKind) (inNamespace, known bool, err error) {
		inNamespace, known, err = scopes(kind)
		unanswered = cmp.Or(unanswered, err)
		return inNamespace, known, err
	})
	switch {
	case unanswered != nil || ctx.Err() != nil:
		return source.Rendered{}, cmp.Or(unanswered, context.Cause(ctx))
	case err != nil:
		return source.Rendered{}, &unreadableError{err}
	}
	return rendered, nil
}

// omissionReason returns the warning for a revision whose record is unreadable. It is empty when the
// revision is needed, or for any other error.
func omissionReason(of helm.Release, needed bool, err error) string {
	if unreadable := (*unreadableError)(nil); needed || !errors.As(err, &unreadable) {
		return ""
	}
	return fmt.Sprintf("revision %d of Helm is %s and is left out: %s", of.Version, of.Info.Status, err)
}

type unreadableError struct{ err error }

// Error implements error.
func (e *unreadableError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *unreadableError) Unwrap() error { return e.err }

// ofHelm returns a revision of the release without its objects. Highest is the highest revision
// number of the release.
func (r Request) ofHelm(of helm.Release, highest int) Revision {
	out := Revision{
		Name: olm.RevisionName(r.Extension, int64(of.Version)), Status: of.Info.Status, Chart: of.Chart.Metadata.Name + "-" + of.Chart.Metadata.Version,
		number: int64(of.Version), version: of.Chart.Metadata.Version, cause: "Helm: " + of.Info.Description,
		at: of.Info.LastDeployed.UTC().Truncate(time.Second),
		// A superseded revision was deployed before.
		succeeded: of.Info.Status == helm.StatusDeployed || of.Info.Status == helm.StatusSuperseded,
	}
	out.annotations = map[string]string{
		v1alpha1.HelmReleaseAnnotation:  helmrelease.Release{Namespace: r.Namespace, Name: r.Release, Revision: highest}.String(),
		v1alpha1.HelmRevisionAnnotation: strconv.Itoa(of.Version),
		v1alpha1.ChangeCauseAnnotation:  out.cause,
	}
	if out.version != "" {
		out.annotations[v1alpha1.VersionAnnotation] = out.version
	}
	return out
}
