package adopt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/helmrelease"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/helm"
	"github.com/penstock-project/penstock/pkg/store/archive"
)

// supersededBy is the annotation of the Secret of a release that is adopted.
const supersededBy = v1alpha1.SupersededByAnnotation

// Plan is what an adoption would do. Nothing was written for it.
type Plan struct {
	Request
	// Revisions that the extension gets, the newest first.
	Revisions []Revision
	// Objects of the revision that becomes active, in the order of rollout.
	Objects []Object
	// Warnings tell what is left out, and what may be refused.
	Warnings []string
	// Known is true when the extension has been adopted from this release before.
	Known bool
	// Next is true when it was, and Helm has made a newer revision since: only that one
	// becomes a revision.
	Next bool
	// Tried is true when it was, and Helm has tried newer revisions since that failed: they
	// are only taken note of.
	Tried bool

	release release
	archive []byte
}

// Revision is one revision of the extension, of one of Helm's.
type Revision struct {
	Name string
	// State is Active or Archived.
	State v1alpha1.LifecycleState
	// Status and Chart are what Helm says of it.
	Status, Chart string
	Objects       int

	of     helm.Release
	phases []source.Phase
}

// Plan finds out what would become of a release, and reads only.
func (a *Adopter) Plan(ctx context.Context, request Request) (*Plan, error) {
	found, err := a.read(ctx, request)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Request: request, release: found}
	if err := a.compareExtension(ctx, plan); err != nil {
		return nil, err
	}
	digester := digesterFor(found.Deployed)
	all := append([]helm.Release{found.Deployed}, found.Older...)
	if plan.Next {
		all = all[:1]
	}
	for i, one := range all {
		revision, err := a.revision(ctx, plan, one, digester)
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
	plan.Objects, err = a.compare(ctx, plan)
	return plan, err
}

// compareExtension finds out what there is of the extension.
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
	plan.Next = plan.release.Deployed.Version > known.Revision
	plan.Tried = !plan.Next && plan.release.Highest > known.Revision
	return nil
}

// usedBefore refuses the name of an extension whose revisions are all deleted: an import of
// it is done already for the server. One that was interrupted has rows of revisions that are
// not there yet.
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

// spent says that a name cannot be used.
func spent(extension string) error {
	return fmt.Errorf("there was an extension %[1]s, and its numbers are used: give the new one another name with --extension, or have an administrator forget it: kubectl delete revisionhistory %[1]s", extension)
}

// list returns the revisions of an extension.
func (a *Adopter) list(ctx context.Context, extension string) ([]v1alpha1.ClusterExtensionRevision, error) {
	list, err := a.revisions.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.ChainLabel + "=" + extension})
	if err != nil {
		return nil, fmt.Errorf("listing the revisions of extension %s: %w", extension, err)
	}
	return list.Items, nil
}

// adopted is the release that revisions were adopted from, with the newest of Helm's
// revisions that was taken into account.
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

// revision makes one revision of one of Helm's.
func (a *Adopter) revision(ctx context.Context, plan *Plan, of helm.Release, digester manifest.Digester) (Revision, error) {
	rendered, err := of.Render(ctx, a.inNamespace(ctx))
	if err != nil {
		return Revision{}, err
	}
	out := Revision{
		Name: olm.RevisionName(plan.Extension, int64(of.Version)), Status: of.Info.Status,
		Chart: of.Chart.Metadata.Name + "-" + of.Chart.Metadata.Version, Objects: source.Count(rendered.Phases), of: of,
	}
	for _, phase := range rendered.Phases {
		digested := source.Phase{Name: phase.Name}
		for _, object := range phase.Objects {
			if object, err = digester.FromJSON(object.JSON); err != nil {
				return Revision{}, err
			}
			digested.Objects = append(digested.Objects, object)
		}
		out.phases = append(out.phases, digested)
	}
	for _, warning := range rendered.Warnings {
		plan.Warnings = append(plan.Warnings, warning.String())
	}
	return out, nil
}

// digesterFor keys the digests of Secrets in the archive. The server makes its own; these
// only have to be the same when the release is, and say nothing to those who cannot read it.
func digesterFor(deployed helm.Release) manifest.Digester {
	key := sha256.Sum256([]byte("penstock adopt-helm\n" + deployed.Manifest))
	return manifest.Digester{SecretKey: key[:]}
}

// pack makes the archive of the extension: the same whenever the release is.
func (p *Plan) pack() ([]byte, error) {
	var out bytes.Buffer
	writer, err := archive.NewWriter(&out)
	if err != nil {
		return nil, err
	}
	chain := archive.Chain{Name: p.Extension, Highest: int64(p.release.Highest)}
	for i := range p.Revisions {
		one := &p.Revisions[i]
		chain.Revisions = append(chain.Revisions, int64(one.of.Version))
		// By rising number.
		row := one.row()
		row.Counts = p.counts(i)
		chain.History = append([]archive.Row{row}, chain.History...)
	}
	if err := writer.Chain(chain); err != nil {
		return nil, err
	}
	for i := range p.Revisions {
		one := &p.Revisions[i]
		spec, err := json.Marshal(p.spec(one, false))
		if err != nil {
			return nil, err
		}
		var objects []manifest.Object
		for _, phase := range one.phases {
			objects = append(objects, phase.Objects...)
		}
		err = writer.Revision(archive.Revision{
			Number: int64(one.of.Version), Annotations: p.annotations(one), CreatedAt: one.at(),
			Succeeded: one.succeeded(), CompletedAt: one.completed(), Spec: spec,
		}, objects)
		if err != nil {
			return nil, err
		}
	}
	err = writer.Close()
	return out.Bytes(), err
}

// counts are of the i-th revision, against the one before it.
func (p *Plan) counts(i int) *archive.Counts {
	own, before := p.Revisions[i].refs(), []manifest.Ref(nil)
	if i+1 < len(p.Revisions) {
		before = p.Revisions[i+1].refs()
	}
	changes := diff.Count(before, own)
	return &archive.Counts{Objects: len(own), Added: changes.Added, Changed: changes.Changed, Removed: changes.Removed}
}

// refs are the objects of a revision.
func (r *Revision) refs() []manifest.Ref {
	var refs []manifest.Ref
	for _, phase := range r.phases {
		for _, object := range phase.Objects {
			refs = append(refs, object.Ref)
		}
	}
	return refs
}

// row is what history says of a revision.
func (r *Revision) row() archive.Row {
	row := archive.Row{
		Revision: int64(r.of.Version), Version: r.of.Chart.Metadata.Version, CreatedAt: r.at(), CompletedAt: r.completed(),
		Result: v1alpha1.ResultIncomplete, Cause: "Helm: " + r.of.Info.Description,
	}
	switch {
	case r.State == v1alpha1.LifecycleStateActive:
		row.Result, row.CompletedAt = v1alpha1.ResultProgressing, time.Time{} // as it is here, the controller finds out
	case r.succeeded():
		row.Result = v1alpha1.ResultSucceeded
	}
	return row
}

// at is when Helm rolled the revision out.
func (r *Revision) at() time.Time { return r.of.Info.LastDeployed.UTC().Truncate(time.Second) }

// succeeded tells whether Helm's rollout did: what is superseded was deployed before.
func (r *Revision) succeeded() bool {
	return r.of.Info.Status == helm.StatusDeployed || r.of.Info.Status == helm.StatusSuperseded
}

func (r *Revision) completed() time.Time {
	if !r.succeeded() {
		return time.Time{}
	}
	return r.at()
}

func (p *Plan) annotations(r *Revision) map[string]string {
	out := map[string]string{
		v1alpha1.HelmReleaseAnnotation:  helmrelease.Release{Namespace: p.Namespace, Name: p.Release, Revision: p.release.Highest}.String(),
		v1alpha1.HelmRevisionAnnotation: strconv.Itoa(r.of.Version),
		v1alpha1.ChangeCauseAnnotation:  "Helm: " + r.of.Info.Description,
	}
	if version := r.of.Chart.Metadata.Version; version != "" {
		out[v1alpha1.VersionAnnotation] = version
	}
	return out
}

// spec is that of a revision, with manifests inline or by digest.
func (p *Plan) spec(r *Revision, inline bool) v1alpha1.ClusterExtensionRevisionSpec {
	spec := v1alpha1.ClusterExtensionRevisionSpec{
		Revision: int64(r.of.Version), LifecycleState: r.State, CollisionProtection: v1alpha1.CollisionProtectionIfNoController,
	}
	for _, phase := range r.phases {
		out := v1alpha1.RevisionPhase{Name: phase.Name}
		for _, object := range phase.Objects {
			if inline {
				out.Objects = append(out.Objects, v1alpha1.RevisionObject{Object: &v1alpha1.Manifest{Raw: object.JSON}})
				continue
			}
			out.Objects = append(out.Objects, v1alpha1.RevisionObject{
				APIVersion: object.APIVersion(), Kind: object.Kind, Namespace: object.Namespace, Name: object.Name, Digest: string(object.Digest),
			})
		}
		spec.Phases = append(spec.Phases, out)
	}
	return spec
}
