package adopt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/helmrelease"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	penstock "github.com/penstock-project/penstock/pkg/client"
)

const (
	// sendTries is the number of attempts while the server is busy or unavailable, for example
	// because of other imports. sendPause is the time between two attempts.
	sendTries = 30
	sendPause = 2 * time.Second
)

// Obstacles returns the reasons that prevent the adoption, each with its remedy.
func (p *Plan) Obstacles() []string {
	var found []string
	for _, object := range p.Objects {
		switch {
		case object.Served != "":
			found = append(found, fmt.Sprintf("%s: %s: rewrite the record with Helm's plugin mapkubeapis (helm mapkubeapis %s -n %s), or upgrade the release to a chart version that uses %s; then adopt it",
				object.ID, object.Detail, p.Release, p.Namespace, object.Served))
		case object.State == Others, object.State == Unknown:
			found = append(found, fmt.Sprintf("%s: %s", object.ID, object.Detail))
		case p.Overwrite:
		case object.State == Differs:
			found = append(found, fmt.Sprintf("%s differs from the release in %s: restore it, make a new revision with Helm, or give --overwrite", object.ID, object.Detail))
		case object.State == Gone:
			found = append(found, fmt.Sprintf("%s is missing: make a new revision with Helm, or give --overwrite to create it again", object.ID))
		}
	}
	if failed := p.release.Failed; failed != nil && !p.Overwrite {
		found = append(found, fmt.Sprintf("revision %d of Helm is %s, and what it changed may be in the cluster: settle the release with helm rollback, or give --overwrite to restore everything to revision %d",
			failed.Version, failed.Info.Status, p.release.Deployed.Version))
	}
	return found
}

// Check sends the plan to the server as a dry-run, which checks the caller's rights and the
// policies. Nothing is stored.
func (a *Adopter) Check(ctx context.Context, plan *Plan) error {
	_, err := a.send(ctx, plan, true)
	return err
}

// Outcome is the result of an adoption.
type Outcome struct {
	// Revision is active or becomes active.
	Revision string
	// Before is true when the plan had been executed before.
	Before bool
}

// Adopt executes a plan. The caller checks Obstacles first.
func (a *Adopter) Adopt(ctx context.Context, plan *Plan) (Outcome, error) {
	out, err := a.send(ctx, plan, false)
	if err != nil {
		return out, err
	}
	if out.Before {
		// Users without the right to read histories learn only here that all revisions were deleted
		// since.
		revisions, err := a.list(ctx, plan.Extension)
		if err != nil {
			return out, err
		}
		if len(revisions) == 0 {
			return out, spent(plan.Extension)
		}
	}
	return out, a.mark(ctx, plan)
}

func (a *Adopter) send(ctx context.Context, plan *Plan, check bool) (Outcome, error) {
	out := Outcome{Revision: plan.Revisions[0].Name}
	var err error
	switch {
	case plan.Next:
		out.Revision, err = a.create(ctx, plan, check)
	case plan.Tried:
	default:
		if out.Before, err = a.post(ctx, &plan.Taken, check); plan.Known && apierrors.IsConflict(err) {
			// The stored import has fewer revisions: Helm has made revisions since.
			out, err = plan.since()
		}
	}
	if err != nil {
		return out, fmt.Errorf("adopting the Helm release %s as extension %s: %w", plan.Request, plan.Extension, err)
	}
	return out, nil
}

// ErrKept reports that the extension was adopted earlier and that its revisions are kept instead of
// Helm's.
var ErrKept = errors.New("the extension was adopted before, and keeps its content")

// since returns the outcome when the extension was imported before and Helm has made revisions
// since.
func (p *Plan) since() (Outcome, error) {
	if p.made != "" {
		return Outcome{Revision: p.made, Before: true}, nil
	}
	return Outcome{}, fmt.Errorf("%w instead of revision %d of Helm: make a newer revision with helm upgrade or helm rollback to adopt that",
		ErrKept, p.release.Deployed.Version)
}

// post imports the revisions. before is true when they had been imported before.
func (a *Adopter) post(ctx context.Context, taken *Taken, check bool) (before bool, err error) {
	for try := 1; ; try++ {
		request := a.revisions.OlmV1alpha1().RESTClient().Post().Resource("revisionhistories").Name(taken.extension).SubResource("import").
			SetHeader("Content-Type", "application/zstd").Body(bytes.NewReader(taken.archive))
		if check {
			request = request.Param("check", "true")
		}
		var status int
		err := request.Do(ctx).StatusCode(&status).Into(&v1alpha1.RevisionHistory{})
		if err == nil || try == sendTries || !penstock.MayPass(err) {
			return status == http.StatusOK && !check, err
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(sendPause):
		}
	}
}

// create creates the next revision of the extension from Helm's newest revision, and returns its
// name.
func (a *Adopter) create(ctx context.Context, plan *Plan, check bool) (string, error) {
	history, err := a.revisions.OlmV1alpha1().RevisionHistories().Get(ctx, plan.Extension, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading its history: %w", err)
	}
	from := &plan.Revisions[0]
	number := from.number
	for _, record := range history.Revisions {
		number = max(number, record.Revision+1)
	}
	revision := &v1alpha1.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{Name: olm.RevisionName(plan.Extension, number), Annotations: from.annotations},
		Spec:       from.spec(true),
	}
	revision.Spec.Revision = number
	options := metav1.CreateOptions{}
	if check {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = a.revisions.OlmV1alpha1().ClusterExtensionRevisions().Create(ctx, revision, options)
	return revision.Name, err
}

// mark writes the extension's name to the Secret of the release, and the adopted Helm revision to
// every revision.
func (a *Adopter) mark(ctx context.Context, plan *Plan) error {
	revisions, err := a.list(ctx, plan.Extension)
	if err != nil {
		return err
	}
	known := helmrelease.Release{Namespace: plan.Namespace, Name: plan.Release, Revision: plan.release.Highest}
	for i := range revisions {
		before, err := helmrelease.Parse(revisions[i].Annotations[v1alpha1.HelmReleaseAnnotation])
		if err != nil || before.Revision >= known.Revision {
			continue
		}
		if err := a.annotate(ctx, &revisions[i], known.String()); err != nil {
			return err
		}
	}
	return a.markSecret(ctx, &plan.release.secret, plan.Extension)
}

func (a *Adopter) annotate(ctx context.Context, revision *v1alpha1.ClusterExtensionRevision, value string) error {
	patch, err := annotationPatch(v1alpha1.HelmReleaseAnnotation, value, metav1.ObjectMeta{UID: revision.UID})
	if err != nil {
		return err
	}
	_, err = a.revisions.OlmV1alpha1().ClusterExtensionRevisions().Patch(ctx, revision.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("noting on %s that revision of Helm: %w", revision.Name, err)
	}
	return nil
}

// markSecret sets the annotation of a Secret, or removes it when the extension is empty. It does
// not change the labels and data, which Helm reads.
func (a *Adopter) markSecret(ctx context.Context, secret *corev1.Secret, extension string) error {
	if secret.Annotations[supersededBy] == extension {
		return nil
	}
	var value any
	if extension != "" {
		value = extension
	}
	patch, err := annotationPatch(supersededBy, value, metav1.ObjectMeta{UID: secret.UID})
	if err != nil {
		return err
	}
	_, err = a.secrets.Secrets(secret.Namespace).Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("annotating Secret %s/%s of the release: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// annotationPatch sets an annotation, if the object is still the one that was read; a nil value
// removes the annotation.
func annotationPatch(key string, value any, of metav1.ObjectMeta) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": of.UID, "annotations": map[string]any{key: value}}})
}
