package governance

import (
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// ClaimKey is under which a profile is held.
func ClaimKey(profile string) string { return "profile/" + profile }

// Holder names a plan as the holder of a profile: by name for people, and by uid,
// because a name may be used again.
func Holder(name, uid string) string { return name + "/" + uid }

// ParseHolder is the other way round.
func ParseHolder(holder string) (name, uid string) {
	name, uid, _ = strings.Cut(holder, "/")
	return name, uid
}

// Needs tells whether a plan that holds its profile has a use for it. One that nobody
// has looked at yet is about to.
func Needs(action v1alpha1.Action, phase v1alpha1.Phase) bool {
	pending := phase == "" || phase == v1alpha1.PhasePending
	return action != v1alpha1.ActionIgnore && (pending || Active(phase))
}
