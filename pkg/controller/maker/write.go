package maker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/source"
)

// Replace creates the next revision with some content; describe records its inputs. The revision is
// nil if none was created:
//
//  1. It checks that the revisions are as this pass read them.
//  2. It creates the revision as its identity. If a user must approve it, it creates a Paused
//     revision
//     as the proposer.
//  3. Then it withdraws unapproved proposals. If the creation is refused, they stay.
func (c *Chain) Replace(ctx context.Context, identity Identity, phases []source.Phase, describe func(*olmv1alpha1.ClusterExtensionRevision)) (*olmv1alpha1.ClusterExtensionRevision, *Outcome) {
	if stopped := c.Unchanged(ctx); stopped != nil {
		return nil, stopped
	}
	revision, stopped := c.Next(ctx, phases)
	if stopped != nil {
		return nil, stopped
	}
	describe(revision)
	as := identity.As
	if identity.Approval != "" {
		as = c.Proposer
		revision.Spec.LifecycleState = olmv1alpha1.LifecycleStatePaused
		metav1.SetMetaDataAnnotation(&revision.ObjectMeta, olmv1alpha1.LifecycleReasonAnnotation, identity.Approval)
		if identity.held != "" {
			metav1.SetMetaDataAnnotation(&revision.ObjectMeta, olmv1alpha1.HeldByAnnotation, identity.held)
			metav1.SetMetaDataAnnotation(&revision.ObjectMeta, olmv1alpha1.HeldUnderAnnotation, identity.Review.under)
		}
	}
	if stopped := c.Create(ctx, as, revision); stopped != nil {
		return nil, stopped
	}
	if stopped := c.Withdraw(ctx, nil); stopped != nil {
		return revision, stopped
	}
	return revision, Stop(Awaited, "", "")
}

// Unchanged returns nil if the revisions are as this pass read them. It reads them live, because
// the informer may be stale.
func (c *Chain) Unchanged(ctx context.Context) *Outcome {
	now, err := List(ctx, c.Live, c.Name)
	if err != nil {
		return Retry(Failed, err)
	}
	if slices.EqualFunc(now, c.Revisions, func(a, b olmv1alpha1.ClusterExtensionRevision) bool {
		// A write that only records a used stamp does not change the spec.
		return a.UID == b.UID && a.Generation == b.Generation && a.Annotations[c.Stamp] == b.Annotations[c.Stamp]
	}) {
		return nil
	}
	return outdated()
}

// Next returns the next revision of the chain with some content: active, without annotations.
func (c *Chain) Next(ctx context.Context, phases []source.Phase) (*olmv1alpha1.ClusterExtensionRevision, *Outcome) {
	head, _, err := c.Heads.Get(ctx, c.Name)
	if err != nil {
		return nil, failed("reading which number the next revision of %s has: %w", c.Name, err)
	}
	next := &olmv1alpha1.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{Name: olm.RevisionName(c.Name, head.Next())},
		Spec:       olmv1alpha1.ClusterExtensionRevisionSpec{LifecycleState: olmv1alpha1.LifecycleStateActive, Revision: head.Next()},
	}
	for _, phase := range phases {
		rendered := olmv1alpha1.RevisionPhase{Name: phase.Name}
		for _, object := range phase.Objects {
			rendered.Objects = append(rendered.Objects, olmv1alpha1.RevisionObject{Object: &olmv1alpha1.Manifest{Raw: object.JSON}})
		}
		next.Spec.Phases = append(next.Spec.Phases, rendered)
	}
	return next, nil
}

// Create creates a revision as a user; nil means this process. With a dry-run the revision is
// admitted but not stored. It returns nil after success.
func (c *Chain) Create(ctx context.Context, as user.Info, revision *olmv1alpha1.ClusterExtensionRevision, dryRun ...string) *Outcome {
	writer, err := c.writer(as)
	if err == nil {
		_, err = writer.Create(ctx, revision, metav1.CreateOptions{FieldManager: c.FieldManager, DryRun: dryRun})
	}
	return c.refused(revision.Name, as, err)
}

// Patch changes a revision as a user; nil means this process. A precondition on the uid prevents
// writes to a later revision with the name. It returns nil after success.
func (c *Chain) Patch(ctx context.Context, as user.Info, revision *olmv1alpha1.ClusterExtensionRevision, change map[string]any) *Outcome {
	metadata, _ := change["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["uid"] = revision.UID
	content, err := json.Marshal(change)
	if err != nil {
		return failed("encoding a change of revision %s: %w", revision.Name, err)
	}
	writer, err := c.writer(as)
	if err == nil {
		_, err = writer.Patch(ctx, revision.Name, types.MergePatchType, content, metav1.PatchOptions{FieldManager: c.FieldManager})
	}
	if apierrors.IsNotFound(err) {
		return outdated()
	}
	return c.refused(revision.Name, as, err)
}

// Withdraw deletes all proposals except kept, which may be nil. It deletes them only if they are
// unchanged: no user has resumed them, so they have no objects in the cluster. It returns nil after
// success.
func (c *Chain) Withdraw(ctx context.Context, kept *olmv1alpha1.ClusterExtensionRevision) *Outcome {
	for _, proposed := range c.Proposals() {
		if kept != nil && proposed.UID == kept.UID {
			continue
		}
		writer, err := c.writer(c.Proposer)
		if err == nil {
			err = writer.Delete(ctx, proposed.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &proposed.UID, ResourceVersion: &proposed.ResourceVersion}})
		}
		// A conflict means that a user may have approved it.
		if stopped := c.refused(proposed.Name, c.Proposer, client.IgnoreNotFound(err)); stopped != nil {
			return stopped
		}
	}
	return nil
}

func (c *Chain) writer(as user.Info) (Revisions, error) {
	if as == nil {
		return c.Own, nil
	}
	return c.As(as)
}

// refused returns the outcome of a failed write; nil without an error. Refusals by rights, quotas
// and policies are retried, because those change without an event.
func (c *Chain) refused(revision string, as user.Info, err error) *Outcome {
	if err == nil {
		return nil
	}
	who := "Penstock"
	if as != nil {
		who = as.GetName()
	}
	told := fmt.Errorf("writing revision %s in the name of %s: %w", revision, who, err)
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return outdated()
	case apierrors.IsForbidden(err) && isRightsRefusal(err):
		denied := Retry(Denied, told)
		denied.Err = nil // a missing right is not a fault of this process
		return denied
	case apierrors.IsForbidden(err):
		return Retry(Refused, told)
	case apierrors.IsInvalid(err) && apierrors.HasStatusCause(err, metav1.CauseType(field.ErrorTypeInternal)):
		// The API could not judge the revision.
		return Retry(Failed, told)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return Stop(Invalid, err.Error(), "")
	}
	return Retry(Failed, told)
}

// isRightsRefusal reports whether an error is a refusal for a missing right, by admission for the
// objects or by authorization for revisions. Refusals by quotas and policies do not count.
func isRightsRefusal(err error) bool {
	text := err.Error()
	return strings.Contains(text, authz.Refusal) ||
		strings.Contains(text, "cannot create resource") || strings.Contains(text, "cannot patch resource") || strings.Contains(text, "cannot delete resource")
}
