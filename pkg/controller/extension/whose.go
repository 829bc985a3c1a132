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
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/right"
)

// approvalManual is the value of extension.ApprovalAnnotation that lets nothing through
// without a person.
const approvalManual = "Manual"

// name is in whose name the next revision is made.
type name struct {
	// as is nil for a proposal: somebody approves it in their own name.
	as user.Info
	// author wrote the extension.
	author user.Info
	// why says why it is a proposal.
	why string
	// stamp names the stamp of the extension, whoever acts.
	stamp string
}

// who is asked about what is made: of a proposal, its author.
func (n name) who() user.Info {
	if n.as != nil {
		return n.as
	}
	return n.author
}

// inWhoseName finds out in whose name the next revision is made:
//
//  1. Whoever wrote the extension as it is. Nobody known makes nothing, no proposal either.
//  2. With manual approval, and for what the author has not decided, it is a proposal.
//  3. The stamp decides one revision, within author.Lifetime.
//  4. Later ones: the author when they had the right to bypass, or the ServiceAccount when the
//     author may impersonate it now.
func (v *visit) inWhoseName(ctx context.Context) (name, *halt) {
	stamp, err := author.ClusterExtensions().Verify(v.Key, v.object)
	if err != nil {
		return name{}, unknownAuthor(v.extension.Name, err)
	}
	found := name{stamp: v.stampName(stamp), author: stamp.Info()}
	fresh := !v.wasUsed(found.stamp) && stamp.Fresh(v.Clock.Now())
	switch {
	case v.extension.Annotations[extension.ApprovalAnnotation] == approvalManual:
		found.why = fmt.Sprintf("annotation %s is %s", extension.ApprovalAnnotation, approvalManual)
	case fresh || stamp.Bypass:
		found.as = stamp.Info()
	case v.extension.Spec.ServiceAccount != nil && v.extension.Spec.ServiceAccount.Name != "":
		account := types.NamespacedName{Namespace: v.extension.Spec.Namespace, Name: v.extension.Spec.ServiceAccount.Name}
		may, err := v.Rights.May(ctx, stamp.Info(), right.On(corev1.SchemeGroupVersion.WithResource("serviceaccounts"), "impersonate", account.Namespace, account.Name))
		if err != nil {
			return name{}, retry(status.Failed, fmt.Errorf("finding out whether %s may impersonate ServiceAccount %s: %w", stamp.User, account, err))
		}
		if may {
			found.as = accountUser(account)
		} else {
			found.why = fmt.Sprintf("%s, who wrote the extension, may not impersonate ServiceAccount %s", stamp.User, account)
		}
	default:
		found.why = fmt.Sprintf("%s wrote the extension at %s, which allows one revision within %s; without spec.serviceAccount, somebody must approve the others", stamp.User, stamp.Time.UTC().Format(time.RFC3339), author.Lifetime)
	}
	return found, nil
}

// accountUser is a ServiceAccount, as kube-apiserver authenticates it.
func accountUser(account types.NamespacedName) user.Info {
	return serviceaccount.UserInfo(account.Namespace, account.Name, "")
}

// stampName tells the stamp of an extension from others. Two that are created within a second,
// one after the other and alike, have the same stamp: it has no uid yet, and its time is to
// the second.
func (v *visit) stampName(stamp *author.Stamp) string {
	sum := sha256.Sum256([]byte(string(v.extension.UID) + "/" + stamp.Signature))
	return hex.EncodeToString(sum[:16])
}

// unknownAuthor says that nobody has signed an extension as it is, and what helps.
func unknownAuthor(name string, err error) *halt {
	return stop(status.AuthorUnknown, fmt.Sprintf("the author of this ClusterExtension, as it is now, is not known: %s", err),
		fmt.Sprintf("write it again, as it is: kubectl annotate --overwrite clusterextension %s %s=%s", name, extension.AuthorAnnotation, author.Renew))
}

// wasUsed is whether a revision was made by a stamp.
func (v *visit) wasUsed(stamp string) bool {
	for i := range v.revisions {
		one := &v.revisions[i]
		if !isRollback(one) && !neverApproved(one) && one.Annotations[extension.StampAnnotation] == stamp {
			return true
		}
	}
	return false
}

// mayPull says why no image is asked for: it comes with the credentials of Penstock, and what is
// in it can be told from what is said of it. Who is asked is in whose name the revision will be
// made; and, where a reference in the spec chooses the image, its author. What a catalog has
// may be proposed whatever its author may.
func (v *visit) mayPull(ctx context.Context, name name) *halt {
	if name.as == nil && v.extension.Spec.Source.SourceType == extension.SourceCatalog {
		return nil
	}
	return v.mayCreate(ctx, name.who())
}

// mayCreate says that somebody may not create revisions, before anything is done for them.
// The request will have no name in its path, so that rights on one name do not count for it.
func (v *visit) mayCreate(ctx context.Context, who user.Info) *halt {
	asked := right.On(olmv1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"), "create", "", "")
	may, err := v.RecentRights.May(ctx, who, asked)
	if err != nil {
		return retry(status.Failed, fmt.Errorf("finding out whether %s may %s: %w", who.GetName(), asked, err))
	}
	if may {
		return nil
	}
	stopped := denied("%s may not %s; the image is pulled, and its objects are checked, once this right is granted", who.GetName(), asked)
	stopped.Why = grant(v.extension.Name, who.GetName(), nil)
	return stopped
}

// denied is for what somebody may not do, now.
func denied(format string, args ...any) *halt {
	return &halt{Outcome: stop(status.Denied, fmt.Sprintf(format, args...), "").Outcome, again: true}
}

// isOwned is whether the extension is the controller of a revision.
func (v *visit) isOwned(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	for _, owner := range revision.OwnerReferences {
		if owner.UID == v.extension.UID {
			return true
		}
	}
	return false
}
