package revision

import (
	"crypto/sha256"
	"encoding/hex"

	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// approvalBytes is the length of an approval digest, in bytes. A short digest suffices: it is not
// secret, and users cannot choose the uids in a diff, so they cannot make two digests equal.
const approvalBytes = 8

// RolledOutBefore returns the revision that a proposal would replace: the newest revision below its
// number that is active and not being deleted. It is nil when nothing is rolled out.
func RolledOutBefore(revisions []olm.ClusterExtensionRevision, number int64) *olm.ClusterExtensionRevision {
	var found *olm.ClusterExtensionRevision
	for i := range revisions {
		one := &revisions[i]
		counts := one.Spec.Revision < number && one.Spec.LifecycleState == olm.LifecycleStateActive && one.DeletionTimestamp == nil
		if counts && (found == nil || one.Spec.Revision > found.Spec.Revision) {
			found = one
		}
	}
	return found
}

// ApprovalDigest identifies the diff between the rolled out revision (nil for none) and a proposal.
// The content of a revision never changes, so the uids of both revisions identify the diff.
func ApprovalDigest(from, to *olm.ClusterExtensionRevision) string {
	var before types.UID
	if from != nil {
		before = from.UID
	}
	sum := sha256.Sum256([]byte("approval/" + string(before) + ".." + string(to.UID)))
	return hex.EncodeToString(sum[:approvalBytes])
}
