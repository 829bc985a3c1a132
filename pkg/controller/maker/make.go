package maker

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Identity is in whose name the next revision is made, and whether a person has to approve it.
type Identity struct {
	// As is nil for a proposal whose approver acts in their own name, and for nothing else.
	As user.Info
	// Author wrote the object that asks for the revision.
	Author user.Info
	// Stamp names the stamp of the object, no matter who acts.
	Stamp string
	// Approval is the reason why a user must approve the revision; empty when none must.
	Approval string
	// Review has the notes of the diff that need the approval of a person; nil when no review is
	// asked for.
	Review *Review
	// held are the reasons of the notes that hold what was reviewed.
	held string
}

// Who returns the user whose rights the content needs: the author of a proposal.
func (i Identity) Who() user.Info {
	if i.As != nil {
		return i.As
	}
	return i.Author
}

// FrontEnd gives access to the object that requests revisions. C is its rendered content.
type FrontEnd[C any] interface {
	// Decide is the policy: in whose name the next revision is made, whether a person has to
	// approve it, and why none is made now.
	Decide(ctx context.Context) (Identity, *Outcome)
	// Render makes the content and judges it. Same is true when the newest revision has it.
	Render(ctx context.Context, identity Identity) (content C, same bool, stopped *Outcome)
	// Diff compares content with what is rolled out, as its reviewer would see it. It is nil for
	// content that needs no review: nothing but what somebody asked for.
	Diff(ctx context.Context, identity Identity, content C) (*olmv1alpha1.RevisionDiff, *Outcome)
	// MayPropose says why content that is held must not be proposed.
	MayPropose(ctx context.Context, identity Identity, content C) *Outcome
}

// Writer brings content into the cluster.
type Writer[C any] interface {
	// Keep brings the newest revision up to date, which has the desired content. The content is
	// the zero value when nothing was rendered.
	Keep(ctx context.Context, newest *olmv1alpha1.ClusterExtensionRevision, content C) *Outcome
	// Propose says why no proposal is made: there is one already, or there must be none.
	Propose(ctx context.Context, identity Identity) *Outcome
	// Write makes the next revision.
	Write(ctx context.Context, identity Identity, content C) *Outcome
}

// Make brings a chain to content with a digest. Rewrite has it written once more although the newest
// revision is made of the same. The comment of the package has the steps.
func Make[C any](ctx context.Context, chain *Chain, digest string, rewrite bool, front FrontEnd[C], writer Writer[C]) *Outcome {
	newest := chain.Newest()
	if newest != nil && newest.Annotations[chain.MadeOf] == digest && !rewrite {
		var none C
		return writer.Keep(ctx, newest, none)
	}
	identity, stopped := front.Decide(ctx)
	if stopped != nil {
		return stopped
	}
	if identity.Approval == "" && identity.As == nil {
		return failed("the policy of %s names neither an identity for the next revision nor a reason to propose it", chain.Name)
	}
	switch {
	case identity.Approval != "":
		if identity.Review == nil {
			stopped = chain.heldAnew(ctx, digest, identity)
		}
		if stopped == nil {
			stopped = writer.Propose(ctx, identity)
		}
	case identity.Review != nil:
		stopped = chain.heldAlready(ctx, digest, identity)
	}
	if stopped != nil {
		return stopped
	}
	content, same, stopped := front.Render(ctx, identity)
	if stopped != nil {
		return stopped
	}
	if same {
		return writer.Keep(ctx, newest, content)
	}
	if identity.Approval == "" && identity.Review != nil {
		diff, stopped := front.Diff(ctx, identity, content)
		if stopped != nil {
			return stopped
		}
		if identity = identity.reviewed(diff); identity.Approval != "" {
			if stopped := front.MayPropose(ctx, identity, content); stopped != nil {
				return stopped
			}
			if stopped := chain.heldAnew(ctx, digest, identity); stopped != nil {
				return stopped
			}
			if stopped := writer.Propose(ctx, identity); stopped != nil {
				return stopped
			}
		}
	}
	return writer.Write(ctx, identity, content)
}

// Proposed says that a digest is proposed already, and withdraws the other proposals. A proposal
// that a person declined counts until the stamp is another one. It is nil when there is none.
func (c *Chain) Proposed(ctx context.Context, digest, stamp string) *Outcome {
	for i := range c.Revisions {
		one := &c.Revisions[i]
		if !c.NeverApproved(one) || one.DeletionTimestamp != nil || one.Annotations[c.MadeOf] != digest ||
			!c.isProposal(one) && one.Annotations[c.Stamp] != stamp {
			continue
		}
		if stopped := c.Withdraw(ctx, one); stopped != nil {
			return stopped
		}
		message := "%s waits for approval: kubectl get cer %[1]s --subresource=diff, then kubectl penstock resume %[1]s"
		if !c.isProposal(one) {
			message = "%s was declined: change what is asked for; or, to have it proposed again, kubectl delete cer %[1]s"
		}
		return Stop(Proposed, fmt.Sprintf(message, one.Name), "")
	}
	return nil
}
