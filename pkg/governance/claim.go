package governance

import (
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// ClaimKey returns the key of the record that holds a profile.
func ClaimKey(profile string) string { return "profile/" + profile }

// Holder returns the name of a plan as the holder of a profile. It includes the uid, because a
// later plan can have the same name.
func Holder(name, uid string) string { return name + "/" + uid }

// ParseHolder is the inverse of Holder.
func ParseHolder(holder string) (name, uid string) {
	name, uid, _ = strings.Cut(holder, "/")
	return name, uid
}

// Needs reports whether a plan must keep holding its profile. A plan that was not reconciled yet
// will need it.
func Needs(action v1alpha1.Action, phase v1alpha1.Phase) bool {
	pending := phase == "" || phase == v1alpha1.PhasePending
	return action != v1alpha1.ActionIgnore && (pending || Active(phase))
}
