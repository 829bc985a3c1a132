package governance

import (
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// maxRequesters bounds the number of users in status.requestedBy.
const maxRequesters = 16

// Needed returns the number of approvers that a plan needs.
func Needed(spec v1alpha1.ConfigurationPlanSpec) int { return int(max(spec.Approvals, 1)) }

// Approvers returns the names of the approvers of a plan, in order.
func Approvers(approval *v1alpha1.PlanApproval) []string {
	if approval == nil {
		return nil
	}
	names := []string{approval.Username}
	for _, other := range approval.Others {
		names = append(names, other.Username)
	}
	return names
}

// Each returns one approval for each approver.
func Each(approval v1alpha1.PlanApproval) []v1alpha1.PlanApproval {
	all := []v1alpha1.PlanApproval{approval}
	for _, other := range approval.Others {
		one := approval
		one.Username, one.UID, one.Groups, one.Extra, one.Time, one.Comment = other.Username, other.UID, other.Groups, other.Extra, other.Time, other.Comment
		all = append(all, one)
	}
	for i := range all {
		all[i].Others = nil
	}
	return all
}

// Join adds an approval to earlier approvals of the same plan. It replaces the earlier approval if
// there is none for this plan, or if one approver is enough. A second approval of the same user
// changes nothing.
func Join(spec v1alpha1.ConfigurationPlanSpec, given, fresh *v1alpha1.PlanApproval) *v1alpha1.PlanApproval {
	switch {
	case Needed(spec) == 1 || given == nil || given.Run != 0 || given.PlanHash != fresh.PlanHash:
		return fresh
	case slices.Contains(Approvers(given), fresh.Username):
		return given
	}
	joined := given.DeepCopy()
	joined.Others = append(joined.Others, v1alpha1.PlanApprover{
		Username: fresh.Username, UID: fresh.UID, Groups: fresh.Groups, Extra: fresh.Extra, Time: fresh.Time, Comment: fresh.Comment,
	})
	return joined
}

// Excluded reports whether a user must not approve a plan, because it needs several approvers and
// the user requested it.
func Excluded(spec v1alpha1.ConfigurationPlanSpec, requestedBy []string, name string) bool {
	return Needed(spec) > 1 && slices.Contains(requestedBy, name)
}

// Requests adds a user who changes the request to status.requestedBy. It never removes a user,
// because requesters must not approve the plan. It returns an error if the list is full.
func Requests(requestedBy []string, name string) ([]string, error) {
	if name == "" || slices.Contains(requestedBy, name) {
		return requestedBy, nil
	}
	if len(requestedBy) >= maxRequesters {
		return nil, fmt.Errorf("status.requestedBy has %d users already, and nobody falls out of it, because none of them may approve the plan: "+
			"only they can change what the plan asks for; create another plan to change more", len(requestedBy))
	}
	return append(slices.Clone(requestedBy), name), nil
}

// IsRequest reports whether a write of the spec changes the request: every field except action and
// approvedPlanHash.
func IsRequest(spec, stored v1alpha1.ConfigurationPlanSpec) bool {
	spec.Action, spec.ApprovedPlanHash = stored.Action, stored.ApprovedPlanHash
	return !apiequality.Semantic.DeepEqual(spec, stored)
}
