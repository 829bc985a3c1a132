package extension

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// Decide implements maker.FrontEnd. It finds the identity that creates the next revision:
//
//  1. The extension must have an author. Its requirements, and the requirements of other
//     extensions,
//     must allow the version. Otherwise there is no revision and no proposal.
//  2. With manual approval, while drift is reported, and for content that the author did not
//     decide,
//     Penstock creates a proposal.
//  3. A stamp decides one revision, within author.Lifetime.
//  4. Later revisions are created as the author, if the author had the right to bypass, or as the
//     ServiceAccount, if the author may impersonate it now.
//  5. A later version that the author did not choose is reviewed, if the extension requests that.
//  6. A later version without approval waits for a maintenance window and for the operator. A
//     reviewed
//     version waits before it is written. A held version is proposed at any time.
func (s *scope) Decide(ctx context.Context) (maker.Identity, *maker.Outcome) {
	stamp, err := author.ClusterExtensions().Verify(s.Key, s.object)
	if err != nil {
		return maker.Identity{}, unknownAuthor(s.extension.Name, err)
	}
	if stopped := s.inOrder(ctx, stamp.Info(), s.resolvedVersion()); stopped != nil {
		return maker.Identity{}, stopped
	}
	found := maker.Identity{Stamp: s.stampName(stamp), Author: stamp.Info()}
	fresh := !s.wasUsed(found.Stamp) && stamp.Fresh(s.Clock.Now())
	switch {
	case s.extension.Annotations[extension.ApprovalAnnotation] == extension.ApprovalManual:
		found.Approval = fmt.Sprintf("annotation %s is %s", extension.ApprovalAnnotation, extension.ApprovalManual)
	case !fresh && s.reportDrift() != "":
		found.Approval = "drift is reported until " + s.reportDrift() + ", and an upgrade overwrites it"
	case fresh || stamp.Bypass:
		found.As = stamp.Info()
	case s.extension.Spec.ServiceAccount != nil && s.extension.Spec.ServiceAccount.Name != "":
		account := types.NamespacedName{Namespace: s.extension.Spec.Namespace, Name: s.extension.Spec.ServiceAccount.Name}
		may, err := s.Rights.May(ctx, stamp.Info(), authz.On(corev1.SchemeGroupVersion.WithResource("serviceaccounts"), "impersonate", account.Namespace, account.Name))
		if err != nil {
			return maker.Identity{}, retry(status.Failed, fmt.Errorf("finding out whether %s may impersonate ServiceAccount %s: %w", stamp.User, account, err))
		}
		if may {
			found.As = accountUser(account)
		} else {
			found.Approval = fmt.Sprintf("%s, who wrote the extension, cannot impersonate ServiceAccount %s", stamp.User, account)
		}
	default:
		found.Approval = fmt.Sprintf("%s wrote the extension at %s, which allows one revision within %s; without spec.serviceAccount, a person must approve the other revisions", stamp.User, stamp.Time.UTC().Format(time.RFC3339), author.Lifetime)
	}
	s.unasked = found.Approval == "" && !fresh && s.installed() != nil
	if found.Review, err = s.review(stamp, fresh); err != nil {
		return maker.Identity{}, stop(status.Invalid, err.Error(), "")
	}
	if found.Review != nil {
		return found, nil
	}
	return found, s.mayBegin(ctx, found)
}

// accountUser returns a ServiceAccount as kube-apiserver authenticates it.
func accountUser(account types.NamespacedName) user.Info {
	return serviceaccount.UserInfo(account.Namespace, account.Name, "")
}

// stampName identifies a stamp of an extension. Two equal extensions that are created within one
// second have the same stamp: it has no uid yet, and its time has whole seconds.
func (s *scope) stampName(stamp *author.Stamp) string {
	sum := sha256.Sum256([]byte(string(s.extension.UID) + "/" + stamp.Signature))
	return hex.EncodeToString(sum[:16])
}

// unknownAuthor returns the outcome for an extension without a valid stamp, with the remedy.
func unknownAuthor(name string, err error) *maker.Outcome {
	return stop(status.AuthorUnknown, fmt.Sprintf("the author of this ClusterExtension, as it is now, is not known: %s", err),
		fmt.Sprintf("write it again, as it is: kubectl annotate --overwrite clusterextension %s %s=%s", name, extension.AuthorAnnotation, author.Renew))
}

func (s *scope) wasUsed(stamp string) bool {
	for i := range s.Revisions {
		one := &s.Revisions[i]
		if !maker.IsRollback(one) && !neverApproved(one) && one.Annotations[extension.StampAnnotation] == stamp {
			return true
		}
	}
	return false
}

// mayPull returns the reason for not pulling an image, or nil. Penstock pulls with its own
// credentials, and status and revision reveal parts of the content. So the identity of the revision
// needs the right to create revisions. If a reference in the spec chooses the image, the author of
// the spec needs that right, too. A version from a catalog can be proposed even if the author lacks
// the right.
func (s *scope) mayPull(ctx context.Context, identity maker.Identity) *maker.Outcome {
	if identity.As == nil && s.extension.Spec.Source.SourceType == extension.SourceCatalog {
		return nil
	}
	return s.mayCreate(ctx, identity.Who())
}

// mayCreate returns an outcome if a user must not create revisions, before any work is done for
// them. The request has no name in its path, so rights on a single name do not count.
func (s *scope) mayCreate(ctx context.Context, who user.Info) *maker.Outcome {
	asked := authz.On(olmv1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"), "create", "", "")
	may, err := s.RecentRights.May(ctx, who, asked)
	if err != nil {
		return retry(status.Failed, fmt.Errorf("finding out whether %s may %s: %w", who.GetName(), asked, err))
	}
	if may {
		return nil
	}
	stopped := denied("%s cannot %s; the image is pulled, and its objects are checked, once this right is granted", who.GetName(), asked)
	stopped.Why = grant(s.extension.Name, who.GetName(), nil)
	return stopped
}

func denied(format string, args ...any) *maker.Outcome {
	return stop(status.Denied, fmt.Sprintf(format, args...), "").Later()
}

// isOwned reports whether the extension is the controller of a revision.
func (s *scope) isOwned(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	for _, owner := range revision.OwnerReferences {
		if owner.UID == s.extension.UID {
			return true
		}
	}
	return false
}
