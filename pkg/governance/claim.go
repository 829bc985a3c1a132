package governance

import "strings"

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
