package revisiondiff

import (
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	rev "github.com/penstock-project/penstock/pkg/revision"
)

// nameApproved adds the digest that approves a proposal. A diff of selected objects has none: the
// approver must have seen all objects that they may see. If from is not rolled out, the digest is
// that of a proposal that replaces nothing.
func (s *scope) nameApproved(out *v1alpha1.RevisionDiff, from, to *olm.ClusterExtensionRevision) {
	if to.UID == "" || to.Annotations[v1alpha1.ProposedAnnotation] != "true" || from != nil && (from.Spec.Revision >= to.Spec.Revision || chainOf(from) != chainOf(to)) {
		return
	}
	for _, revision := range []*olm.ClusterExtensionRevision{from, to} {
		if revision == nil {
			continue
		}
		for _, ref := range clusterextensionrevision.Refs(revision) {
			if !s.matches(ref.ID) {
				return
			}
		}
	}
	before := []olm.ClusterExtensionRevision{}
	if from != nil {
		before = append(before, *from)
	}
	out.Summary.ApprovalDigest = rev.ApprovalDigest(rev.RolledOutBefore(before, to.Spec.Revision), to)
}
