package maker

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// Revisions writes revisions as one identity. The generated client implements it.
type Revisions interface {
	Create(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, options metav1.CreateOptions) (*olmv1alpha1.ClusterExtensionRevision, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (*olmv1alpha1.ClusterExtensionRevision, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
	// Propose compares a revision that is not stored with the rolled out content.
	Propose(ctx context.Context, name string, revision *olmv1alpha1.ClusterExtensionRevision, options metav1.CreateOptions) (*olmv1alpha1.RevisionDiff, error)
}

// Heads reads the heads of chains.
type Heads interface {
	Get(ctx context.Context, name string) (head chain.Head, found bool, err error)
}

// Definitions reads CustomResourceDefinitions of a target cluster; an empty target means the
// default one. It returns nil for a definition that does not exist.
type Definitions interface {
	Definition(ctx context.Context, target, name string) (*apiextensionsv1.CustomResourceDefinition, error)
}

// Capabilities reads the cluster capabilities that charts see, of a target cluster; an empty target
// means the default one.
type Capabilities interface {
	Capabilities(ctx context.Context, target string) (*template.Capabilities, error)
}

// Rights checks at the host, without a cache, whether a user has a right.
type Rights interface {
	May(ctx context.Context, who user.Info, asked authz.Right) (bool, error)
}

// Store reads and writes revisions. All fields are required.
type Store struct {
	// Informer is the informer of revisions.
	Informer interface {
		AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	}
	// Reader reads revisions from the informer; Live reads from the API.
	Reader, Live client.Reader
	Heads        Heads
	// As returns a writer that impersonates a user. Own writes as this process.
	As  func(user.Info) (Revisions, error)
	Own Revisions
}

// Rules configure the revisions that a front end creates.
type Rules struct {
	// FieldManager is the field manager of the revisions.
	FieldManager string
	// MadeOf is the annotation with the digest of a revision's inputs. Stamp is the annotation with
	// the stamp that decided it; empty for none.
	MadeOf, Stamp string
	// NeverApproved reports whether a proposed revision was never rolled out.
	NeverApproved func(*olmv1alpha1.ClusterExtensionRevision) bool
}

// Chain is one chain during one pass.
type Chain struct {
	Store
	Rules
	Name string
	// Proposer creates and withdraws proposals; nil means this process.
	Proposer user.Info
	// Revisions holds the revisions of the chain, newest first.
	Revisions []olmv1alpha1.ClusterExtensionRevision
}

// List returns the revisions of a chain, newest first.
func List(ctx context.Context, from client.Reader, name string) ([]olmv1alpha1.ClusterExtensionRevision, error) {
	revisions, err := bychain.List(ctx, from, name)
	if err != nil {
		return nil, fmt.Errorf("reading the revisions of %s: %w", name, err)
	}
	return revisions, nil
}

// Unread returns the outcome of a pass that could not read the revisions of its chain.
func Unread(err error) *Outcome {
	if unreadable := (*bychain.UnreadableError)(nil); errors.As(err, &unreadable) {
		return Stop(Unreadable, unreadable.Error(), "")
	}
	return Retry(Failed, err)
}

// Newest returns the newest revision that is or was meant to be rolled out, or nil. Proposals and
// archived revisions do not count.
func (c *Chain) Newest() *olmv1alpha1.ClusterExtensionRevision {
	for i := range c.Revisions {
		one := &c.Revisions[i]
		if c.NeverApproved(one) {
			continue
		}
		if one.DeletionTimestamp != nil || one.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived {
			return nil
		}
		return one
	}
	return nil
}

// Proposals returns the revisions that wait for approval, newest first. Two may exist for a moment,
// because a newer proposal is created before the older one is withdrawn.
func (c *Chain) Proposals() []*olmv1alpha1.ClusterExtensionRevision {
	var waiting []*olmv1alpha1.ClusterExtensionRevision
	for i := range c.Revisions {
		if one := &c.Revisions[i]; c.isProposal(one) {
			waiting = append(waiting, one)
		}
	}
	return waiting
}

func (c *Chain) isProposal(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return c.NeverApproved(revision) && revision.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused && revision.DeletionTimestamp == nil
}

// Hold returns an outcome if a rollback prevents the next revision, or nil. The hold ends when it
// is released, or when the generation exceeds the generation of the rollback.
func (c *Chain) Hold(ctx context.Context, newest *olmv1alpha1.ClusterExtensionRevision, generation int64) *Outcome {
	head, found, err := c.Heads.Get(ctx, c.Name)
	if err != nil {
		return failed("finding out whether a rollback holds %s: %w", c.Name, err)
	}
	hold := holdBy(head, newest)
	if !found || hold == nil || hold.OwnerGeneration != 0 && generation > hold.OwnerGeneration {
		return nil
	}
	return Stop(Held, held(c.Name, olm.RevisionName(c.Name, hold.Revision), hold.OwnerGeneration), "")
}

// holdBy returns the hold of a rollback, or nil. The revision of the rollback is written a moment
// before its hold is confirmed; until then the head has it as pending, next to the hold of an older
// rollback. A rollback that was never written holds nothing.
func holdBy(head chain.Head, rollback *olmv1alpha1.ClusterExtensionRevision) *chain.Hold {
	if pending := head.PendingHold; pending != nil && pending.UID == rollback.UID {
		return pending
	}
	return head.Hold
}

func held(chain, name string, generation int64) string {
	release := fmt.Sprintf("kubectl penstock resume %s, or kubectl annotate cer %s %s=%[2]s", chain, name, olmv1alpha1.ReleaseHoldAnnotation)
	if generation == 0 {
		return fmt.Sprintf("%s is a rollback: no revision is made until the hold is released: %s", name, release)
	}
	return fmt.Sprintf("%s is a rollback: no revision is made until the generation is above %d, or until the hold is released: change the spec, or %s", name, generation, release)
}

// HasSucceeded reports whether a revision was rolled out.
func HasSucceeded(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return meta.IsStatusConditionTrue(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded)
}

// IsRollback reports whether a revision restores the content of an earlier one.
func IsRollback(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[olmv1alpha1.RollbackOfAnnotation] != ""
}
