package chartkind

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/klog/v2"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
	"github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/source"
	chartsource "github.com/penstock-project/penstock/pkg/source/chart"
)

// made is the result of a rendering: objects and their changes, or the reason for none.
type made struct {
	rendered source.Rendered
	diff     *olmv1alpha1.RevisionDiff
	stopped  *maker.Outcome
}

// Decide implements maker.FrontEnd. Revisions are created as the ServiceAccount. With Manual, a
// user must approve every revision except the first. With Reviewed, a review covers every later
// revision that has another chart, or that no change of the custom resource requested.
func (s *scope) Decide(ctx context.Context) (maker.Identity, *maker.Outcome) {
	identity := maker.Identity{As: s.as(), Author: s.as()}
	isFirst := !slices.ContainsFunc(s.Revisions, func(one olmv1alpha1.ClusterExtensionRevision) bool { return one.DeletionTimestamp == nil })
	because := fmt.Sprintf("spec.upgradeApproval of ChartKind %s is %s", s.name, s.spec.UpgradeApproval)
	switch {
	case isFirst:
	case s.spec.UpgradeApproval == chartkind.ApprovalManual:
		identity.Approval = because
	case s.spec.UpgradeApproval == chartkind.ApprovalReviewed && !s.isRequested():
		on, err := note.ParseHoldOn(s.spec.HoldOn)
		if err != nil {
			return identity, irreconcilable("spec.holdOn of ChartKind %s: %s", s.name, err)
		}
		identity.Review = s.NewReview(on, because)
	}
	return identity, nil
}

// isRequested reports whether the custom resource changed since the newest revision, while its chart
// and ChartKind did not. A change of the chart or ChartKind waits, no matter who edits the custom
// resource.
func (s *scope) isRequested() bool {
	newest := s.Newest()
	if newest == nil || newest.Annotations[chartkind.SettingsAnnotation] != s.settings() {
		return false
	}
	made, err := strconv.ParseInt(newest.Annotations[chartkind.GenerationAnnotation], 10, 64)
	return err == nil && newest.Annotations[chartkind.UIDAnnotation] == string(s.object.GetUID()) && made < s.object.GetGeneration()
}

// settings returns a digest of the inputs of the content, without the custom resource and the
// objects that its inputs name.
func (s *served) settings() string {
	content, err := json.Marshal(chartkind.Spec{
		Chart: chartkind.Chart{Ref: s.chart.Reference}, Namespace: s.spec.Namespace, Values: s.spec.Values, Overrides: s.spec.Overrides, GeneratedSecrets: s.spec.GeneratedSecrets, Inputs: s.spec.Inputs,
	})
	if err != nil {
		return "" // the digest of the content reports it
	}
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Diff implements maker.FrontEnd. It returns the diff that Render computed.
func (s *scope) Diff(context.Context, maker.Identity, source.Rendered) (*olmv1alpha1.RevisionDiff, *maker.Outcome) {
	return s.diff, nil
}

// compare returns the changes that the next revision would make.
func (s *scope) compare(ctx context.Context, rendered source.Rendered) (*olmv1alpha1.RevisionDiff, *maker.Outcome) {
	revision, stopped := s.Next(ctx, rendered.Phases)
	if stopped != nil {
		return nil, stopped
	}
	s.describe(revision, rendered)
	return s.Compare(ctx, revision)
}

// MayPropose implements maker.FrontEnd. The proposal is created as the ServiceAccount, which needs
// all rights for it.
func (s *scope) MayPropose(context.Context, maker.Identity, source.Rendered) *maker.Outcome {
	return nil
}

// Propose implements maker.Writer.
func (s *scope) Propose(ctx context.Context, _ maker.Identity) *maker.Outcome {
	return s.Proposed(ctx, s.digest, "")
}

// Render renders the objects in the background. The pass ends, and the result causes another pass.
// The custom resources of a namespace share the capacity with all other namespaces.
func (s *scope) Render(ctx context.Context, identity maker.Identity) (rendered source.Rendered, same bool, stopped *maker.Outcome) {
	if newest := s.Newest(); newest != nil && maker.IsRollback(newest) {
		if stopped := s.Hold(ctx, newest, 0); stopped != nil {
			return rendered, false, stopped
		}
	}
	generated, err := s.generated(ctx)
	if err != nil {
		return rendered, false, retry(fmt.Errorf("reading the generated Secrets of %s: %w", s.Name, err))
	}
	// Generated Secrets come from the newest revision that has them.
	digest := s.digest
	if newest := s.Newest(); newest != nil {
		digest += " " + newest.Name
	}
	if identity.Review != nil {
		digest += " reviewed"
	}
	tenant := "chartkind/" + s.name + "/" + s.object.GetNamespace()
	result, ready := s.jobs.Do(ctx, s.key, digest, func(ctx context.Context) (out made) {
		if err := s.Pool.Render(ctx, tenant, func() {
			if out.rendered, out.stopped = s.renderNow(ctx, generated); out.stopped == nil && identity.Review != nil {
				out.diff, out.stopped = s.compare(ctx, out.rendered)
			}
		}); err != nil {
			out.stopped = maker.Stop(maker.Awaited, "", "") // the controller ends
		}
		return out
	}, func() { s.passes.Add(s.key) })
	if !ready {
		return rendered, false, maker.Stop(maker.Rendering, "", "")
	}
	s.diff = result.diff
	return result.rendered, false, result.stopped
}

func (s *scope) renderNow(ctx context.Context, generated []chartsource.GeneratedSecret) (source.Rendered, *maker.Outcome) {
	cluster, err := s.Capabilities.Capabilities(ctx, "")
	if err != nil {
		return source.Rendered{}, retry(fmt.Errorf("reading what the cluster serves, for the chart of %s: %w", s.Name, err))
	}
	s.countRender()
	klog.FromContext(ctx).Info("Rendering a chart", "extension", s.Name, "resource", s.String(), "generation", s.object.GetGeneration())
	renderer := chartsource.Renderer{Options: chartsource.Options{
		Release: s.object.GetName(), Namespace: s.namespaceOf(s.object), Values: s.values, Integers: true, Generated: generated, Cluster: cluster, Program: s.Program,
	}}
	rendered, err := renderer.RenderArchive(ctx, s.chart.Archive)
	var unknown *chartsource.UnknownError
	var version *chartsource.VersionError
	switch {
	case ctx.Err() != nil:
		return rendered, maker.Stop(maker.Awaited, "", "")
	case errors.As(err, &unknown):
		return rendered, retry(fmt.Errorf("rendering the chart: %w", err))
	case errors.As(err, &version):
		// No watch reports the upgrade of the cluster.
		return rendered, irreconcilable("the chart cannot be rendered: %s", err).Later()
	case err != nil:
		return rendered, irreconcilable("the chart cannot be rendered: %s", err)
	case source.Count(rendered.Phases) > olmv1alpha1.MaxObjects:
		return rendered, irreconcilable("the chart renders %d objects, and a revision can have at most %d", source.Count(rendered.Phases), olmv1alpha1.MaxObjects)
	}
	return rendered, nil
}

// generated returns the Secrets that the chart generates, from the newest revision that has them:
// generated values never change.
func (s *scope) generated(ctx context.Context) ([]chartsource.GeneratedSecret, error) {
	if len(s.spec.GeneratedSecrets) == 0 {
		return nil, nil
	}
	namespace := s.namespaceOf(s.object)
	out := make([]chartsource.GeneratedSecret, len(s.spec.GeneratedSecrets))
	for i, name := range s.spec.GeneratedSecrets {
		out[i] = chartsource.GeneratedSecret{Namespace: namespace, Name: name}
		wanted := manifest.ID{Kind: "Secret", Namespace: namespace, Name: name}
		for j := range s.Revisions {
			one := &s.Revisions[j]
			if !slices.ContainsFunc(references.Of(one), func(ref manifest.Ref) bool { return ref.ID == wanted }) {
				continue
			}
			objects, err := s.Packs.Objects(ctx, revision.PackRoot(one))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.Name, err)
			}
			if found := slices.IndexFunc(objects, func(object manifest.Object) bool { return object.ID == wanted }); found >= 0 {
				if err := json.Unmarshal(objects[found].JSON, &out[i].Previous); err != nil {
					return nil, fmt.Errorf("%s: %s: %w", one.Name, wanted, err)
				}
			}
			break
		}
	}
	return out, nil
}

// Keep implements maker.Writer. It withdraws a proposal of other content.
func (s *scope) Keep(ctx context.Context, newest *olmv1alpha1.ClusterExtensionRevision, _ source.Rendered) *maker.Outcome {
	if stopped := s.Withdraw(ctx, nil); stopped != nil {
		return stopped
	}
	// A change of the ChartKind without an effect here needs no approval.
	if known := newest.Annotations[chartkind.SettingsAnnotation]; known != "" && known != s.settings() {
		if stopped := s.Patch(ctx, nil, newest, map[string]any{"metadata": map[string]any{"annotations": map[string]any{chartkind.SettingsAnnotation: s.settings()}}}); stopped != nil {
			return stopped
		}
	}
	return maker.Stop(maker.Current, "", "")
}

// Write creates the next revision as the ServiceAccount.
func (s *scope) Write(ctx context.Context, identity maker.Identity, made source.Rendered) *maker.Outcome {
	_, outcome := s.Replace(ctx, identity, made.Phases, func(next *olmv1alpha1.ClusterExtensionRevision) { s.describe(next, made) })
	return outcome
}

// describe records the inputs and the rollout settings in the next revision.
func (s *scope) describe(next *olmv1alpha1.ClusterExtensionRevision, made source.Rendered) {
	next.Annotations = map[string]string{
		chartkind.ResourceAnnotation: s.name + "/" + s.key, chartkind.UIDAnnotation: string(s.object.GetUID()),
		chartkind.GenerationAnnotation: strconv.FormatInt(s.object.GetGeneration(), 10), chartkind.MadeOfAnnotation: s.digest,
		chartkind.SettingsAnnotation:  s.settings(),
		olmv1alpha1.VersionAnnotation: made.Version, olmv1alpha1.PackageAnnotation: made.Package, olmv1alpha1.ReferenceAnnotation: s.chart.Reference,
		olmv1alpha1.ChangeCauseAnnotation: fmt.Sprintf("%s of generation %d, with chart %s %s", s, s.object.GetGeneration(), made.Package, made.Version),
	}
	if made.KubeVersion != "" {
		next.Annotations[olmv1alpha1.KubeVersionAnnotation] = made.KubeVersion
	}
	if verified := s.chart.Signed.Of(s.chart.Reference); verified != nil {
		next.Annotations[olmv1alpha1.VerifiedAnnotation] = verified.String()
	}
	next.Spec.ProgressDeadlineMinutes = s.spec.ProgressDeadlineMinutes
	if notes := report.Clip(string(bytes.TrimSpace([]byte(made.Notes)))); notes != "" {
		next.Annotations[chartkind.NotesAnnotation] = notes
	}
}

// leave deletes the revisions of a deleted custom resource. When none is left, it removes the
// finalizer.
func (s *scope) leave(ctx context.Context) error {
	if !slices.Contains(s.object.GetFinalizers(), chartkind.Finalizer) {
		return nil
	}
	left, err := s.deleteRevisions(ctx)
	var unreadable *bychain.UnreadableError
	switch {
	case errors.As(err, &unreadable):
		return nil // its change causes an event
	case err != nil:
		return err
	case left > 0:
		return nil // their deletion causes an event
	}
	err = applyFinalizers(ctx, s.account, s.spec.Resource, s.object, nil)
	if err == nil || apierrors.IsNotFound(err) {
		s.again() // the custom resource may be deleted because its definition is
		return nil
	}
	return err
}

// deleteRevisions deletes the own revisions of all extensions of the custom resource, and returns
// how many still exist. The inputs of the extension's name can have changed or been deleted.
func (s *scope) deleteRevisions(ctx context.Context) (left int, err error) {
	now, err := s.mapping.Extension(ctx, s.object)
	if err != nil {
		now = ""
	}
	extensions, err := s.elsewhere(ctx, s.object, now)
	if err != nil {
		return 0, err
	}
	if now != "" {
		extensions = append(extensions, now)
	}
	for _, s.Name = range extensions {
		count, err := s.deleteChain(ctx)
		if left += count; err != nil {
			return left, err
		}
	}
	return left, nil
}

func (s *scope) deleteChain(ctx context.Context) (left int, err error) {
	revisions, err := maker.List(ctx, s.Live, s.Name)
	if err != nil {
		return 0, err
	}
	writer, err := s.As(s.as())
	if err != nil {
		return 0, err
	}
	s.remember()
	ours := s.isOf(revisions, s.object)
	for i := range revisions {
		one := &revisions[i]
		if !s.isOurs(one, s.object) && (!ours || !maker.IsRollback(one)) {
			continue
		}
		left++
		if one.DeletionTimestamp != nil {
			continue
		}
		err := writer.Delete(ctx, one.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &one.UID}})
		if err != nil && !apierrors.IsNotFound(err) {
			return left, fmt.Errorf("deleting revision %s in the name of ServiceAccount %s: %w", one.Name, s.spec.ServiceAccount, err)
		}
	}
	return left, nil
}
