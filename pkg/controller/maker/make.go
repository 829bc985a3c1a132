package maker

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Identity is the user that the next revision is created as. It also has the reason for an
// approval, if one is needed.
type Identity struct {
	// As is the impersonated user. It is nil only for a proposal whose approver acts as themselves.
	As user.Info
	// Author wrote the object that requests the revision.
	Author user.Info
	// Stamp names the stamp of the object, for any identity.
	Stamp string
	// Approval is the reason why a user must approve the revision; empty when none must.
	Approval string
	// Review has the notes of the diff that need approval; nil if no review is requested.
	Review *Review
	// held lists the reasons of the notes that hold the reviewed content.
	held string
}

// Who returns the user whose rights the content needs: for a proposal, the author.
func (i Identity) Who() user.Info {
	if i.As != nil {
		return i.As
	}
	return i.Author
}

// FrontEnd gives access to the object that requests revisions. C is its rendered content.
type FrontEnd[C any] interface {
	// Decide is the policy. It returns the identity of the next revision, with the reason for an
	// approval, or the reason why no revision may be created now.
	Decide(ctx context.Context) (Identity, *Outcome)
	// Render renders and checks the content. same is true if the newest revision has it.
	Render(ctx context.Context, identity Identity) (content C, same bool, stopped *Outcome)
	// Diff compares content with the rolled out content, as its reviewer would see it. It returns
	// nil for content that needs no review, because a user requested all of it.
	Diff(ctx context.Context, identity Identity, content C) (*olmv1alpha1.RevisionDiff, *Outcome)
	// MayPropose returns the reason why held content must not be proposed, or nil.
	MayPropose(ctx context.Context, identity Identity, content C) *Outcome
}

// Writer writes content.
type Writer[C any] interface {
	// Keep updates the newest revision, which has the desired content. content is the zero value if
	// nothing was rendered.
	Keep(ctx context.Context, newest *olmv1alpha1.ClusterExtensionRevision, content C) *Outcome
	// Propose returns the reason why no proposal is created: it exists already, or is not allowed.
	Propose(ctx context.Context, identity Identity) *Outcome
	// Write creates the next revision.
	Write(ctx context.Context, identity Identity, content C) *Outcome
}

// Make creates the next revision of a chain, with the content of a digest. rewrite makes it create
// a revision even if the newest revision has the same content. The comment of the package has the
// steps.
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

// Proposed returns an outcome if a digest is proposed already, and withdraws the other proposals. A
// declined proposal counts until the stamp changes. It returns nil if there is no such proposal.
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
			message = "%s was declined: change the spec; or, to have it proposed again, kubectl delete cer %[1]s"
		}
		return Stop(Proposed, fmt.Sprintf(message, one.Name), "")
	}
	return nil
}
