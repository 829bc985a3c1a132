package sigstore

import (
	"fmt"
	"time"
)

const (
	// RootDate is the day on which the embedded trusted root of pkg/verification was the newest
	// published one.
	RootDate = "2026-11-05"
	// oldRoot is the age from which a root may lack the present authorities and logs.
	oldRoot = 365 * 24 * time.Hour
	// RenewRoot is the advice about using a newer root than the embedded one.
	RenewRoot = "if the verification policy has no trustedRoot, run cosign trusted-root create --with-default-services --out trusted_root.json, " +
		"add the file to the policy's ConfigMap and set trustedRoot: trusted_root.json; or upgrade Penstock"
)

// RootAge returns the age of the embedded trusted root, and whether it exceeds a year.
func RootAge(now time.Time) (age string, old bool) {
	made, err := time.Parse(time.DateOnly, RootDate)
	if err != nil {
		return "of an unknown day", true
	}
	past := max(0, now.Sub(made))
	return fmt.Sprintf("of %s, %d days old", RootDate, int(past.Hours()/24)), past > oldRoot
}
