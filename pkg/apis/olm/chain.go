package olm

import (
	"strconv"
	"strings"
)

// ChainOf splits a revision's name into its chain (the extension, before the last "-") and its
// number. ok is false if name is not <extension>-<revision> with a decimal number of 1 or more.
// Leading zeros are not allowed, so each revision has one name only.
func ChainOf(name string) (chain string, revision int64, ok bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash < 1 {
		return "", 0, false
	}
	digits := name[dash+1:]
	if digits == "" || digits[0] < '1' || digits[0] > '9' {
		return "", 0, false
	}
	revision, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return "", 0, false
	}
	return name[:dash], revision, true
}

// RevisionName is the inverse of ChainOf: it returns the name of a revision of a chain.
func RevisionName(chain string, revision int64) string {
	return chain + "-" + strconv.FormatInt(revision, 10)
}
